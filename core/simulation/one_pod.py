"""One pod on one of its best nodes, supposed there: the one step of everything in `core` that places pods.

Simulations (core/simulation/placing.py) take it pod after pod. Gangs (core/gangs) search back between the steps, and
take them again after the mirror has changed. Remedies (core/diagnosis/remedies) suppose that a pod is made again.
"""

from collections.abc import Callable
from typing import TypeAlias

from core.framework.evaluation import Evaluation, FreshEvaluation
from core.framework.interface import Verdicts
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork
from core.mirror.node_info import NodeBatch
from core.mirror.topology import IntpArray
from core.objects.pod import Pod
from core.profile import Profile
from core.scheduling_cycle import choose_nodes, filter_nodes

Choose: TypeAlias = Callable[[NodeBatch, IntpArray], int]
"""Choose one of the best nodes. Takes and returns positions in the batch."""


def place_best(  # noqa: PLR0913  # the pod, how it is judged, and where
    fork: Fork, pod: Pod, profile: Profile, evaluation: Evaluation, nodes: NodeBatch, *, choose: Choose
) -> str | Verdicts:
    """Suppose a pod on its best node of some, and return the node; or return the verdicts if none of them fits.

    A pod gets the node for which it is nominated, if that is one of them and fits (schedule_one.go,
    evaluateNominatedNode). `evaluation` is of it, or of a pod that is judged alike.
    """
    mirror, found = evaluation.mirror, pod.nominated_node_name
    if not found or nodes.position(found) < 0 or filter_nodes(profile, evaluation, mirror.batch([found])).codes[0]:
        best, verdicts = choose_nodes(profile, evaluation, nodes)
        if verdicts is not None and not len(best):
            return verdicts
        found = nodes.names[int(best[0]) if len(best) == 1 else choose(nodes, best)]
    return place_on(mirror, fork, profile, pod, found).node_name  # the same text for all pods of a node


def place_on(mirror: ClusterMirror, fork: Fork, profile: Profile, pod: Pod, node: str) -> Pod:
    """Suppose a pod on a node, with what the Reserve step of kube-scheduler's plugins would assume for it.

    Returns the pod as `Fork.place`, and raises as it.
    """
    placed = fork.place(pod, node)
    if pod.volumes:
        with mirror.work.uncharged():
            for plugin in profile.plugins:
                plugin.reserve(mirror, fork, placed)
    return placed


def fits_any(mirror: ClusterMirror, profile: Profile, pod: Pod, nodes: NodeBatch) -> bool:
    """Return whether a pod passes the filters on any of some nodes, judged afresh."""
    return bool((filter_nodes(profile, FreshEvaluation(mirror, pod), nodes).codes == 0).any())
