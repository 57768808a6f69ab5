"""How often pods are read because of requests."""

import asyncio

import pytest

from app.verbs.pods import READS_A_SECOND, READS_OF_A_NAME, ReadRate, TooManyReadsError


class Turns:
    """Turns at times that a test sets. A turn that is not at once sets the time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self._rate = ReadRate(lambda: self.now)
        self.waited = 0.0

        async def sleep(seconds: float) -> None:
            self.waited = seconds

        monkeypatch.setattr(asyncio, "sleep", sleep)

    def take(self, name: str) -> float:
        """Take a turn, and return the seconds until it."""
        self.waited = 0.0
        asyncio.run(self._rate.turn(name))
        return self.waited

    def rejected(self, name: str) -> str:
        """Return why there is no turn."""
        with pytest.raises(TooManyReadsError) as found:
            self.take(name)
        return str(found.value)


def test_the_reads_of_a_second_come_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(monkeypatch)
    assert {turns.take(f"p{number}") for number in range(READS_A_SECOND)} == {0.0}


def test_further_reads_wait_for_their_turn_and_have_none_if_it_is_too_far_away(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(monkeypatch)
    waits = [turns.take(f"p{number}") for number in range(2 * READS_A_SECOND)]
    assert waits == sorted(waits)
    assert waits[-1] == pytest.approx(1.0)
    assert turns.rejected("q") == f"more than {READS_A_SECOND} reads of pods a second"
    turns.now += 1.0
    assert turns.take("q") <= 1.0


def test_a_name_has_its_own_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(monkeypatch)
    for _ in range(READS_OF_A_NAME):
        assert turns.take("default/p") == 0.0
    assert turns.rejected("default/p") == f"more than {READS_OF_A_NAME} reads of pod default/p a second"
    assert turns.take("default/q") == 0.0
    turns.now += 1.0 / READS_OF_A_NAME
    assert turns.take("default/p") == 0.0


def test_a_name_keeps_its_limit_when_too_many_others_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(monkeypatch)
    for _ in range(READS_OF_A_NAME):
        turns.take("default/p")
    turns.now += 2.0 / READS_OF_A_NAME
    for number in range(2 * READS_A_SECOND):
        turns.take(f"p{number}")
    assert turns.rejected("default/p") == f"more than {READS_A_SECOND} reads of pods a second"
    turns.now += 1.0 / READS_OF_A_NAME
    for _ in range(3):
        turns.take("default/p")
    assert turns.rejected("default/p") == f"more than {READS_OF_A_NAME} reads of pod default/p a second"


def test_a_name_that_was_refused_has_its_next_turn_no_later(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(monkeypatch)
    for _ in range(READS_OF_A_NAME):
        turns.take("default/p")
    for _ in range(100):
        turns.rejected("default/p")
    turns.now += 1.0 / READS_OF_A_NAME
    assert turns.take("default/p") == 0.0


def test_only_so_many_names_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.verbs.pods._MAX_NAMES", 2)
    turns = Turns(monkeypatch)
    for name in ("a", "b", "c"):
        for _ in range(READS_OF_A_NAME):
            turns.take(name)
    assert turns.rejected("c")
    assert turns.take("a") == 0.0
