"""Faults of requests of people: recorded decisions, and explanations."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
    Fault(
        id="one-decision-less-of-a-pod",
        breaks="One decision less about a pod is kept than it says.",
        old="        if len(numbers) > MAX_OF_A_POD:",
        new="        if len(numbers) >= MAX_OF_A_POD:",
        tests=("test_decisions.py",),
    ),
    Fault(
        id="dropped-decisions-keep-their-weight",
        breaks="Fewer and fewer decisions are kept, as the bytes of dropped ones still count.",
        old="        self._bytes -= _weight(decision)\n        numbers = self._of_pod[decision.uid]",
        new="        numbers = self._of_pod[decision.uid]",
        tests=("test_decisions.py",),
    ),
    Fault(
        id="cells-told-of-a-supposed-state",
        breaks="An explanation of a supposed state shows what the cache has of the real one.",
        old="        if supposed.added_nodes or supposed.removed or supposed.assumed:\n            entry = None",
        new="        if supposed.added_nodes or supposed.assumed:\n            entry = None",
        tests=("test_explain*.py",),
    ),
    Fault(
        id="placed-pod-explained-where-it-is",
        breaks="The explanation of a placed pod says that it fits its own node alone.",
        old='            pod = replace(pod, node_name="")  # else NodeName',
        new="            pod = replace(pod)  # or NodeName",
        tests=("test_explain*.py",),
    ),
    Fault(
        id="template-of-a-cron-job-not-found",
        breaks="A manifest of a CronJob is taken to have no pod template.",
        old='inner if isinstance(inner, dict) else {}, "spec.jobTemplate.spec.template"',
        new='{}, "spec.jobTemplate.spec.template"',
        tests=("test_explain_request.py",),
    ),
    Fault(
        id="one-of-several-pods-explained",
        breaks="Of several pods of one name the first is explained, without a word.",
        old="    if len(pods) > 1:\n        raise UnknownError(",
        new="    if len(pods) > 2:\n        raise UnknownError(",
        tests=("test_known_pods.py",),
    ),
    Fault(
        id="shared-copy-never-released",
        breaks="A copy of the whole mirror stays in memory after its second.",
        old="        if self._copy is copy:\n            self._copy = None\n",
        new="        if self._copy is not copy:\n            self._copy = None\n",
        tests=("test_responses.py",),
    ),
)
