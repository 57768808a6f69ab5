"""A verb looks again where its answer is doubtful, for a moment."""

import asyncio
from collections.abc import Iterable

import pytest

from app.verbs import filter as routes
from app.verbs.effects import Effects
from app.verbs.filter import Patient
from app.verbs.request import Request, VerbResponse
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from tests.app.verbs.receptions import effects_over

REFUSED = VerbResponse(b"refused", doubtful=True)
FITS = VerbResponse(b"fits")


class Told:
    """Answers as it was told, the last answer again and again."""

    def __init__(self, answers: Iterable[VerbResponse]) -> None:
        self.answers = list(answers)
        self.asked = 0
        self.verb = Patient(self._evaluate, self._unread, effects_over(ClusterMirror()))

    def _evaluate(self, request: Request, effects: Effects | None) -> VerbResponse:
        assert request.dry_run == (effects is None)
        self.asked += 1
        return self.answers[min(self.asked, len(self.answers)) - 1]

    def _unread(self, _: Pod, problem: str, __: Effects) -> VerbResponse:
        raise AssertionError(problem)


def ask(monkeypatch: pytest.MonkeyPatch, told: Told, request: Request | None = None) -> VerbResponse:
    monkeypatch.setattr(routes, "_LOOKS_AGAIN", (0.0, 0.0, 0.0))

    async def asked() -> VerbResponse:
        answer = told.verb(request or Request())
        return answer if isinstance(answer, VerbResponse) else await answer

    return asyncio.run(asked())


def test_an_answer_without_doubt_is_given_at_once() -> None:
    answer = Told([FITS]).verb(Request())
    assert answer is FITS


def test_a_doubtful_one_is_looked_at_until_it_is_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told([REFUSED, REFUSED, FITS, REFUSED])
    assert ask(monkeypatch, told) is FITS
    assert told.asked == 3


def test_it_is_given_if_it_remains(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told([REFUSED])
    assert ask(monkeypatch, told) is REFUSED
    assert told.asked == 4


def test_a_dry_run_is_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told([REFUSED, FITS])
    assert ask(monkeypatch, told, Request(dry_run=True)) is REFUSED
    assert told.asked == 1


def test_all_looks_take_less_than_the_shortest_timeout_of_the_registrations() -> None:
    assert sum(routes._LOOKS_AGAIN) < 1.0  # noqa: SLF001  # its very value
