"""Faults of the attempts to place gangs, of packing, and of waiting for victims."""

from typing import Final

from tests.mutants.fault import Fault

_TRIALS: Final = ("core/gangs/test_trials.py",)

FAULTS: Final = (
    Fault(
        id="a-part-of-an-attempt-has-no-end",
        breaks="A request for a member of a large gang takes as long as the whole attempt.",
        old="                    if clock() >= end:",
        new="                    if clock() < 0:",
        tests=_TRIALS,
    ),
    Fault(
        id="members-are-not-judged-again",
        breaks="After an attempt in parts, members are reserved where another pod has taken the room.",
        old="if self._shortfall is None and self._has_changed:",
        new="if self._shortfall is None and self._shortfall:",
        tests=_TRIALS,
    ),
    Fault(
        id="members-that-were-left-are-not-judged-again",
        breaks="If many nodes have changed during an attempt, members are reserved where the room is taken.",
        old="        return not self._not_judged",
        new="        return bool(found)",
        tests=_TRIALS,
    ),
    Fault(
        id="the-search-has-no-pause",
        breaks="A request takes as long as a look at all nodes for each member of a large gang.",
        old="            yield None",
        new="            continue",
        tests=_TRIALS,
    ),
    Fault(
        id="attempts-that-fail-are-not-counted",
        breaks="Gangs that fit nowhere take all of the process.",
        old="            ledger.charge(unit.group.key, spent, part.now)",
        new="            ledger.charge(unit.group.key, 0.0, part.now)",
        tests=_TRIALS,
    ),
    Fault(
        id="failures-of-a-namespace-do-not-matter",
        breaks="Gangs of a namespace that fail keep those of others waiting.",
        old="return not unit.has_hope, used - self._own(unit), unit.order",
        new="return not unit.has_hope, 0.0, unit.order",
        tests=_TRIALS,
    ),
    Fault(
        id="any-change-of-a-node-is-hope",
        breaks="A gang that fits nowhere is tried again after every change of the cluster.",
        old="            unit.has_hope = self._placer.may_fit_now(unit.shortfall, stop.generation)",
        new="            unit.has_hope = bool(stop.generation)",
        tests=_TRIALS,
    ),
    Fault(
        id="a-changed-node-is-no-hope",
        breaks="A gang for which a node has come waits for the next request.",
        old="        names = [each.name for each in self._mirror.nodes.known.changed_since(generation)]",
        new="        names: list[str] = []",
        tests=_TRIALS,
    ),
    Fault(
        id="a-gone-gang-is-still-next",
        breaks="The attempt for a gang whose member is gone keeps all others waiting.",
        old="            unit.has_hope = False\n            unit.drop_attempt()\n        elif",
        new="            pass\n        elif",
        tests=_TRIALS,
    ),
    Fault(
        id="a-member-gets-a-node-that-its-request-lacks",
        breaks="A member is sent to a node that its request lacks, if its gang's attempt began at another request.",
        old="        if self._holds(unit, pod, node, nodes):",
        new="        if self._holds(unit, pod, node, None):",
        tests=_TRIALS,
    ),
    Fault(
        id="a-rule-about-a-zone-looks-at-one-node",
        breaks="A gang that fits a node of a zone that a pod has left elsewhere is not tried again.",
        old="    return wide or bool(pod.volumes) or pod.claims_resources",
        new="    return bool(pod.volumes) or pod.claims_resources",
        tests=_TRIALS,
    ),
    Fault(
        id="a-node-that-goes-is-no-hope",
        breaks="A gang whose spread a node was in the way of is not tried again when the node goes.",
        old="if stop is None or (stop.version, stop.nodes, stop.others) != now_is or stop.of_nodes:",
        new="if stop is None or (stop.version, now_is[1], stop.others) != now_is or stop.of_nodes:",
        tests=_TRIALS,
    ),
    Fault(
        id="a-started-gang-gets-one-part-after-a-restart",
        breaks="After a restart, other pods take the places of a gang that has started.",
        old="        part = Part(now, inf)",
        new="        part = self._trials.part(now)",
        tests=_TRIALS,
    ),
    Fault(
        id="short-attempts-use-the-time-of-long-ones",
        breaks="A gang of many parts waits for ever beside gangs of one part that fail.",
        old="            ledger = self._later_parts if unit.is_later else self._first_parts",
        new="            ledger = self._later_parts",
        tests=_TRIALS,
    ),
    Fault(
        id="smaller-sets-of-domains-not-tried",
        breaks="A packed gang has more nodes than it needs where filling one after another takes too many.",
        old="        for size in range(least, found):",
        new="        for size in range(found, found):",
        tests=("core/gangs/test_placing.py",),
    ),
    Fault(
        id="used-domains-not-looked-up",
        breaks="The rest of a gang is placed apart from the members that run.",
        old="self._used = self._domains_of(others_on)",
        new="self._used = self._domains_of(())",
        tests=("core/gangs/test_placing.py",),
    ),
    Fault(
        id="room-that-is-just-enough-does-not-count",
        breaks="The bound of what a node can hold is too low, and a smaller set of domains is not tried.",
        old='np.searchsorted(sums, free, side="right")',
        new='np.searchsorted(sums, free, side="left")',
        tests=("noderesources/test_fit.py",),
    ),
    Fault(
        id="unlabelled-nodes-are-one-domain",
        breaks="Nodes without the label of a topology key are taken for near to each other.",
        old="    domain_of[alone] = np.arange(len(values), domains)",
        new="    domain_of[alone] = len(values)",
        tests=("core/mirror/test_node_values.py",),
    ),
    Fault(
        id="waits-for-equally-important-pods",
        breaks="A nominated pod is said to wait for a pod of its own priority, which preemption never takes.",
        old="found |= {(uid, each.uid) for each in terminating if each.priority < pod.priority}",
        new="found |= {(uid, each.uid) for each in terminating if each.priority <= pod.priority}",
        tests=("core/mirror/test_pending_pods.py",),
    ),
    Fault(
        id="decided-preemptor-still-waits",
        breaks="A pod that was decided for elsewhere is still said to wait for its victims.",
        old="                if uid not in self._pods.rows:\n                    found |=",
        new="                if uid:\n                    found |=",
        tests=("core/mirror/test_pending_pods.py",),
    ),
)
