"""The pod that a text names: [NAMESPACE/][TYPE/]NAME, with the types of kubectl, or a uid."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from core.objects.pod import Pod

_SHORT: Final[Mapping[str, str]] = {
    "Pod": "po",
    "Deployment": "deploy",
    "StatefulSet": "sts",
    "ReplicaSet": "rs",
    "DaemonSet": "ds",
    "Job": "job",
    "CronJob": "cj",
    "ReplicationController": "rc",
}
_TYPES: Final[Mapping[str, str]] = {
    name: kind for kind, short in _SHORT.items() for name in (short, kind.lower(), f"{kind.lower()}s")
}
WORKLOADS: Final = tuple(kind for kind in _SHORT if kind != "Pod")
"""Kinds of which a text may mean the pod that has waited longest."""


class PodQuery(NamedTuple):
    """A text in its parts."""

    namespace: str
    """Empty for any."""
    kind: str
    """One of WORKLOADS. Empty for a pod."""
    name: str
    """Perhaps a uid."""

    @property
    def key(self) -> str:
        """NAMESPACE/NAME, or NAME in any namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def has(self, pod: Pod) -> bool:
        """Return whether a pod waits for a node, and is of this workload."""
        waits = not (pod.node_name or pod.terminating or pod.terminal)
        return waits and self.namespace in {"", pod.namespace} and (self.kind, self.name) in _owners(pod)


def pod_query(text: str) -> PodQuery:
    """Return the parts of a text. Before a slash, a type comes before a namespace of that name."""
    *before, name = text.split("/")
    kind = _TYPES.get(before[-1].lower().partition(".")[0], "") if before else ""
    namespace = "/".join(before[:-1] if kind else before)
    return PodQuery(namespace, kind if kind != "Pod" else "", name)


def _owners(pod: Pod) -> Iterator[tuple[str, str]]:
    """Yield the kind and name of the controller, and of its own one, which its name tells."""
    controller = pod.controller
    if controller is None:
        return
    yield controller.kind, controller.name
    if controller.kind == "ReplicaSet":
        yield "Deployment", controller.name.removesuffix(f"-{pod.labels.get('pod-template-hash')}")
    if controller.kind == "Job":
        yield "CronJob", controller.name.rpartition("-")[0]
