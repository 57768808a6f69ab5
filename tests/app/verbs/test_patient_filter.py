"""`filter` looks again where its answer is doubtful, for a moment."""

import asyncio
from collections.abc import Iterable

import pytest

from app.objects.limits import Body
from app.settings import Settings
from app.verbs import routes
from app.verbs.extender import Extender
from app.verbs.observation import VerbResponse
from app.verbs.routes import PatientFilter
from app.verbs.verb_endpoint import ORDINARY
from app.wiring.engine import create_profile
from core.mirror.cluster import ClusterMirror

REFUSED = VerbResponse(b"refused", doubtful=True)
FITS = VerbResponse(b"fits")


class Told(Extender):
    """Answers as it was told, the last answer again and again."""

    def __init__(self, answers: Iterable[VerbResponse]) -> None:
        super().__init__(create_profile(Settings()), ClusterMirror())
        self.answers = list(answers)
        self.asked = 0

    def filter(self, body: Body, *, cached: bool = True, dry_run: bool = False) -> VerbResponse:  # noqa: ARG002  # told
        self.asked += 1
        return self.answers[min(self.asked, len(self.answers)) - 1]


def ask(monkeypatch: pytest.MonkeyPatch, told: Told) -> VerbResponse:
    monkeypatch.setattr(routes, "_LOOKS_AGAIN", (0.0, 0.0, 0.0))

    async def asked() -> VerbResponse:
        answer = PatientFilter(told)(b"", ORDINARY)
        return answer if isinstance(answer, VerbResponse) else await answer

    return asyncio.run(asked())


def test_an_answer_without_doubt_is_given_at_once() -> None:
    answer = PatientFilter(Told([FITS]))(b"", ORDINARY)
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
