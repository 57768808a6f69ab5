"""The invalidation rules as the design's table: operation, predicate, scope and reason."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from core.framework.interface import Plugin
from core.framework.invalidation import NODE_LIFE, InvalidationRule

DESIGN_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "NodeResourcesFit": ("GeneralPredicates",),
    "NodeName": ("GeneralPredicates",),
    "NodePorts": ("GeneralPredicates",),
    "NodeAffinity": ("GeneralPredicates",),
    "InterPodAffinity": ("MatchInterPodAffinity",),
    "TaintToleration": ("PodToleratesNodeTaints",),
    "NodeUnschedulable": ("CheckNodeCondition",),
    "CheckNodeCondition": ("CheckNodeCondition",),
    "CheckNodeMemoryPressure": ("CheckNodeMemoryPressure",),
    "CheckNodeDiskPressure": ("CheckNodeDiskPressure",),
    "VolumeRestrictions": ("NoDiskConflict",),
    "NodeVolumeLimits": (
        "MaxEBSVolumeCount",
        "MaxGCEPDVolumeCount",
        "MaxAzureDiskVolumeCount",
        "MaxPDVolumeCountPredicate",
    ),
    "VolumeZone": ("NoVolumeZoneConflict",),
    "ServiceAffinity": ("ServiceAffinity",),
}
"""Plugin -> its keys in the equivalence class design. Plugins that are newer than the design have none."""

ALL_PLUGINS: Final = "all plugins"


class TableRow(msgspec.Struct, frozen=True, gc=False):
    """One rule."""

    operations: tuple[str, ...]
    kind: str
    plugin: str
    design_keys: tuple[str, ...]
    scope: str
    when: str
    """Empty means always."""
    because: str


def invalidation_table(plugins: Iterable[Plugin]) -> list[TableRow]:
    """Return the rules of plugins, ordered by kind and then as declared. A rule of every plugin appears once."""
    rows = [_row(ALL_PLUGINS, rule) for rule in NODE_LIFE]
    rows += [_row(plugin.name, rule) for plugin in plugins for rule in plugin.invalidated_by]
    return sorted(rows, key=lambda row: row.kind)


def _row(plugin: str, rule: InvalidationRule) -> TableRow:
    return TableRow(
        operations=tuple(operation.value for operation in rule.operations),
        kind=rule.kind.__name__,
        plugin=plugin,
        design_keys=DESIGN_KEYS.get(plugin, ()),
        scope=rule.scope.value,
        when=rule.when,
        because=rule.because,
    )
