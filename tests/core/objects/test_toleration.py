"""Which taints a toleration tolerates, row by row as ToleratesTaint of k8s.io/api v0.34.1."""

import pytest

from core.objects.toleration import Taint, Toleration

TAINT = Taint("gpu", "yes", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param(Toleration("gpu", "Equal", "yes", "NoSchedule"), True, id="equal"),
        pytest.param(Toleration("gpu", "", "yes", "NoSchedule"), True, id="no-operator-is-equal"),
        pytest.param(Toleration("gpu", "Equal", "no", "NoSchedule"), False, id="other-value"),
        pytest.param(Toleration("gpu", "Equal", "", "NoSchedule"), False, id="no-value"),
        pytest.param(Toleration("disk", "Equal", "yes", "NoSchedule"), False, id="other-key"),
        pytest.param(Toleration("gpu", "Equal", "yes", "NoExecute"), False, id="other-effect"),
        pytest.param(Toleration("gpu", "Equal", "yes"), True, id="every-effect"),
        pytest.param(Toleration("gpu", "Exists", "", "NoSchedule"), True, id="exists"),
        pytest.param(Toleration("gpu", "Exists", "no"), True, id="exists-whatever-the-value"),
        pytest.param(Toleration("disk", "Exists"), False, id="exists-other-key"),
        pytest.param(Toleration("", "Exists"), True, id="everything"),
        pytest.param(Toleration("", "Exists", "", "NoExecute"), False, id="every-key-other-effect"),
        pytest.param(Toleration("", "Equal", "yes"), True, id="every-key-of-the-value"),
        pytest.param(Toleration("gpu", "Near", "yes"), False, id="unknown-operator"),
        pytest.param(Toleration(), False, id="empty"),
    ],
)
def test_a_toleration_tolerates_what_its_members_do_not_exclude(
    toleration: Toleration,
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert expected is toleration.tolerates(TAINT)


def test_an_empty_toleration_tolerates_taints_without_a_value() -> None:
    assert Toleration().tolerates(Taint("gpu", "", "NoSchedule"))
