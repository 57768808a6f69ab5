"""Faults of simulations: of nodes that are out or removed, of pods that come again, of budgets and of orders."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
    Fault(
        id="pods-of-a-removed-node-still-count",
        breaks="Plugins do not hear that the pods of a node that is supposed gone have left it.",
        old="self._steps.append(_Step(partial(self._bring_node_back, node, slot, rows, order)))\n",
        new="self._steps.append(_Step(partial(self._bring_node_back, node, slot, rows, order)))\n        rows = []\n",
        tests=("core/mirror/test_what_if.py",),
    ),
    Fault(
        id="node-comes-back-without-its-pods",
        breaks="After a fork, the pods of a node that was supposed gone no longer count there.",
        old="self._enter_domains(info, node, rows)",
        new="self._enter_domains(info, node, ())",
        tests=("core/mirror/test_what_if.py",),
    ),
    Fault(
        id="reserved-volume-is-free",
        breaks="Two pods get the same volume.",
        old="fork.change_object(replace(volume, claim=ClaimRef(claim.namespace, claim.name, claim.uid)))",
        new="pass",
        tests=("core/simulation/test_placing.py",),
    ),
    Fault(
        id="claim-has-no-selected-node",
        breaks="A pod goes elsewhere though the volume of its claim is being created for another node.",
        old="fork.change_object(replace(claim, selected_node=pod.node_name))",
        new="pass",
        tests=("core/simulation/test_placing.py",),
    ),
    Fault(
        id="alike-though-they-own-claims",
        breaks="A pod with a claim of its own is judged by that of the pod before it.",
        old="or one.resource_claims or _owns_claims(one):",
        new="or one.resource_claims:",
        tests=("core/simulation/test_placing.py",),
    ),
    Fault(
        id="rejection-of-another-class",
        breaks="A pod counts as rejected because the one before it was.",
        old="is_like_last = last is not None and alike(last, pod)",
        new="is_like_last = last is not None",
        tests=("core/simulation/test_placing.py",),
    ),
    Fault(
        id="one-state-of-lost-nodes",
        breaks="Only nodes that are out are tried, and not removed ones.",
        old="states = [*NodeState] if _states_differ(basis.mirror, names, leaving) else [NodeState.OUT]",
        new="states = [NodeState.OUT]",
        tests=("core/simulation/test_loss.py",),
    ),
    Fault(
        id="better-state-first",
        breaks="The state in which more pods find a place counts.",
        old="found.sort(key=lambda each: -len(each.unplaced))",
        new="found.sort(key=lambda each: len(each.unplaced))",
        tests=("core/simulation/test_loss.py",),
    ),
    Fault(
        id="replica-on-a-dead-node-is-kept",
        breaks="A pod that is placed on a node that does not answer counts as a replica.",
        old="again=sum(bool(each.node) and not each.returns for each in of_owner),",
        new="again=sum(bool(each.node) for each in of_owner),",
        tests=("core/simulation/test_loss.py",),
    ),
    Fault(
        id="budget-recovers-without-a-pod",
        breaks="A budget lets the next pod go though the last one has no place yet.",
        old="if outcome.is_placed and budget:",
        new="if budget:",
        tests=("core/simulation/test_drain.py",),
    ),
    Fault(
        id="second-budget-ignored",
        breaks="A pod with two budgets is evicted.",
        old="if len(covering) > 1:\n            return TWO_BUDGETS",
        new="if len(covering) > 2:\n            return TWO_BUDGETS",
        tests=("core/simulation/test_drain.py",),
    ),
    Fault(
        id="budget-of-all-pods-ignored",
        breaks="A budget with an empty selector does not hold up an eviction.",
        old="each.namespace == pod.namespace and each.selector.matches(pod.labels)",
        new="each.namespace == pod.namespace and each.covers(pod.labels)",
        tests=("core/simulation/test_drain.py",),
    ),
    Fault(
        id="unhealthy-pod-waits-for-its-budget",
        breaks="A pod that is not ready waits for a budget that lets such pods go.",
        old="of_budget.always_allows_unhealthy or of_budget.is_healthy",
        new="of_budget.is_healthy",
        tests=("core/simulation/test_drain.py",),
    ),
    Fault(
        id="nodes-cordoned-one-by-one",
        breaks="Pods of the first node go to the second one, which is drained next.",
        old="lose(mirror, fork, names, NodeState.OUT, cordoned)",
        new="lose(mirror, fork, names[:1], NodeState.OUT, cordoned)",
        tests=("core/simulation/test_drain.py",),
    ),
    Fault(
        id="priorities-arrive-mixed",
        breaks="A less important pod is placed first.",
        old="return sorted(by_owner, key=lambda pod: -pod.priority)\n\n\ndef _owner(",
        new="return by_owner\n\n\ndef _owner(",
        tests=("core/simulation/test_placing.py",),
    ),
)
