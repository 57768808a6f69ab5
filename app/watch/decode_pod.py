"""JSON of a v1.Pod to the core's value."""

from sys import intern
from typing import Final

import msgspec

from app.watch.decode import NULL, Metadata, Wire, checked_name, controller_of, decoding, labels_of
from app.watch.decode_affinity import affinity_of
from app.watch.decode_resources import WireContainer, WireContainerStatus, WirePodResources, demand_of
from core.objects.pod import Pod

_TERMINAL_PHASES: Final = frozenset({"Succeeded", "Failed"})


class _PodSpec(Wire):
    node_name: str | None = None
    affinity: msgspec.Raw = NULL
    containers: list[WireContainer] | None = None
    init_containers: list[WireContainer] | None = None
    resources: msgspec.Raw = NULL
    overhead: msgspec.Raw = NULL


class _PodStatus(Wire):
    phase: str | None = None
    qos_class: str | None = None
    conditions: msgspec.Raw = NULL
    container_statuses: list[WireContainerStatus] | None = None
    init_container_statuses: list[WireContainerStatus] | None = None


class _Pod(Wire):
    kind: str | None = None
    metadata: Metadata | None = None
    spec: _PodSpec | None = None
    status: _PodStatus | None = None


_pod_decoder: Final = msgspec.json.Decoder(_Pod)
_EMPTY_METADATA: Final = Metadata()
_EMPTY_SPEC: Final = _PodSpec()
_EMPTY_STATUS: Final = _PodStatus()


def decode_pod(raw: bytes | msgspec.Raw) -> Pod:
    """Decode a v1.Pod. Without a uid (a hand-written manifest) NAMESPACE/NAME identifies it.

    Broken affinity terms do not raise: they are in `Pod.affinity.errors`, for the caller to refuse or to tolerate.
    Raises DecodeError.
    """
    wire = decoding(_pod_decoder.decode, raw)
    metadata = wire.metadata or _EMPTY_METADATA
    name = checked_name("Pod", wire.kind, metadata)
    spec = wire.spec or _EMPTY_SPEC
    status = wire.status or _EMPTY_STATUS
    namespace = intern(metadata.namespace or "default")
    demand = demand_of(
        WirePodResources(
            spec.containers,
            spec.init_containers,
            spec.resources,
            spec.overhead,
            status.container_statuses,
            status.init_container_statuses,
            status.conditions,
            status.qos_class,
        )
    )
    return Pod(
        uid=metadata.uid or f"{namespace}/{name}",
        namespace=namespace,
        name=name,
        labels=labels_of(metadata),
        node_name=intern(spec.node_name or ""),
        terminal=status.phase in _TERMINAL_PHASES,
        affinity=affinity_of(namespace, bytes(spec.affinity)),
        requests=demand.requests,
        best_effort=demand.best_effort,
        controller=controller_of(metadata),
        resource_version=metadata.resource_version or "",
    )
