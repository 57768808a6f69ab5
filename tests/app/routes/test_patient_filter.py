"""`filter` looks again where its answer is doubtful, for a moment."""

import asyncio
from collections.abc import Iterable

import pytest

from app.extender_v1 import Extender
from app.limits import Body
from app.main import create_profile
from app.observation import Answer
from app.routes import extender as routes
from app.routes.extender import PatientFilter
from app.settings import Settings
from core.mirror.cluster import ClusterMirror

REFUSED = Answer(b"refused", doubtful=True)
FITS = Answer(b"fits")


class Told(Extender):
    """Answers as it was told, the last answer again and again."""

    def __init__(self, answers: Iterable[Answer]) -> None:
        super().__init__(create_profile(Settings()), ClusterMirror())
        self.answers = list(answers)
        self.asked = 0

    def filter(self, body: Body, *, cached: bool = True) -> Answer:  # noqa: ARG002  # told
        self.asked += 1
        return self.answers[min(self.asked, len(self.answers)) - 1]


def ask(monkeypatch: pytest.MonkeyPatch, told: Told) -> Answer:
    monkeypatch.setattr(routes, "_LOOKS_AGAIN", (0.0, 0.0, 0.0))

    async def asked() -> Answer:
        answer = PatientFilter(told)(b"", cached=True)
        return answer if isinstance(answer, Answer) else await answer

    return asyncio.run(asked())


def test_an_answer_without_doubt_is_given_at_once() -> None:
    answer = PatientFilter(Told([FITS]))(b"", cached=True)
    assert answer is FITS


def test_a_doubtful_one_is_looked_at_until_it_is_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told([REFUSED, REFUSED, FITS, REFUSED])
    assert ask(monkeypatch, told) is FITS
    assert told.asked == 3


def test_it_is_given_if_it_remains(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told([REFUSED])
    assert ask(monkeypatch, told) is REFUSED
    assert told.asked == 4


def test_all_looks_take_less_than_the_shortest_timeout_of_the_registrations() -> None:
    assert sum(routes._LOOKS_AGAIN) < 1.0  # noqa: SLF001  # its very value
