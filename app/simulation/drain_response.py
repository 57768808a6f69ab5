"""The response to a drain: what kubectl would refuse, evict and leave, and where the pods would go.

Source of the messages: k8s.io/kubectl v1.37 pkg/drain/filters.go.
"""

import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from app.simulation.assumptions import Assumptions
from core.simulation.drain import DELETE_LOCAL_DATA, FORCE, IGNORE_DAEMON_SETS, Drain, DrainedPod
from core.simulation.moves import Workload

_MESSAGES: Final[Mapping[str, str]] = {
    IGNORE_DAEMON_SETS: f"cannot delete DaemonSet-managed Pods (use {IGNORE_DAEMON_SETS} to ignore)",
    DELETE_LOCAL_DATA: f"cannot delete Pods with local storage (use {DELETE_LOCAL_DATA} to override)",
    FORCE: f"cannot delete Pods that declare no controller (use {FORCE} to override)",
}
"""Flag -> what kubectl says without it, in the order of its filters."""


class KubectlRejection(msgspec.Struct, frozen=True):
    """Why kubectl would not begin to drain the nodes of some pods."""

    message: str
    """In kubectl's words."""
    pods: Sequence[str]
    """NAMESPACE/NAME"""


class DrainResponse(msgspec.Struct, frozen=True):
    """What a drain does."""

    ok: bool
    """Whether kubectl refuses nothing, every pod is evicted, and all that come again find a place in every order."""
    nodes: Sequence[str]
    """In the order in which they are drained."""
    command: str
    """The command that drains them, by the selector or the zone if only this chooses them, with all flags it needs."""
    rejections: Sequence[KubectlRejection]
    pods: Sequence[DrainedPod]
    """The pods on the nodes: those that are never evicted, then those without a place, the others, and at last those
    that stay. What becomes of them is as if the flags were given."""
    rounds: int
    """In how many rounds the budgets let the pods of a node go, at most."""
    workloads: Sequence[Workload]
    """The owners of the evicted pods."""
    together: Sequence[str]
    """Owners with several replicas, which all end on one node: KIND NAMESPACE/NAME."""
    assumed: Assumptions


def drain_response(
    drain: Drain, flags: Collection[str], assumed: Assumptions, selector: str | None = None
) -> DrainResponse:
    """Return the response. `flags` are those that are given to kubectl, and `selector` one that chooses the nodes.

    kubectl takes names or one selector. None: names.
    """
    chosen = drain.nodes if selector is None else ["-l", selector]
    rejections = _rejections(drain.pods, flags)
    needed = [flag for flag in _MESSAGES if flag in drain.needs]
    return DrainResponse(
        ok=not (rejections or drain.blocked or drain.unplaced),
        nodes=drain.nodes,
        command=shlex.join(["kubectl", "drain", *chosen, *needed]),
        rejections=rejections,
        pods=drain.pods,
        rounds=drain.rounds,
        workloads=drain.workloads,
        together=drain.together,
        assumed=assumed,
    )


def _rejections(pods: Sequence[DrainedPod], flags: Collection[str]) -> list[KubectlRejection]:
    """Return what kubectl says. A filter that refuses a pod ends its examination (filterPods in drain.go)."""
    rejected: dict[str, list[str]] = {}
    for pod in pods:
        lacking = [flag for flag in _MESSAGES if flag in pod.needs and flag not in flags]
        if lacking:
            rejected.setdefault(lacking[0], []).append(pod.move.pod)
    return [
        KubectlRejection(message, sorted(rejected[flag])) for flag, message in _MESSAGES.items() if flag in rejected
    ]
