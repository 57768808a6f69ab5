"""The chosen pod: its name, or TYPE/NAME of an owner of pods, as kubectl takes them, looked up in the cluster."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import click
import msgspec

from app.api_server.client import ApiClient, StatusError
from app.commands.why.cluster import Right, needing
from app.objects.decode import NULL, DecodeError, Expression, LabelSelector, decoding, text_map_of, texts
from app.objects.decode_pod import decode_pod
from app.process.json_text import encode
from core.objects.pod import Pod


class Workload(NamedTuple):
    """A kind of object that selects its pods by labels."""

    kind: str
    short: str
    group: str = ""

    @property
    def plural(self) -> str:
        """The name of the resource."""
        return f"{self.kind.lower()}s"

    def path(self, namespace: str, name: str) -> str:
        """Return the path of an object."""
        root = f"/apis/{self.group}/v1" if self.group else "/api/v1"
        return f"{root}/namespaces/{quote(namespace, safe='')}/{self.plural}/{quote(name, safe='')}"


_PODS: Final = Workload("Pod", "po")
_WORKLOADS: Final = (
    _PODS,
    Workload("Deployment", "deploy", "apps"),
    Workload("StatefulSet", "sts", "apps"),
    Workload("ReplicaSet", "rs", "apps"),
    Workload("DaemonSet", "ds", "apps"),
    Workload("Job", "job", "batch"),
    Workload("ReplicationController", "rc"),
)
_TYPES: Final[Mapping[str, Workload]] = {
    name: each for each in _WORKLOADS for name in (each.short, each.plural, each.kind.lower())
}
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

    pod: Pod
    manifest: bytes


class _WorkloadSpec(msgspec.Struct):
    selector: msgspec.Raw = NULL


class _WorkloadObject(msgspec.Struct):
    spec: _WorkloadSpec


class _PodList(msgspec.Struct):
    items: list[msgspec.Raw]


_list_decoder: Final = msgspec.json.Decoder(_PodList)
_workload_decoder: Final = msgspec.json.Decoder(_WorkloadObject)
_selector_decoder: Final = msgspec.json.Decoder(LabelSelector)


def parse_argument(words: Sequence[str]) -> Argument:
    """Read `NAME`, `TYPE/NAME` or `TYPE NAME`. Raises UsageError."""
    parts = words[0].split("/") if len(words) == 1 else [*words]
    match parts:
        case [name] if name:
            return Argument(_PODS, name)
        case [kind, name] if kind and name and "/" not in name:
            type_name, _, group = kind.lower().partition(".")
            found = _TYPES.get(type_name)
            if found is not None and group in {"", found.group}:
                return Argument(found, name)
            there_are = ", ".join(each.short for each in _WORKLOADS)
            raise click.UsageError(
                f"unknown type {kind!r} (there are {there_are}); a pod of another namespace is {name} -n {kind}."
            )
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
        found = await _pods(client, "/api/v1/pods", fieldSelector=f"metadata.name={name}")
    if not found:
        raise NotPendingError(f"no pod {name} in any namespace")
    if len(found) > 1:
        names = ", ".join(sorted(decode_pod(raw).namespace for raw in found))
        raise NotPendingError(f"there are several pods {name}; choose one with -n: {names}")
    return _pending(found[0])


async def _pods(client: ApiClient, path: str, **selection: str) -> list[msgspec.Raw]:
    answer = await client.get(path, {**selection, "limit": str(_MANY)})
    return decoding(_list_decoder.decode, answer).items


async def _pod_of_workload(client: ApiClient, argument: Argument, namespace: str) -> PendingPod:
    if not namespace:
        raise click.UsageError(f"-A is for a pod; name the namespace of {argument} with -n.")
    kind = argument.kind
    async with needing(Right("get", kind.plural, kind.group, namespace)):
        selector = _selector(await _object(client, argument, namespace), kind)
    async with needing(Right("list", "pods", namespace=namespace)):
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
        pods = [(decode_pod(raw), raw) for raw in await _pods(client, path, labelSelector=selector)]
    waiting = [(pod, raw) for pod, raw in pods if not _not_pending(pod)]
    if not waiting:
        states = ", ".join(f"{pod.name} {_not_pending(pod)}" for pod, _ in pods[:3])
        raise NotPendingError(f"{argument} has no pending pod among {len(pods)}{': ' if states else ''}{states}")
    _, raw = min(waiting, key=lambda each: (each[0].waiting.created, each[0].name))
    return _pending(raw)


def _not_pending(pod: Pod) -> str:
    """Return why the pod does not wait for a node; empty if it does."""
    if pod.terminal:
        return "has ended"
    if pod.node_name:
        return f"is on node {pod.node_name} already"
    return "is being deleted" if pod.terminating else ""


def _selector(raw: bytes, kind: Workload) -> str:
    """Return the label selector of a workload as a request has it. Raises DecodeError."""
    selector = decoding(_workload_decoder.decode, raw).spec.selector
    if selector == NULL:
        raise DecodeError("spec.selector", "required")
    if kind.kind == "ReplicationController":
        labels, expressions = text_map_of(selector, "spec.selector"), None
    else:
        found = decoding(_selector_decoder.decode, selector)
        labels, expressions = texts(found.match_labels), found.match_expressions
    return ",".join((*(f"{key}={value}" for key, value in labels.items()), *map(_written, expressions or ())))


def _written(expression: Expression) -> str:
    match expression.operator:
        case "Exists":
            return f"{expression.key}"
        case "DoesNotExist":
            return f"!{expression.key}"
        case operator:
            return f"{expression.key} {_OPERATORS.get(operator or '', operator)} ({','.join(expression.values or ())})"


def _pending(raw: bytes | msgspec.Raw) -> PendingPod:
    pod = decode_pod(raw)
    if why := _not_pending(pod):
        raise NotPendingError(f"pod {pod.full_name} {why}: nothing keeps it pending")
    manifest: dict[str, Any] = decoding(msgspec.json.decode, raw)
    manifest["metadata"].pop("managedFields", None)  # often more than half of the manifest
    return PendingPod(pod, encode(manifest))
