"""The resources of the API that Kindred can watch: the path and the decoder of each."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from app.objects import decode_node, decode_storage
from app.objects.decode import DecodeError, Wire, decoding
from app.objects.decode_claims import decode_resource_claim
from app.objects.decode_devices import decode_device_class, decode_device_taint_rule, decode_resource_slice
from app.objects.decode_groups import decode_pod_group, decode_scheduling_group
from app.objects.decode_pod import WirePod, decode_pod
from core.events import Kind, Object
from core.objects import kinds, volumes
from core.objects.devices import DeviceTaintRule, ResourceClaim, ResourceSlice
from core.objects.groups import PodGroup, SchedulingGroup
from core.objects.node import Node
from core.objects.pod import Pod

Decoder: TypeAlias = Callable[[bytes | msgspec.Raw], Object]


class PodEvent(msgspec.Struct, frozen=True, gc=False):
    """One line of a watch of pods, with the pod decoded. As in WatchEvent."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    object: WirePod


pod_events: Final = msgspec.json.Decoder(PodEvent).decode_lines


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """One resource of the API. `group` is empty for the core group.

    `field_selector` leaves out objects that no decision reads. `decode` raises DecodeError.
    """

    kind: Kind
    decode: Decoder
    group: str = ""
    version: str = "v1"
    field_selector: str = ""
    optional: bool = False
    """Whether an API server may lack the resource: it has an older release, or no CustomResourceDefinition."""
    absence_is_unknown: bool = False
    """Whether explanations say so if the API server lacks the resource, instead of taking it for no object."""
    older: Sequence[str] = ()
    """Versions to use if the server lacks `version`, the newest first. One decoder reads them all."""
    kind_name: str = ""
    """The kind of the API, if the core's kind has another name. Another group has a kind and a plural of that name."""
    short: str = ""
    """kubectl's short name. Empty if it has none."""

    @property
    def plural(self) -> str:
        """The plural. Source: k8s.io/apimachinery pkg/api/meta/restmapper.go (UnsafeGuessKindToResource)."""
        kind = self.api_kind.lower()
        if kind.endswith("y"):
            return f"{kind[:-1]}ies"
        return f"{kind}es" if kind.endswith("s") else f"{kind}s"

    @property
    def name(self) -> str:
        """The name in logs, metrics and reports: the plural, with the group if another group has the same plural."""
        return f"{self.plural}.{self.group}" if self.kind_name else self.plural

    @property
    def api_kind(self) -> str:
        """The kind of the API."""
        return self.kind_name or self.kind.__name__

    @property
    def api_versions(self) -> str:
        """The apiVersions of objects in all versions: `policy/v1`, `scheduling.k8s.io/v1, v1beta1`."""
        return ", ".join((self.api_version, *self.older))

    def versions(self) -> "Iterator[Resource]":
        """Yield the resource in each version, the newest first."""
        yield self
        for version in self.older:
            yield replace(self, version=version)

    @property
    def api_version(self) -> str:
        """The apiVersion of objects: `v1`, `policy/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def path(self) -> str:
        """The path at which the objects of all namespaces are listed and watched."""
        return f"/apis/{self.api_version}/{self.plural}" if self.group else f"/api/{self.api_version}/{self.plural}"

    @property
    def params(self) -> dict[str, str]:
        """The parameters of each list and watch, in a dict of the caller's own."""
        return {"fieldSelector": self.field_selector} if self.field_selector else {}

    @property
    def rbac_rule(self) -> str:
        """The rule of a ClusterRole for list and watch of the resource, as one line of YAML."""
        return rule_text(self.group, [self.plural], ["list", "watch"])


def rule_text(group: str, plurals: Sequence[str], verbs: Sequence[str] = ("list",), names: Sequence[str] = ()) -> str:
    """Return the rule of a role for some resources of an API group, or those with a name, as one line of YAML."""
    parts = {"apiGroups": [group], "resources": plurals, "resourceNames": names, "verbs": verbs}
    texts = {key: ", ".join(f'"{each}"' for each in values) for key, values in parts.items() if values}
    return ", ".join(f"{key}: [{text}]" for key, text in texts.items())


