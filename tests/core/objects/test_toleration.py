"""Which taints a toleration tolerates, row by row as ToleratesTaint of k8s.io/api v0.34.1."""

from itertools import product
from random import Random

import pytest

from core.objects.pod import Taint, ToleratedTaints, Toleration

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
    assert expected is (TAINT in ToleratedTaints([toleration]))


def test_an_empty_toleration_tolerates_taints_without_a_value() -> None:
    assert Toleration().tolerates(Taint("gpu", "", "NoSchedule"))


def test_many_tolerations_tolerate_what_any_of_them_does() -> None:
    keys, effects, values = ("", "gpu", "disk"), ("", "NoSchedule", "NoExecute"), ("", "yes", "no")
    every = [Toleration(*each) for each in product(keys, ("Equal", "Exists", "", "Near"), values, effects)]
    taints = [Taint(*each) for each in product(keys[1:], values, effects[1:])]
    random = Random(1)  # noqa: S311 - a test that is the same each time
    for _ in range(200):
        some = random.sample(every, random.randrange(5))
        tolerated = ToleratedTaints(some)
        for taint in taints:
            assert (taint in tolerated) is any(toleration.tolerates(taint) for toleration in some)
