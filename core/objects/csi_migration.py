"""In-tree volumes in the form of the CSI drivers that have taken them over: driver, handle and topology.

Source: k8s.io/csi-translation-lib translate.go and plugins/{in_tree_volume,aws_ebs,gce_pd,azure_disk,openstack_cinder,
portworx}.go, and isCSIMigrationOn of k8s.io/kubernetes pkg/scheduler/framework/plugins/nodevolumelimits/utils.go.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

from core.objects.affinity import Comparison, NodeSelector, NodeSelectorTerm
from core.objects.labels import Operator, Requirement, requirement
from core.objects.node import BETA_REGION, BETA_ZONE, REGION, ZONE
from core.objects.pod import InlineDisk
from core.objects.volumes import PersistentVolume, VolumeSource

AWS_EBS: Final = "kubernetes.io/aws-ebs"
GCE_PD: Final = "kubernetes.io/gce-pd"
AZURE_DISK: Final = "kubernetes.io/azure-disk"
CINDER: Final = "kubernetes.io/cinder"
PORTWORX: Final = "kubernetes.io/portworx-volume"

CSI_DRIVERS: Final[Mapping[str, str]] = {
    AWS_EBS: "ebs.csi.aws.com",
    GCE_PD: "pd.csi.storage.gke.io",
    AZURE_DISK: "disk.csi.azure.com",
    CINDER: "cinder.csi.openstack.org",
    PORTWORX: "pxd.portworx.com",
}
"""In-tree plugin -> its CSI driver, for the plugins whose migration affects scheduling."""

NEVER_COUNTED: Final = frozenset({"kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"})
"""Plugins with CSI drivers whose volumes do not affect scheduling."""

_TOPOLOGY_KEYS: Final[Mapping[str, str]] = {  # the other drivers have no zones
    AWS_EBS: "topology.ebs.csi.aws.com/zone",
    GCE_PD: "topology.gke.io/zone",
    CINDER: "topology.cinder.csi.openstack.org/zone",
}
ZONES_DELIMITER: Final = "__"
"""Between the zones in a label of a volume (cloud-provider volume/constants.go, LabelMultiZoneDelimiter)."""
_UNSPECIFIED: Final = "UNSPECIFIED"
_PARTS_OF_A_ZONE: Final = 3
_ebs_volume: Final = re.compile("vol-[^/]*")


class TranslationError(ValueError):
    """A volume has no CSI equivalent. The message is upstream's."""


class CSIVolume(msgspec.Struct, frozen=True, gc=False):
    """A volume in the form of its driver. Volumes with the same `unique_name` are the same."""

    driver: str
    handle: str

    @property
    def unique_name(self) -> str:
        """The identity of a volume (upstream getVolumeUniqueName)."""
        return f"{self.driver}/{self.handle}"


def is_migratable(source: VolumeSource | None) -> bool:
    """Return whether a volume has an in-tree source whose migration affects scheduling."""
    return source is not None and source.in_tree and source.plugin in CSI_DRIVERS


def translate_inline(disk: InlineDisk) -> CSIVolume:
    """Return an inline disk of a pod in the form of its driver. Raises TranslationError.

    The zone of the disk is unknown. So a GCE disk differs from the same disk behind a PersistentVolume with a zone
    label.
    """
    return CSIVolume(CSI_DRIVERS[disk.source.plugin], _handle(disk.source, ""))


def translate_volume(volume: PersistentVolume) -> CSIVolume:
    """Return a PersistentVolume with a migratable source in the form of its driver. Raises TranslationError."""
    source = volume.source
    if source is None or not is_migratable(source):
        raise TranslationError(f"could not find in-tree plugin translation logic for {volume.name}")
    return CSIVolume(CSI_DRIVERS[source.plugin], _handle(source, zones_label(volume)))


def zones_label(volume: PersistentVolume) -> str:
    """Return the zones in a volume's labels. The handle of a GCE disk contains them."""
    return volume.labels.get(BETA_ZONE, "") or volume.labels.get(ZONE, "")


