"""The responses to kube-scheduler for a decision: one node, or none that fits.

The scheduler takes a single node without scoring (schedule_one.go, schedulePod). From a response with `Nodes` alone it
reads only the names, whether or not they were in its request (extender.go, Filter). For its message it counts reasons
by node (framework/types.go, FitError). So 5,000 nodes would need 5,000 entries: 300 KB for each attempt of each pod
that fits nowhere. The scheduler does not check the names in FailedNodes, so one entry is enough for all nodes.
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
"""Up to this number of nodes each node has its own reason, so that the scheduler's message is the in-tree one."""


def one_of_names(name: bytes) -> bytes:
    """Return an ExtenderFilterResult with a node that the request names. `name` is the JSON of the node's name."""
    return result_of_names(name, NONE_FAILED)


def any_node(name: bytes) -> bytes:
    """Return an ExtenderFilterResult with a node that the request may not name. `name` is the JSON of its name."""
    return (
        b'{"Nodes":{"metadata":{},"items":[{"metadata":{"name":%s}}]},"NodeNames":null,'
        b'"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""}' % name
    )


def reasons(
    asked: NodeBatch, judged: NodeBatch, verdicts: Verdicts, nominated: str = "", *, all_resolvable: bool = True
) -> FailedNodes:
    """Return why a pod fits on none of the judged nodes: one entry per node, or one entry for all.

    One entry per node if these are the nodes of the request, because the scheduler counts by node.

    A single entry is for the pod's nominated node, if that was judged, and is resolvable if that node is.
    kube-scheduler treats a node without an entry as unresolvable. If that is the nominated node, kube-scheduler does
    not wait for the victims there, and clears the nomination (default_preemption.go, PodEligibleToPreemptOthers).

    With `all_resolvable` false, no other node is resolvable, and kube-scheduler tries no preemption. Without filters,
    preemption finds no victim, takes as long as the rest of the attempt, and adds a line for each node to the message.
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
    """Return the one entry for all nodes, with a reason that no node causes and no preemption resolves."""
    entry = bytes(asked.name_json()[0]) + b":" + reason_json(f"{answer_for(len(asked))} {reason}")
    return FailedNodes(memoryview(b""), memoryview(entry))


def summary(verdicts: Verdicts) -> str:
    """Return the number of nodes for each reason, the most frequent first.

    The scheduler puts the text behind the number of nodes: `0/5000 nodes are available: 1 answer of kindred for 5000
    nodes: 4990 Insufficient cpu, 10 node(s) were unschedulable.`
    """
    return f"{answer_for(len(verdicts.codes))} {reasons_text(verdicts)}"


def answer_for(nodes: int) -> str:
    """Return the beginning of the one entry for so many nodes."""
    return f"decision of kindred for {nodes} nodes:"


def _unresolvable_but(position: int, verdicts: Verdicts) -> Verdicts:
    """Return verdicts in which preemption helps at most on the node at `position`."""
    statuses = tuple(
        Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, status.reasons) if status.code is Code.UNSCHEDULABLE else status
        for status in verdicts.statuses
    )
    codes = verdicts.codes.astype(np.int64)
    if position >= 0:
        codes[position] = len(statuses)
        statuses += (verdicts.status(position),)
    return Verdicts(codes, statuses)
