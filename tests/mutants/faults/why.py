"""Faults of `kindred why`: the wrong pod, and wrong rights."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
    Fault(
        id="bound-pod-of-a-workload",
        breaks="Of a workload, a pod is explained that does not wait for a node.",
        old="        waits = not (pod.node_name or pod.terminating or pod.terminal)\n",
        new="        waits = True\n",
        tests=("test_known_pods.py",),
    ),
    Fault(
        id="newest-pod-of-a-workload",
        breaks="Of a workload, the first pod by name is explained, and not the one that has waited for longest.",
        old="key=lambda each: (each.waiting.created, each.name))",
        new="key=lambda each: each.name)",
    ),
    Fault(
        id="waiting-pods-searched-at-once",
        breaks="A request by the name of a workload holds the loop for as long as a pass over all pending pods takes.",
        old="            yield pod\n            if self.work.over:\n                await self.work.checkpoint()\n",
        new="            yield pod\n",
    ),
    Fault(
        id="namespace-taken-for-a-type",
        breaks="With -n deploy, NAME is taken for a Deployment of any namespace.",
        old='    return within if pod_query(within).namespace else f"{namespace}/pod/{text}"',
        new="    return within",
        tests=("test_explain.py",),
    ),
    Fault(
        id="name-of-a-hidden-namespace-found",
        breaks="A pod that the caller may not see is found by its name.",
        old="if is_new and text not in by_uid and (sees is None or sees(pod.namespace)):",
        new="if is_new and text not in by_uid:",
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