def translate_affinity(volume: PersistentVolume) -> NodeSelector | None:
    """Return which nodes can reach a volume with a migratable source, if its plugin is migrated.

    The zone key is replaced by the driver's. Without a zone key, the zones in the volume's label apply. Raises
    TranslationError. Source: translateTopologyFromInTreeToCSI.
    """
    translate_volume(volume)
    key = _TOPOLOGY_KEYS.get(volume.source.plugin) if volume.source is not None else None
    if key is None:
        return volume.node_affinity
    terms = volume.node_affinity.terms if volume.node_affinity is not None else ()
    zone, region = _topology_labels(terms, volume.labels)
    renamed = {BETA_REGION: REGION} if region == BETA_REGION and _has_values(terms, region) else {}
    if _has_values(terms, zone):
        renamed[zone] = key
        added = None
    else:
        added = _zones_requirement(key, volume.labels.get(zone, ""))
    if not renamed and added is None:
        return volume.node_affinity
    return NodeSelector(tuple(_renamed(term, renamed, added) for term in terms or (NodeSelectorTerm(),)))


def _topology_labels(terms: Iterable[NodeSelectorTerm], labels: Mapping[str, str]) -> tuple[str, str]:
    """Return the zone and region keys of a volume. Those in its affinity take precedence (getTopologyLabel)."""
    keys = {each.key for term in terms for each in _expressions(term)}
    for known in (keys, labels):
        if ZONE in known:
            break
        if BETA_ZONE in known:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _expressions(term: NodeSelectorTerm) -> tuple[Requirement | Comparison, ...]:
    return (*term.requirements, *term.comparisons)


def _has_values(terms: Iterable[NodeSelectorTerm], key: str) -> bool:
    return any(
        each.key == key and (isinstance(each, Comparison) or bool(each.values))
        for term in terms
        for each in _expressions(term)
    )


def _zones_requirement(key: str, label: str) -> Requirement | None:
    zones = [zone for part in label.split(ZONES_DELIMITER) if (zone := part.strip())]
    return requirement(key, Operator.IN, zones) if zones else None


def _renamed(term: NodeSelectorTerm, renamed: Mapping[str, str], added: Requirement | None) -> NodeSelectorTerm:
    if term.errors:  # the term matches no node, whatever its keys
        return term
    requirements = [msgspec.structs.replace(each, key=renamed.get(each.key, each.key)) for each in term.requirements]
    comparisons = [msgspec.structs.replace(each, key=renamed.get(each.key, each.key)) for each in term.comparisons]
    return NodeSelectorTerm(
        tuple(sorted({*requirements, *((added,) if added else ())})), tuple(sorted(comparisons)), term.fields
    )


def _handle(source: VolumeSource, zones: str) -> str:
    if source.plugin == AWS_EBS:
        return _ebs_handle(source.volume)
    if source.plugin == GCE_PD:
        return _gce_handle(source.volume, zones)
    if source.kind is not None and source.kind.lower() != "managed":
        raise TranslationError(f"kind({source.kind}) is not supported in csi migration")
    return source.volume


def _ebs_handle(volume: str) -> str:
    """Upstream KubernetesVolumeIDToEBSVolumeID: `aws://ZONE/vol-1` and `aws:///vol-1` are `vol-1`."""
    if not volume.startswith("aws://"):
        return volume
    problem = "failed to translate Kubernetes ID to EBS Volume ID "
    try:
        handle = unquote(urlsplit(volume).path).strip("/")
    except ValueError as error:
        raise TranslationError(f"{problem}Invalid disk name ({volume}): {error}") from None
    if _ebs_volume.fullmatch(handle) is None:
        raise TranslationError(f"{problem}Invalid format for AWS volume ({volume})")
    return handle


def _gce_handle(disk: str, zones: str) -> str:
    names = zones.split(ZONES_DELIMITER)
    if len(names) > 1:
        return f"projects/{_UNSPECIFIED}/regions/{_region_of(names)}/disks/{disk}"
    return f"projects/{_UNSPECIFIED}/zones/{names[0] or _UNSPECIFIED}/disks/{disk}"


def _region_of(zones: Iterable[str]) -> str:
    """Upstream gceGetRegionFromZones."""
    problem = "failed to get region from zones: "
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != _PARTS_OF_A_ZONE:
            raise TranslationError(
                f"{problem}zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
            )
        regions.add("-".join(parts[:-1]))
    if len(regions) > 1:
        rendered = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise TranslationError(f"{problem}multiple or no regions gotten from zones, got: map[{rendered}]")
    return regions.pop()
