"""Faults of the packing of gangs, and of waiting for victims."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
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
