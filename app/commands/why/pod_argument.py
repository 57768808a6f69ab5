"""The chosen pod: its name, or TYPE/NAME of an owner of pods, as kubectl takes them, looked up in the cluster."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import click
import msgspec

from app.api_server.client import ApiClient, StatusError
from app.commands.why.cluster import Right, needing
from app.objects.decode import NULL, DecodeError, decoding
from app.process.json_text import encode


class Workload(NamedTuple):
    """A kind of object that selects its pods by labels."""

    kind: str
    plural: str
    group: str
    short: str

    def path(self, namespace: str, name: str) -> str:
        """Return the path of an object."""
        root = f"/apis/{self.group}/v1" if self.group else "/api/v1"
        return f"{root}/namespaces/{quote(namespace, safe='')}/{self.plural}/{quote(name, safe='')}"

    @property
    def names(self) -> tuple[str, ...]:
        """The TYPE names of kubectl."""
        plain = (self.short, self.plural, self.kind.lower())
        return (*plain, *(f"{each}.{self.group}" for each in plain[1:])) if self.group else plain


_PODS: Final = Workload("Pod", "pods", "", "po")
_WORKLOADS: Final = (
    Workload("Deployment", "deployments", "apps", "deploy"),
    Workload("StatefulSet", "statefulsets", "apps", "sts"),
    Workload("ReplicaSet", "replicasets", "apps", "rs"),
    Workload("DaemonSet", "daemonsets", "apps", "ds"),
    Workload("Job", "jobs", "batch", "job"),
    Workload("ReplicationController", "replicationcontrollers", "", "rc"),
)
_TYPES: Final[Mapping[str, Workload]] = {name: each for each in (_PODS, *_WORKLOADS) for name in each.names}
_MANY: Final = 500  # pods of one workload that are read
_OPERATORS: Final[Mapping[str, str]] = {"In": "in", "NotIn": "notin"}


class NotPendingError(Exception):
    """The pod does not exist, or does not wait for a node. The message says which, and the next step."""


class Argument(NamedTuple):
    """The argument on the command line."""

    kind: Workload
    name: str

    def __str__(self) -> str:
        """Return it for people."""
        return f"{self.kind.kind.lower()} {self.name}"


class PendingPod(NamedTuple):
    """A pod that waits for a node."""

    full_name: str
    manifest: bytes
    gates: Sequence[str]


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class _Named(msgspec.Struct):
    name: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str | None = None
    scheduling_gates: list[_Named] | None = None


class _Status(msgspec.Struct, frozen=True):
    phase: str | None = None


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec
    status: _Status = _Status()

    @property
    def full_name(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    def is_not_pending(self) -> str:
        """Return why the pod does not wait for a node; empty if it does."""
        if self.status.phase in {"Succeeded", "Failed"}:
            return f"has ended ({self.status.phase})"
        if self.spec.node_name:
            return f"is on node {self.spec.node_name} already"
        return "is being deleted" if self.metadata.deletion_timestamp else ""


class _Expression(msgspec.Struct):
    key: str
    operator: str
    values: list[str] | None = None


class _Selector(msgspec.Struct, rename="camel"):
    match_labels: dict[str, str] | None = None
    match_expressions: list[_Expression] | None = None


class _WorkloadSpec(msgspec.Struct):
    selector: msgspec.Raw = NULL


class _WorkloadObject(msgspec.Struct):
    spec: _WorkloadSpec


class _PodList(msgspec.Struct):
    items: list[msgspec.Raw]


_pod_decoder: Final = msgspec.json.Decoder(_Pod)
_list_decoder: Final = msgspec.json.Decoder(_PodList)
_workload_decoder: Final = msgspec.json.Decoder(_WorkloadObject)
_labels_decoder: Final = msgspec.json.Decoder(dict[str, str])
_selector_decoder: Final = msgspec.json.Decoder(_Selector)


def parse_argument(words: Sequence[str]) -> Argument:
    """Read `NAME`, `TYPE/NAME` or `TYPE NAME`. Raises UsageError."""
    parts = words[0].split("/") if len(words) == 1 else [*words]
    match parts:
        case [name] if name:
            return Argument(_PODS, name)
        case [kind, name] if kind and name and "/" not in name:
            found = _TYPES.get(kind.lower())
            if found is None:
                there_are = ", ".join(each.short for each in (_PODS, *_WORKLOADS))
                raise click.UsageError(
                    f"unknown type {kind!r} (there are {there_are}); a pod of another namespace is {name} -n {kind}."
                )
            return Argument(found, name)
        case _:
            raise click.UsageError("Give one pod: NAME, TYPE/NAME or TYPE NAME.")


async def find_pod(client: ApiClient, argument: Argument, namespace: str) -> PendingPod:
    """Return the selected pod; for a workload, the one that has waited longest.

    An empty namespace stands for all of them. Raises NotPendingError, MissingRightsError, ApiError, CredentialsError
    and DecodeError.
    """
    if argument.kind is not _PODS:
        return await _pod_of_workload(client, argument, namespace)
    if not namespace:
        return await _pod_anywhere(client, argument.name)
    async with needing(Right("get", "pods", namespace=namespace)):
        raw = await _object(client, argument, namespace)
    return _pending(raw)


async def _object(client: ApiClient, argument: Argument, namespace: str) -> bytes:
    try:
        return await client.get(argument.kind.path(namespace, argument.name), {})
    except StatusError as error:
        if error.code != HTTPStatus.NOT_FOUND:
            raise
    raise NotPendingError(f"no {argument} in namespace {namespace}; name another with -n, or look in all with -A")


async def _pod_anywhere(client: ApiClient, name: str) -> PendingPod:
    async with needing(Right("list", "pods")):
        answer = await client.get("/api/v1/pods", {"fieldSelector": f"metadata.name={name}", "limit": str(_MANY)})
    found = decoding(_list_decoder.decode, answer).items
    if not found:
        raise NotPendingError(f"no pod {name} in any namespace")
    if len(found) > 1:
        names = sorted(decoding(_pod_decoder.decode, raw).metadata.namespace for raw in found)
        raise NotPendingError(f"there are several pods {name}; choose one with -n: {', '.join(names)}")
    return _pending(found[0])


async def _pod_of_workload(client: ApiClient, argument: Argument, namespace: str) -> PendingPod:
    if not namespace:
        raise click.UsageError(f"-A is for a pod; name the namespace of {argument} with -n.")
    kind = argument.kind
    async with needing(Right("get", kind.plural, kind.group, namespace)):
        selector = _selector(await _object(client, argument, namespace), kind)
    async with needing(Right("list", "pods", namespace=namespace)):
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
        answer = await client.get(path, {"labelSelector": selector, "limit": str(_MANY)})
    pods = [(decoding(_pod_decoder.decode, raw), raw) for raw in decoding(_list_decoder.decode, answer).items]
    waiting = [(pod, raw) for pod, raw in pods if not pod.is_not_pending()]
    if not waiting:
        states = ", ".join(f"{pod.metadata.name} {pod.is_not_pending()}" for pod, _ in pods[:3])
        raise NotPendingError(f"{argument} has no pending pod among {len(pods)}{': ' if states else ''}{states}")
    _, raw = min(waiting, key=lambda each: (each[0].metadata.creation_timestamp or "", each[0].metadata.name))
    return _pending(raw)


def _selector(raw: bytes, kind: Workload) -> str:
    """Return the label selector of a workload as a request has it. Raises DecodeError."""
    spec = decoding(_workload_decoder.decode, raw).spec
    if spec.selector == NULL:
        raise DecodeError("spec.selector", "required")
    if kind.kind == "ReplicationController":
        return ",".join(f"{key}={value}" for key, value in decoding(_labels_decoder.decode, spec.selector).items())
    found = decoding(_selector_decoder.decode, spec.selector)
    parts = [f"{key}={value}" for key, value in (found.match_labels or {}).items()]
    return ",".join((*parts, *map(_requirement, found.match_expressions or ())))


def _requirement(expression: _Expression) -> str:
    match expression.operator:
        case "Exists":
            return expression.key
        case "DoesNotExist":
            return f"!{expression.key}"
        case operator:
            return f"{expression.key} {_OPERATORS.get(operator, operator)} ({','.join(expression.values or ())})"


def _pending(raw: bytes | msgspec.Raw) -> PendingPod:
    pod = decoding(_pod_decoder.decode, raw)
    if why := pod.is_not_pending():
        raise NotPendingError(f"pod {pod.full_name} {why}: nothing keeps it pending")
    manifest: dict[str, Any] = decoding(msgspec.json.decode, raw)
    manifest["metadata"].pop("managedFields", None)  # often more than half of the manifest
    return PendingPod(pod.full_name, encode(manifest), [gate.name for gate in pod.spec.scheduling_gates or ()])
