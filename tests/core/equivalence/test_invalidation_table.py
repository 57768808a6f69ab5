"""The rules of all plugins as rows of one table."""

from typing import Final

import pytest

from core.events import Kind
from core.framework.interface import Plugin
from core.framework.invalidation import InvalidationRule, Operation, Scope
from core.objects.node import Node
from core.objects.pod import Pod
from core.objects.service import Service
from core.profile import PLUGINS
from tests.core.equivalence.invalidation_table import DESIGN_KEYS, TableRow, invalidation_table

NODE_LIFE: Final = TableRow(
    operations=("ADD", "DELETE"),
    kind="Node",
    plugin="all plugins",
    design_keys=(),
    scope="the node",
    when="",
    because="nothing is known of a new node; and the slot of one that is gone will be another's",
)


class _Ruled(Plugin):
    """A plugin that is nothing but its rules."""

    kinds: tuple[Kind, ...] = ()
    class_fields: tuple[str, ...] = ()

    def __init__(self, name: str, *rules: InvalidationRule) -> None:
        self.name = name
        self.invalidated_by = rules


def _rule(kind: Kind, because: str = "") -> InvalidationRule:
    return InvalidationRule(kind=kind, operations=(Operation.UPDATE,), scope=Scope.ALL, because=because)


def test_what_is_true_of_every_plugin_comes_once() -> None:
    assert invalidation_table([]) == [NODE_LIFE]
    assert invalidation_table([_Ruled("One"), _Ruled("Other")]) == [NODE_LIFE]


def test_a_rule_is_a_row() -> None:
    rule = InvalidationRule(
        kind=Service,
        operations=(Operation.ADD, Operation.DELETE),
        scope=Scope.COUNTERS,
        when="it selects",
        because="it may",
    )
    expected = TableRow(
        operations=("ADD", "DELETE"),
        kind="Service",
        plugin="ServiceAffinity",
        design_keys=("ServiceAffinity",),
        scope="all nodes of the classes whose counters changed",
        when="it selects",
        because="it may",
    )
    assert invalidation_table([_Ruled("ServiceAffinity", rule)]) == [NODE_LIFE, expected]


def test_rows_are_by_kind_and_then_in_the_order_of_the_plugins_and_their_rules() -> None:
    plugins = [_Ruled("B", _rule(Service), _rule(Pod, "1"), _rule(Pod, "2")), _Ruled("A", _rule(Pod, "3"), _rule(Node))]
    found = [(row.kind, row.plugin, row.because) for row in invalidation_table(plugins)]
    assert found[1:] == [
        ("Node", "A", ""),
        ("Pod", "B", "1"),
        ("Pod", "B", "2"),
        ("Pod", "A", "3"),
        ("Service", "B", ""),
    ]


def test_every_rule_of_every_plugin_says_why() -> None:
    plugins = [make() for make in PLUGINS.values()]
    table = invalidation_table(plugins)
    assert len(table) == 1 + sum(len(plugin.invalidated_by) for plugin in plugins)
    assert {row.plugin for row in table} == {NODE_LIFE.plugin, *PLUGINS} - {"NodeName"}, "a node's name never changes"
    assert all(row.because for row in table)


@pytest.mark.parametrize(
    "key",
    [
        "GeneralPredicates",
        "MatchInterPodAffinity",
        "PodToleratesNodeTaints",
        "CheckNodeCondition",
        "CheckNodeMemoryPressure",
        "CheckNodeDiskPressure",
        "NoDiskConflict",
        "MaxEBSVolumeCount",
        "MaxGCEPDVolumeCount",
        "MaxAzureDiskVolumeCount",
        "MaxPDVolumeCountPredicate",
        "NoVolumeZoneConflict",
        "ServiceAffinity",
    ],
)
def test_every_key_of_the_design_is_that_of_a_plugin_of_today(key: str) -> None:
    plugins = [plugin for plugin, keys in DESIGN_KEYS.items() if key in keys]
    assert plugins
    assert set(plugins) <= PLUGINS.keys()


# What the design says in its section 3: operation, kind, key, and scope.

_AT_LEAST_AS_WIDE: Final = {
    Scope.NODE: {"the node", "all nodes", "all nodes of the classes whose counters changed"},
    Scope.ALL: {"all nodes", "all nodes of the classes whose counters changed"},
}


@pytest.mark.parametrize(
    ("operations", "kind", "key", "scope"),
    [
        *(
            ("ADD DELETE", "PersistentVolume", f"Max{disk}VolumeCount", Scope.ALL)
            for disk in ("EBS", "GCEPD", "AzureDisk")
        ),
        ("ADD DELETE", "PersistentVolumeClaim", "MaxPDVolumeCountPredicate", Scope.ALL),
        ("ADD DELETE UPDATE", "Service", "ServiceAffinity", Scope.ALL),
        ("ADD UPDATE", "Pod", "GeneralPredicates", Scope.NODE),
        ("UPDATE", "Pod", "MatchInterPodAffinity", Scope.NODE),
        ("DELETE", "Pod", "MatchInterPodAffinity", Scope.ALL),  # of the failure domain
        ("DELETE", "Pod", "NoDiskConflict", Scope.NODE),
        ("UPDATE", "Node", "GeneralPredicates", Scope.NODE),
        ("UPDATE", "Node", "ServiceAffinity", Scope.NODE),
        ("UPDATE", "Node", "MatchInterPodAffinity", Scope.NODE),
        ("UPDATE", "Node", "NoVolumeZoneConflict", Scope.NODE),
        ("UPDATE", "Node", "PodToleratesNodeTaints", Scope.NODE),
        ("UPDATE", "Node", "CheckNodeMemoryPressure", Scope.NODE),
        ("UPDATE", "Node", "CheckNodeDiskPressure", Scope.NODE),
        ("UPDATE", "Node", "CheckNodeCondition", Scope.NODE),
        # What it says of added pods is too weak (issue 67680): they can repel, attract, and take disks.
        ("ADD", "Pod", "MatchInterPodAffinity", Scope.ALL),
        ("ADD", "Pod", "NoDiskConflict", Scope.NODE),
    ],
    ids=lambda value: (value.value if isinstance(value, Scope) else value).replace(" ", "-"),
)
def test_a_row_of_the_design_is_in_the_table_or_a_stronger_one(
    operations: str, kind: str, key: str, scope: Scope
) -> None:
    table = invalidation_table([make() for make in PLUGINS.values()])
    of_the_key = [row for row in table if row.kind == kind and key in row.design_keys]
    for operation in operations.split():
        rows = [row for row in of_the_key if operation in row.operations]
        assert rows
        assert {row.scope for row in rows} <= _AT_LEAST_AS_WIDE[scope]


def test_when_a_node_is_deleted_or_added_all_predicates_lose_it() -> None:
    assert NODE_LIFE in invalidation_table([make() for make in PLUGINS.values()])