_STORAGE: Final = "storage.k8s.io"
_of_devices: Final = partial(Resource, group="resource.k8s.io", optional=True)
_ALL: Final = (
    Resource(kind=Node, short="no", decode=decode_node.decode_node),
    Resource(kind=Pod, short="po", decode=decode_pod, field_selector="status.phase!=Succeeded,status.phase!=Failed"),
    Resource(kind=kinds.Namespace, short="ns", decode=decode_node.decode_namespace),
    Resource(kind=volumes.PersistentVolume, short="pv", decode=decode_storage.decode_persistent_volume),
    Resource(kind=volumes.PersistentVolumeClaim, short="pvc", decode=decode_storage.decode_persistent_volume_claim),
    Resource(kind=volumes.StorageClass, short="sc", decode=decode_storage.decode_storage_class, group=_STORAGE),
    Resource(kind=volumes.CSINode, decode=decode_storage.decode_csi_node, group=_STORAGE),
    Resource(kind=volumes.CSIDriver, decode=decode_storage.decode_csi_driver, group=_STORAGE),
    Resource(kind=volumes.CSIStorageCapacity, decode=decode_storage.decode_csi_storage_capacity, group=_STORAGE),
    Resource(kind=volumes.VolumeAttachment, decode=decode_storage.decode_volume_attachment, group=_STORAGE),
    Resource(kind=kinds.Service, short="svc", decode=decode_node.decode_service),
    Resource(
        kind=kinds.PodDisruptionBudget, short="pdb", decode=decode_node.decode_pod_disruption_budget, group="policy"
    ),
    # PartialObjectMetadata would be a fraction of the bytes, but default constraints need `spec.selector`.
    Resource(kind=kinds.ReplicaSet, short="rs", decode=decode_node.decode_replica_set, group="apps"),
    Resource(kind=kinds.StatefulSet, short="sts", decode=decode_node.decode_stateful_set, group="apps"),
    Resource(kind=kinds.ReplicationController, short="rc", decode=decode_node.decode_replication_controller),
    _of_devices(kind=kinds.DeviceClass, decode=decode_device_class),
    _of_devices(kind=ResourceSlice, decode=decode_resource_slice, absence_is_unknown=True),
    _of_devices(kind=ResourceClaim, decode=decode_resource_claim, absence_is_unknown=True),
    _of_devices(kind=DeviceTaintRule, decode=decode_device_taint_rule, absence_is_unknown=True),
    Resource(kind=PodGroup, decode=decode_pod_group, group="scheduling.x-k8s.io", version="v1alpha1", optional=True),
    # 1.36 has v1alpha2, and 1.37 v1beta1 and v1alpha3. None of them is served by default.
    Resource(
        kind=SchedulingGroup,
        kind_name="PodGroup",
        decode=decode_scheduling_group,
        group="scheduling.k8s.io",
        older=("v1beta1", "v1alpha3", "v1alpha2"),
        optional=True,
    ),
)

RESOURCES: Final[Mapping[Kind, Resource]] = {resource.kind: resource for resource in _ALL}


# Dumps for kubectl.

OF_MANIFESTS: Final[Mapping[str, str]] = {
    "PriorityClass": "pc",
    "RuntimeClass": "runtimeclasses",
    "LimitRange": "limits",
    "ControllerRevision": "controllerrevisions",
    "ResourceClaimTemplate": "resourceclaimtemplates",
}
"""Kinds that only the stored pod of a manifest depends on -> their names for kubectl."""


def dump_command(kinds: Iterable[Kind]) -> str:
    """Return the command that prints all objects of these kinds."""
    return _printing([resource.short or resource.plural for resource in map(RESOURCES.__getitem__, kinds)])


def list_command(kind: Kind) -> str:
    """Return the command that prints the list of all objects of a kind, which names the kind if there are none."""
    return f"kubectl get --raw {RESOURCES[kind].path}"


def _printing(names: Iterable[str]) -> str:
    return f"kubectl get -A -o json {','.join(names)}"


_IN_EVERY_CLUSTER: Final = [
    each for each in _ALL if not each.optional or each.kind in {kinds.DeviceClass, ResourceSlice, ResourceClaim}
]
"""Without the kinds that few servers have, because kubectl then prints nothing at all. 1.37 has DeviceTaintRule."""
DUMP_COMMAND: Final = _printing((*(each.short or each.plural for each in _IN_EVERY_CLUSTER), *OF_MANIFESTS.values()))
"""The command that prints all objects that a rule may read."""


class _Metadata(Wire):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class _Identified(Wire):
    metadata: _Metadata | None = None


_identity_decoder: Final = msgspec.json.Decoder(_Identified)


def decode_identity(raw: bytes | msgspec.Raw | WirePod) -> tuple[str, str, str]:
    """Return (full name, uid, resource version) of an object of any kind, from its metadata alone.

    Only for objects from the API server, which always have a name and a namespace. Raises DecodeError.
    """
    wire = raw if isinstance(raw, WirePod) else decoding(_identity_decoder.decode, raw)
    metadata = wire.metadata or _Metadata()
    if not metadata.name:
        raise DecodeError("metadata.name", "required")
    full_name = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
    return full_name, metadata.uid or "", metadata.resource_version or ""
