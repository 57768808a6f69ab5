"""The contents of the mirror, and the results for a pod, as one line of golden data."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import compress
from typing import Any, Final

import msgspec

from app.dump.snapshot_file import CASE_MEMBERS
from app.explain.conformance_case.encode import V1
from app.explain.conformance_case.encode_affinity import without_broken_parts
from app.explain.conformance_case.encode_node import encode_device_class, encode_namespace, encode_node
from app.explain.conformance_case.encode_pod import encode_pod
from app.explain.conformance_case.encode_volumes import (
    encode_claim,
    encode_csi_driver,
    encode_csi_node,
    encode_csi_storage_capacity,
    encode_persistent_volume,
    encode_storage_class,
    encode_volume_attachment,
)
from app.explain.conformance_case.expected import Expected, expected_answer
from app.objects.decode_pod import decode_pod
from core.events import Kind, Object
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT
from core.objects.device_class import DeviceClass
from core.objects.namespace import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from core.objects.volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from core.plugins.interpodaffinity.plugin import InterPodAffinity

ENCODERS: Final[Mapping[Kind, Callable[[Any], V1]]] = {
    Pod: encode_pod,
    Node: encode_node,
    Namespace: encode_namespace,
    PersistentVolume: encode_persistent_volume,
    PersistentVolumeClaim: encode_claim,
    StorageClass: encode_storage_class,
    CSINode: encode_csi_node,
    CSIDriver: encode_csi_driver,
    CSIStorageCapacity: encode_csi_storage_capacity,
    VolumeAttachment: encode_volume_attachment,
    DeviceClass: encode_device_class,
}
_VOLUMES: Final = {  # member of a case -> kind of objects
    member: kind for member, kind in CASE_MEMBERS.items() if kind in ENCODERS and kind not in (Pod, Node, Namespace)
}
_encoder: Final = msgspec.json.Encoder()


class CaseArgs(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """InterPodAffinityArgs."""

    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    def plugin(self) -> InterPodAffinity:
        """Return the plugin with these arguments."""
        return InterPodAffinity(**msgspec.structs.asdict(self))


class ConformanceCase(msgspec.Struct, frozen=True):
    """A golden case with objects that are not encoded yet. They are immutable, so later changes do not affect it."""

    name: str
    args: CaseArgs
    namespaces: Mapping[str, Mapping[str, str]]
    nodes: Sequence[Node]
    pods: Sequence[Pod]
    placed: Sequence[int]
    """For each pod, whether it is on a known node. Other pods, and deleted ones, are left out of the case."""
    nominated: Sequence[Pod]
    """Pending pods that are nominated for a node."""
    pod: bytes
    """A v1.Pod as JSON."""
    volumes: Mapping[str, Sequence[Object]]
    expected: Expected
    note: str = ""
    release: str = ""
    """The release of Kubernetes of the results."""

    def pieces(self) -> Iterator[bytes]:
        """Yield the line, with its line feed, in pieces that each take a short time.

        Raises NotExpressibleError for an object without a v1 form, see encode_pod. Invalid parts of existing pods that
        affect no result are left out.
        """
        yield b'{"name":%b,"note":%b' % (_encoder.encode(self.name), _encoder.encode(self.note))
        yield b',"kubernetes":' + _encoder.encode(self.release)
        yield b',"args":' + _encoder.encode(self.args)
        yield from _member("namespaces", (encode_namespace(Namespace(*each)) for each in self.namespaces.items()))
        yield from _member("nodes", map(encode_node, self.nodes))
        yield from _member("pods", (encode_pod(without_broken_parts(pod)) for pod in compress(self.pods, self.placed)))
        if self.nominated:
            yield from _member("nominated", (encode_pod(without_broken_parts(pod)) for pod in self.nominated))
        # The scheduler's JSON, but in one line, and as valid UTF-8 in unread parts, too.
        yield b',"pod":' + msgspec.json.format(self.pod.decode(errors="replace").encode(), indent=-1)
        for member, objects in self.volumes.items():
            yield from _member(member, map(ENCODERS[_VOLUMES[member]], objects))
        yield b',"expected":%b}\n' % _encoder.encode(self.expected)


def conformance_case(name: str, mirror: ClusterMirror, pod: bytes, args: CaseArgs, note: str = "") -> ConformanceCase:
    """Return a case: the present contents of the mirror, a pod in the form of a scheduler's request, and its results.

    `expected` is the present result of *this engine*: of InterPodAffinity alone, with these arguments, over all nodes
    of the mirror. It is a claim, not a reference. To turn a bug report into a test, first replace `expected` by the
    results of upstream's plugin. If they were equal, the case guards against regressions.

    The pods of a case are the pods on known nodes, with assumed ones. Nominated pods have a list of their own: they
    count when the case is explained, but not in `expected`. No other pods count. The pod itself, which may have been
    bound meanwhile, is in neither list. A case cannot express the partition, Services and owners of pods.

    Raises DecodeError for the pod.
    """
    incoming = decode_pod(pod)
    with ExitStack() as stack:
        held = mirror.get_pod(incoming.uid)
        if held is not None and mirror.pods.slot_of_row[mirror.pods.rows[held.uid]] != NO_SLOT:
            stack.enter_context(mirror.suppose()).remove(held)
        nodes = [node for _, node in mirror.nodes]
        expected = expected_answer(args.plugin(), mirror, incoming, [node.name for node in nodes])
        # The pods are filtered while they are written. A filter over 150,000 pods here would delay schedulers too long.
        pods, placed = [*mirror.pods.pods], (mirror.pods.slot_of_row[: len(mirror.pods.pods)] != NO_SLOT).tobytes()
    volumes = {member: list(mirror.objects(kind).values()) for member, kind in _VOLUMES.items()}
    return ConformanceCase(
        name=name,
        args=args,
        namespaces=dict(mirror.namespaces),
        nodes=nodes,
        pods=pods,
        placed=placed,
        nominated=[
            each
            for nominated in mirror.pending.nominated.values()
            for uid, each in nominated.items()
            if uid != incoming.uid and not mirror.is_mirrored(uid)
        ],
        pod=pod,
        volumes={member: objects for member, objects in volumes.items() if objects},
        expected=expected,
        note=note,
        release=str(mirror.rules.release),
    )


def encoded_pod(pod: Pod) -> bytes:
    """Return a pod of the mirror, without its node, as a scheduler would send it. Raises NotExpressibleError."""
    return _encoder.encode(encode_pod(msgspec.structs.replace(pod, node_name="")))


def _member(name: str, objects: Iterable[V1]) -> Iterator[bytes]:
    yield b',"%b":[' % name.encode()
    separator = b""
    for each in objects:
        yield separator + _encoder.encode(each)
        separator = b","
    yield b"]"
