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
        old="        if supposed.added_nodes or supposed.removed or supposed.assumed or found",
        new="        if supposed.added_nodes or supposed.assumed or found",
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
        old='    "CronJob": "spec.jobTemplate.spec.template",',
        new='    "CronJob": "spec.jobTemplate.template",',
        tests=("test_stored_pod.py",),
    ),
    Fault(
        id="limits-of-init-containers-are-no-requests",
        breaks="The limits of init containers do not become requests.",
        old='    yield from elements(spec, "initContainers")\n',
        new="",
        tests=("test_stored_pod.py",),
    ),
    Fault(
        id="stored-pod-completed-again",
        breaks="A pod of `kubectl get` is completed as if it were new.",
        old='    return bool(member(pod, "metadata").get("uid"))',
        new='    return bool(member(pod, "metadata").get("resourceVersion"))',
        tests=("test_stored_pod.py",),
    ),
    Fault(
        id="mismatch-keys-select",
        breaks="mismatchLabelKeys of an affinity term select what they should exclude.",
        old='("mismatchLabelKeys", "NotIn")',
        new='("mismatchLabelKeys", "In")',
        tests=("test_stored_pod.py",),
    ),
    Fault(
        id="limit-range-of-every-namespace",
        breaks="A LimitRange gives requests to pods of other namespaces.",
        old='        if (member(each, "metadata").get("namespace") or "default") != namespace:\n            continue\n',
        new="",
        tests=("test_stored_pod.py",),
    ),
    Fault(
        id="every-template-is-the-present-revision",
        breaks="The pod of a changed Deployment or DaemonSet gets the hash of a revision that exists.",
        old='            if (metadata.get("namespace") or "default") == self.namespace and _alike(template, found):',
        new='            if (metadata.get("namespace") or "default") == self.namespace:',
        tests=("test_stored_pod.py",),
    ),
    Fault(
        id="first-pod-of-a-set-although-it-is-there",
        breaks="The pod of a StatefulSet is its first one, and not the first that is missing.",
        old='if f"{named}-{each}" not in taken)',
        new="if taken is not None)",
        tests=("test_manifests_of_people.py",),
    ),
    Fault(
        id="pods-of-a-daemon-set-stay",
        breaks="The present pods of a DaemonSet keep its next revision off their nodes.",
        old="    for pod in found.replaced:\n        supposing.remove(pod)\n",
        new="",
        tests=("test_manifests_of_people.py",),
    ),
    Fault(
        id="claims-to-be-made-are-missing",
        breaks="A claim that a controller will make counts as missing.",
        old="    for claim in found.claims:\n        supposing.add_object(claim)\n",
        new="",
        tests=("test_manifests_of_people.py",),
    ),
    Fault(
        id="supposed-object-stays",
        breaks="A supposed claim stays in the mirror after the supposition.",
        old="        self._objects.of(type(added)).withdraw(added.full_name)\n",
        new="",
        tests=("test_what_if.py",),
    ),
    Fault(
        id="oldest-default-class",
        breaks="A claim without a class gets the oldest default StorageClass.",
        old='    newest = max((each.default_since or "" for each in defaults), default="")',
        new='    newest = min((each.default_since or "" for each in defaults), default="")',
        tests=("test_stored_pod.py",),
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
