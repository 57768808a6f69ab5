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
        old="            is_healthy=(status.current_healthy or 0) >= desired > 0,",
        new="            is_healthy=(status.current_healthy or 0) >= desired,",
        tests=("test_comes_again.py",),
    ),
    Fault(
        id="all-nodes-may-be-chosen",
        breaks="A drain of all nodes is simulated, though no node is left for any pod.",
        old="    if len(found) == len(nodes):\n        raise QuestionError",
        new="    if len(found) > len(nodes):\n        raise QuestionError",
        tests=("test_chosen_nodes.py",),
    ),
)
