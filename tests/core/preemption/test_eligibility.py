"""Whether a pod may preempt others (upstream default_preemption.go, PodEligibleToPreemptOthers)."""

import pytest

from core.framework.interface import Code
from core.preemption import POLICY_NEVER, TERMINATING_VICTIM, why_not_eligible
from tests.builders import PodBuilder, make_node, make_pod
from tests.core.decoded import mirror_of, pod_of

POD = make_pod("p").priority(10)
LOW = make_pod("low").on("n1").priority(1)


@pytest.mark.parametrize(
    ("pod", "existing", "expected"),
    [
        pytest.param(POD, LOW, "", id="never-nominated"),
        pytest.param(POD.preemption_policy("Never"), LOW, POLICY_NEVER, id="policy-never"),
        pytest.param(POD.preemption_policy("PreemptLowerPriority"), LOW, "", id="policy-lower"),
        pytest.param(POD.nominated("n1"), LOW, "", id="nobody-goes"),
        pytest.param(POD.nominated("n1"), LOW.terminating(), "", id="terminates-for-another-reason"),
        pytest.param(POD.nominated("n1"), LOW.preempted(), TERMINATING_VICTIM, id="waits-for-its-victim"),
        pytest.param(POD.nominated("n1"), LOW.preempted().priority(10), "", id="no-victim-of-its"),
        pytest.param(POD, LOW.preempted(), "", id="a-victim-of-another"),
        pytest.param(POD.nominated("n2"), LOW.preempted(), "", id="victim-elsewhere"),
        pytest.param(POD.nominated("gone"), LOW.preempted(), "", id="nominated-node-is-gone"),
    ],
)
def test_a_pod_waits_while_its_victims_go_or_if_it_never_preempts(
    pod: PodBuilder, existing: PodBuilder, expected: str
) -> None:
    mirror = mirror_of(make_node("n1"), make_node("n2"), existing)
    assert why_not_eligible(mirror, pod_of(pod), Code.UNSCHEDULABLE) == expected


def test_it_does_not_wait_where_preemption_cannot_help_any_more() -> None:
    mirror = mirror_of(make_node("n1"), LOW.preempted())
    pod = pod_of(POD.nominated("n1"))
    assert why_not_eligible(mirror, pod, Code.UNSCHEDULABLE_AND_UNRESOLVABLE) == ""
    assert why_not_eligible(mirror, pod, Code.SUCCESS) == TERMINATING_VICTIM
