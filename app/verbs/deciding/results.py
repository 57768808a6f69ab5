"""The responses to kube-scheduler for a decision: one node, or none that fits.

The scheduler uses a single node at once (schedule_one.go, schedulePod), and of a response that has `Nodes` alone only
their names, whether they were in its request or not (extender.go, Filter). It counts reasons by node for its message
(framework/types.go, FitError). So the reason of 5,000 nodes would have to be sent 5,000 times, 300 KB for each attempt
of each pod that fits nowhere. Names in FailedNodes are not checked, so one entry is enough for all nodes.
"""

from typing import Final

import numpy as np

from app.objects.limits import reason_json
from app.verbs.extender_results import NONE_FAILED, FailedNodes, failed_nodes, result_of_names
from core.framework.interface import Verdicts
from core.framework.reason_counts import reasons_text, status_counts
from core.framework.status import Code, Status
from core.mirror.node_info import NodeBatch

MAX_NODES_SINGLY: Final = 100
"""Nodes up to which each has its own reason, so that the scheduler's message is the in-tree one."""


def one_of_names(name: bytes) -> bytes:
    """Return an ExtenderFilterResult of a node that was named in the request; `name` is its JSON."""
    return result_of_names(name, NONE_FAILED)


def any_node(name: bytes) -> bytes:
    """Return an ExtenderFilterResult of a node that may be missing in the request; `name` is its JSON."""
    return (
        b'{"Nodes":{"metadata":{},"items":[{"metadata":{"name":%s}}]},"NodeNames":null,'
        b'"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""}' % name
    )


def reasons(
    asked: NodeBatch, judged: NodeBatch, verdicts: Verdicts, nominated: str = "", *, all_resolvable: bool = True
) -> FailedNodes:
    """Return why a pod fits on none of the nodes that were judged: node by node, or at once.

    Node by node, if these are the nodes of the request, as the scheduler counts them.

    At once, the one entry is for the pod's nominated node, if that was judged, and is resolvable if that node is.
    kube-scheduler takes a node without an entry for unresolvable. If that is the nominated one, it does not wait for
    the victims there, and takes the nomination off the pod (default_preemption.go, PodEligibleToPreemptOthers).

    With `all_resolvable` false, no other node is resolvable. Then kube-scheduler tries no evictions. Without filters
    they find no victim, take as long as all the rest of the attempt, and write a line for each node into the message.
    """
    position = judged.position(nominated)
    if not all_resolvable:
        verdicts = _unresolvable_but(position, verdicts)
    if judged is asked and len(judged) <= MAX_NODES_SINGLY:
        return failed_nodes(judged.name_json(), verdicts)
    if position >= 0:
        name = judged.name_json()[position]
        resolvable = verdicts.statuses[verdicts.codes[position]].code is Code.UNSCHEDULABLE
    else:
        name = asked.name_json()[0]
        resolvable = any(status.code is Code.UNSCHEDULABLE for status, _ in status_counts(verdicts))
    entry = memoryview(bytes(name) + b":" + reason_json(summary(verdicts)))
    nothing = memoryview(b"")
    return FailedNodes(entry, nothing) if resolvable else FailedNodes(nothing, entry)


def reason_of_all(asked: NodeBatch, reason: str) -> FailedNodes:
    """Return the one entry for all nodes where a reason does not follow from any of them; no eviction resolves it."""
    entry = bytes(asked.name_json()[0]) + b":" + reason_json(f"{answer_for(len(asked))} {reason}")
    return FailedNodes(memoryview(b""), memoryview(entry))


def summary(verdicts: Verdicts) -> str:
    """Return how many nodes have each reason, the most frequent first.

    The scheduler writes it behind the number of nodes for which it was given: `0/5000 nodes are available: 1 answer of
    kindred for 5000 nodes: 4990 Insufficient cpu, 10 node(s) were unschedulable.`
    """
    return f"{answer_for(len(verdicts.codes))} {reasons_text(verdicts)}"


def answer_for(nodes: int) -> str:
    """Return how the one entry for so many nodes begins."""
    return f"answer of kindred for {nodes} nodes:"


def _unresolvable_but(position: int, verdicts: Verdicts) -> Verdicts:
    """Return verdicts in which only the one at a position, if there is one, says that preemption could help."""
    statuses = tuple(
        Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, status.reasons) if status.code is Code.UNSCHEDULABLE else status
        for status in verdicts.statuses
    )
    codes = verdicts.codes.astype(np.int64)
    if position >= 0:
        codes[position] = len(statuses)
        statuses += (verdicts.status(position),)
    return Verdicts(codes, statuses)
