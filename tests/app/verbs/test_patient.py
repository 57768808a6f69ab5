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

REJECTED = VerbResponse(b"refused", retryable=True)
FITS = VerbResponse(b"fits")


class Reported:
    """Answers as it was told, the last answer again and again."""

    def __init__(self, responses: Iterable[VerbResponse]) -> None:
        self.responses = list(responses)
        self.requested = 0
        self.verb = Patient(self._evaluate, self._unread, effects_over(ClusterMirror()))

    def _evaluate(self, request: Request, effects: Effects | None) -> VerbResponse:
        assert request.dry_run == (effects is None)
        self.requested += 1
        return self.responses[min(self.requested, len(self.responses)) - 1]

    def _unread(self, _: Pod, problem: str, __: Effects) -> VerbResponse:
        raise AssertionError(problem)


def ask(monkeypatch: pytest.MonkeyPatch, reported: Reported, request: Request | None = None) -> VerbResponse:
    monkeypatch.setattr(routes, "_RETRY_DELAYS", (0.0, 0.0, 0.0))

    async def requested() -> VerbResponse:
        response = reported.verb(request or Request())
        return response if isinstance(response, VerbResponse) else await response

    return asyncio.run(requested())


def test_an_answer_without_doubt_is_given_at_once() -> None:
    response = Reported([FITS]).verb(Request())
    assert response is FITS


def test_a_doubtful_one_is_looked_at_until_it_is_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    reported = Reported([REJECTED, REJECTED, FITS, REJECTED])
    assert ask(monkeypatch, reported) is FITS
    assert reported.requested == 3


def test_it_is_given_if_it_remains(monkeypatch: pytest.MonkeyPatch) -> None:
    reported = Reported([REJECTED])
    assert ask(monkeypatch, reported) is REJECTED
    assert reported.requested == 4


def test_a_dry_run_is_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reported = Reported([REJECTED, FITS])
    assert ask(monkeypatch, reported, Request(dry_run=True)) is REJECTED
    assert reported.requested == 1


def test_all_looks_take_less_than_the_shortest_timeout_of_the_registrations() -> None:
    assert sum(routes._RETRY_DELAYS) < 1.0  # noqa: SLF001  # its very value
