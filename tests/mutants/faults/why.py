"""Faults of `kindred why`: the wrong pod, and wrong rights."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
    Fault(
        id="bound-pod-explained-as-pending",
        breaks="A pod that is on a node is explained as if it were pending.",
        old='    if pod.node_name:\n        return f"is on node',
        new='    if False:\n        return f"is on node',
        tests=("test_pod_argument.py", "test_command.py"),
    ),
    Fault(
        id="newest-pod-of-a-workload",
        breaks="Of a workload, the first pod by name is explained, and not the one that has waited for longest.",
        old="key=lambda each: (each[0].waiting.created, each[0].name))",
        new="key=lambda each: each[0].name)",
        tests=("test_pod_argument.py",),
    ),
    Fault(
        id="forbidden-kind-taken-for-empty",
        breaks="A kind that may not be listed counts as one without objects, so that its rules pass.",
        old='    state.problem, state.forbidden = "forbidden", True\n',
        new='    state.problem, state.forbidden, state.synced = "forbidden", True, True\n',
        tests=("test_listed_cluster.py", "test_command.py"),
    ),
    Fault(
        id="service-forbids-taken-for-rbac",
        breaks="What a service behind the proxy forbids is told as a missing right of the caller.",
        old="if error.code != HTTPStatus.FORBIDDEN or not error.reason:",
        new="if error.code != HTTPStatus.FORBIDDEN:",
        tests=("test_listed_cluster.py",),
    ),
    Fault(
        id="first-page-of-a-list-alone",
        breaks="Of each kind, only the first page is listed.",
        old="        if not page.continue_token:\n",
        new="        if True:\n",
        tests=("test_listed_cluster.py",),
    ),
)
