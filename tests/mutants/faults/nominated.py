"""Faults of nominated pods: which of them count for another pod, and on which node."""

from typing import Final

from tests.mutants.fault import Fault

_TESTS: Final = ("core/test_nominated_pods.py", "test_falsified_cases.py")

FAULTS: Final = (
    Fault(
        id="nominated-pods-of-equal-priority-forgotten",
        breaks="A pod takes the room of a nominated pod that is as important.",
        old="if each.priority >= pod.priority and",
        new="if each.priority > pod.priority and",
        tests=_TESTS,
    ),
    Fault(
        id="nominated-pod-in-its-own-way",
        breaks="A pod is refused on the node it is nominated for, because it counts there itself.",
        old="and each.uid != pod.uid and not mirror.is_mirrored(each.uid)",
        new="and not mirror.is_mirrored(each.uid)",
        tests=_TESTS,
    ),
    Fault(
        id="assumed-pod-nominated-as-well",
        breaks="A pod that is assumed elsewhere still counts on its nominated node.",
        old="and each.uid != pod.uid and not mirror.is_mirrored(each.uid)",
        new="and each.uid != pod.uid and mirror.get_pod(each.uid) not in mirror.pending",
        tests=_TESTS,
    ),
    Fault(
        id="terminating-nominated-pods-not-spread-against",
        breaks="Topology spread does not count a nominated pod that terminates, though upstream does.",
        old="replace(each, terminating=False) if each.terminating else each",
        new="each",
        tests=_TESTS,
    ),
    Fault(
        id="nominated-pods-refuse-nobody",
        breaks="The verdicts of filter are those without nominated pods.",
        old="verdicts = _with_rejections(verdicts, rejections)",
        new="verdicts = _with_rejections(verdicts, {})",
        tests=_TESTS,
    ),
    Fault(
        id="out-of-partition-judged-beside-nominated-pods",
        breaks="A node of another scheduler costs an evaluation for each pod nominated there.",
        old="if position not in batch.unmirrored and not (outside is not None and outside[position])",
        new="if position not in batch.unmirrored",
        tests=_TESTS,
    ),
    Fault(
        id="evaluation-starts-anew-after-nominated-pods",
        breaks="The work that filter has spent is forgotten before the scores of the same request.",
        old="        finally:\n            self.spent = spent\n\n    def spend",
        new="        finally:\n            self.spent = 0\n\n    def spend",
        tests=_TESTS,
    ),
    Fault(
        id="victims-make-no-room-for-nominated-pods",
        breaks="The dry run of preemption evicts too few pods where another pod is nominated for the node.",
        old="return self._checks.failure_with(position, self._nominated[position]) or self._checks.failure(position)",
        new="return self._checks.failure(position)",
    ),
)
