"""The work of an evaluation: begun anew for each, and charged up to the limit."""

from contextlib import suppress

import pytest

from core.mirror.work import Work, WorkLimitError


def test_work_up_to_the_limit_is_allowed_and_the_next_unit_is_not() -> None:
    work = Work(100)
    work.spend(60, "spec.affinity", 1)
    work.spend(40, "spec.affinity", 1)
    with pytest.raises(WorkLimitError) as raised:
        work.spend(1, "spec.nodeSelector", 3)
    assert raised.value.field == "Pod.spec.nodeSelector"
    assert str(raised.value) == "Pod.spec.nodeSelector: too much work: 3 entries, 101 of 100 units"


def test_each_evaluation_begins_at_nothing() -> None:
    work = Work(100)
    for _ in range(3):
        work.spent = 0
        work.spend(100, "spec.affinity", 1)
    assert work.spent == 100


def test_without_a_limit_work_is_only_counted() -> None:
    work = Work()
    work.spend(10**12, "spec.affinity", 1)
    assert work.spent == 10**12


def test_what_is_uncharged_leaves_the_account_as_it_was_whatever_happens() -> None:
    work = Work(100)
    work.spend(90, "spec.affinity", 1)
    with suppress(ZeroDivisionError), work.uncharged():
        work.spend(1000, "spec.affinity", 1)
        raise ZeroDivisionError
    assert work.spent == 90
    with pytest.raises(WorkLimitError):
        work.spend(11, "spec.affinity", 1)
