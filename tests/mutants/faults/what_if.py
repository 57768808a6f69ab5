"""Faults of the questions what would happen: the wrong pods come again, and wrong answers."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
    Fault(
        id="comes-again-of-the-oldest-revision",
        breaks="In a rollout, the pod that comes again is of an old ReplicaSet.",
        old='"Deployment", deployment), key=_revision_of',
        new='"Deployment", deployment), key=lambda each: -_revision_of(each)',
        tests=("test_comes_again.py",),
    ),
    Fault(
        id="replica-comes-again-under-another-name",
        breaks="In the place of a replica of a StatefulSet another one comes, with claims that are not its own.",
        old="    name = owner.again.name if owner.again is not None else _missing_replica(spec, owner)",
        new="    name = _missing_replica(spec, owner)",
        tests=("test_comes_again.py",),
    ),
    Fault(
        id="comes-again-without-its-priority",
        breaks="Without PriorityClasses at hand, pods of all priorities come again with priority 0.",
        old='        if self._raw.has("PriorityClass") and not manifest.notes.of_priority:\n',
        new="        if manifest is not None:\n",
        tests=("test_comes_again.py",),
    ),
    Fault(
        id="unready-pods-taken-for-ready",
        breaks="An unready pod needs a disruption of its budget.",
        old="            is_ready=_is_ready(status),",
        new="            is_ready=True,",
        tests=("test_comes_again.py",),
    ),
    Fault(
        id="budget-of-no-pods-is-healthy",
        breaks="A budget that desires no healthy pod lets unready pods go without a disruption.",
        old="            wants_any=desired > 0,",
        new="            wants_any=desired >= 0,",
        tests=("test_comes_again.py",),
    ),
    Fault(
        id="all-nodes-may-be-chosen",
        breaks="A drain of all nodes is simulated, though no node is left for any pod.",
        old="    if len(found) == len(nodes) and not may_be_all:",
        new="    if len(found) > len(nodes) and not may_be_all:",
        tests=("test_chosen_nodes.py",),
    ),
    Fault(
        id="blocked-drain-is-said-to-work",
        breaks="A drain that a budget makes endless ends with status 0.",
        old="        ok=not (rejections or drain.blocked or drain.unplaced),",
        new="        ok=not (rejections or drain.unplaced),",
        tests=("what_if/test_drain.py",),
    ),
    Fault(
        id="kubectl-refuses-a-pod-for-two-reasons",
        breaks="A pod with local data and without a controller is refused for both, though the first filter ends it.",
        old="        if lacking:\n            rejected.setdefault(lacking[0], []).append(pod.move.pod)",
        new="        for flag in lacking:\n            rejected.setdefault(flag, []).append(pod.move.pod)",
        tests=("what_if/test_drain.py",),
    ),
    Fault(
        id="strict-loss-ends-well",
        breaks="The step of a pipeline passes though a zone cannot fail.",
        old='EXIT_NO if options["strict"] and not response.survived else EXIT_OK',
        new='EXIT_NO if options["strict"] and not response.domains else EXIT_OK',
        tests=("what_if/test_loss.py",),
    ),
    Fault(
        id="quota-without-what-is-used",
        breaks="A quota allows as many replicas as if nothing of it was used.",
        old='            yield resource, amount - (amount_of(used.get(resource, "0")) or 0)',
        new="            yield resource, amount",
        tests=("what_if/test_capacity.py",),
    ),
    Fault(
        id="enough-in-the-best-order",
        breaks="As many fit as are asked for, though in some orders fewer do.",
        old="    enough = found.least >= (1 if requested is None else requested) if of else not found.pending_unplaced",
        new="    enough = found.most >= (1 if requested is None else requested) if of else not found.pending_unplaced",
        tests=("what_if/test_capacity.py",),
    ),
    Fault(
        id="one-chosen-node-is-enough",
        breaks="Nodes are said to be able to go if one of them is.",
        old="EXIT_OK if (all(can_go) if is_chosen else any(can_go)) else EXIT_NO",
        new="EXIT_OK if any(can_go) or not is_chosen else EXIT_NO",
        tests=("what_if/test_removal.py",),
    ),
)
