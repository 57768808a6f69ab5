"""JSON of storage.k8s.io/v1 StorageClasses and CSINodes to the core's values."""

from typing import Final

import msgspec

from app.objects.decode import AnnotatedMetadata, Int32, Metadata, Wire, checked_name, decoding
from core.objects.node_selector import NodeSelector, parse_node_selector
from core.objects.volumes import CSINode, StorageClass

_MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"


class _TopologyExpression(Wire):
    key: str | None = None
    values: list[str] | None = None


class _TopologyTerm(Wire):
    match_label_expressions: list[_TopologyExpression] | None = None


class _StorageClass(Wire):
    kind: str | None = None
    metadata: Metadata | None = None
    provisioner: str | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: list[_TopologyTerm] | None = None


class _Allocatable(Wire):
    count: Int32 | None = None


class _Driver(Wire):
    name: str | None = None
    allocatable: _Allocatable | None = None


class _CSINodeSpec(Wire):
    drivers: list[_Driver] | None = None


class _CSINode(Wire):
    kind: str | None = None
    metadata: AnnotatedMetadata | None = None
    spec: _CSINodeSpec | None = None


_class_decoder: Final = msgspec.json.Decoder(_StorageClass)
_csi_node_decoder: Final = msgspec.json.Decoder(_CSINode)


def decode_storage_class(raw: bytes | msgspec.Raw) -> StorageClass:
    """Decode a storage.k8s.io/v1 StorageClass. Raises DecodeError."""
    wire = decoding(_class_decoder.decode, raw)
    metadata = wire.metadata or Metadata()
    return StorageClass(
        name=checked_name("StorageClass", wire.kind, metadata),
        provisioner=wire.provisioner or "",
        volume_binding_mode=wire.volume_binding_mode,
        allowed_topologies=_topologies(wire.allowed_topologies or []),
        uid=metadata.uid or "",
        resource_version=metadata.resource_version or "",
    )


def decode_csi_node(raw: bytes | msgspec.Raw) -> CSINode:
    """Decode a storage.k8s.io/v1 CSINode. Raises DecodeError."""
    wire = decoding(_csi_node_decoder.decode, raw)
    metadata = wire.metadata or AnnotatedMetadata()
    drivers = (wire.spec or _CSINodeSpec()).drivers or []
    migrated = (metadata.annotations or {}).get(_MIGRATED_PLUGINS)
    return CSINode(
        name=checked_name("CSINode", wire.kind, metadata),
        volume_limits={
            driver.name or "": driver.allocatable.count
            for driver in drivers
            if driver.allocatable is not None and driver.allocatable.count is not None
        },
        drivers=frozenset(driver.name or "" for driver in drivers),
        migrated_plugins=frozenset(migrated.split(",") if migrated else ()),
        uid=metadata.uid or "",
        resource_version=metadata.resource_version or "",
    )


def _topologies(terms: list[_TopologyTerm]) -> NodeSelector | None:
    """Upstream MatchTopologySelectorTerms: no terms allow every node, an empty or invalid term allows none."""
    if not terms:
        return None
    return parse_node_selector(
        [
            ([(each.key or "", "In", each.values or ()) for each in term.match_label_expressions or ()], ())
            for term in terms
        ]
    )
