"""What stands before and behind every verb: who is refused, turned away or let past, and what is told of it."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest

import app.verbs.filter
from app.objects.limits import Body
from app.objects.resources import RESOURCES
from app.settings import Settings
from app.verbs.admission import Admission, ServingState
from app.verbs.endpoint import ExtenderApp, Reception, StalePolicy
from app.verbs.filter import Bypass, Extender, extender_routes
from app.verbs.request import Asked, Observation, VerbOutcome, VerbResponse
from app.verbs.wire_in import ExtenderArgs, decode_args
from app.verbs.wire_out import filter_error
from app.watch.freshness import Freshness, ResourceState
from app.wiring.engine import create_profile
from core.objects.pod import Pod
from tests.app.asgi import ask
from tests.app.questions import NEAR_WEB, by_name, shop
from tests.app.verbs.receptions import effects_over, reception, verb_route
from tests.builders import make_pod

POD = make_pod("p").uid("u").required_affinity(NEAR_WEB)
QUESTION = by_name(POD, "a1", "a2", "c1")


class Follower:
    """Another replica leads."""

    leader = "other"

    def leads(self) -> bool:
        return False

    def problem(self) -> str:
        return "other leads"

    def seconds_left(self) -> float:
        return 0.0

    async def resign(self) -> None:
        pass


def stale() -> StalePolicy:
    state = ResourceState(RESOURCES[Pod])
    state.synced, state.followed_at = True, 0.0
    return StalePolicy(Freshness([state], 10.0, lambda: 100.0), lambda _: None)


def app_of(desk: Reception, bypass: Bypass | None = None) -> ExtenderApp:
    app = ExtenderApp()
    mirror = shop()
    extender = Extender(create_profile(Settings()), mirror, bypass=bypass or Bypass())
    app.add_verbs(*extender_routes(extender, effects_over(mirror), desk))
    return app


def observed(question: bytes, verb: str = "filter", **desk: object) -> tuple[httpx.Response, Observation]:
    """Ask once; give the answer and what was told of it."""
    told: list[Observation] = []
    response = ask(app_of(reception(observe=told.append, **desk)), "POST", f"/{verb}", question)  # type: ignore[arg-type]  # by their names
    (observation,) = told
    assert observation.verb == verb
    assert observation.request_bytes == len(question)
    assert observation.response_bytes == len(response.content)
    assert 0 <= observation.waited <= observation.seconds < 10
    return response, observation


@pytest.mark.parametrize(
    ("nodes", "outcome", "passed"),
    [(["a1", "a2", "c1"], VerbOutcome.FIT, 2), (["c1"], VerbOutcome.NO_FIT, 0)],
    ids=["some-fit", "none-fits"],
)
def test_filter_tells_how_many_nodes_passed(nodes: list[str], outcome: VerbOutcome, passed: int) -> None:
    _, observation = observed(by_name(POD, *nodes))
    assert outcome is observation.outcome
    assert Asked("default/p", "u", len(nodes), passed) == observation.asked
    assert observation.error == ""


def test_prioritize_tells_how_many_nodes_it_scored() -> None:
    _, observation = observed(QUESTION, "prioritize")
    assert (observation.outcome, observation.asked) == (VerbOutcome.FIT, Asked("default/p", "u", 3, 3))


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
def test_a_bad_request_is_told_with_its_error(verb: str) -> None:
    response, observation = observed(b'{"Pod":{}}', verb)
    assert observation.outcome is VerbOutcome.BAD_REQUEST
    assert observation.error
    assert observation.error == response.json()["Error"]


def test_a_fault_of_ours_is_told(caplog: pytest.LogCaptureFixture) -> None:
    def fails(body: object) -> VerbResponse:
        raise KeyError(body)

    told: list[Observation] = []
    app = ExtenderApp()
    app.add_verbs(verb_route(fails, reception(observe=told.append)))
    ask(app, "POST", "/preempt", b"{}")
    assert [(each.outcome, each.error) for each in told] == [(VerbOutcome.INTERNAL_ERROR, "internal error: KeyError")]
    assert caplog.records


def test_a_refusal_over_a_stale_mirror_is_told() -> None:
    response, observation = observed(QUESTION, stale_policy=stale())
    assert observation.outcome is VerbOutcome.STALE
    assert observation.error == response.json()["Error"] == "the mirror is stale: pods: stale for 100 s"


def test_who_does_not_lead_refuses_and_closes_the_connection() -> None:
    response, observation = observed(QUESTION, state=ServingState(Follower()))
    assert observation.outcome is VerbOutcome.NOT_LEADING
    assert observation.error == response.json()["Error"] == "not leading: other leads"
    assert response.headers["connection"] == "close"


def test_who_drains_answers_and_closes_the_connection() -> None:
    state = ServingState()
    state.draining = True
    response, observation = observed(QUESTION, state=state)
    assert observation.outcome is VerbOutcome.FIT
    assert response.headers["connection"] == "close"


@pytest.mark.parametrize(
    "desk",
    [pytest.param({"stale_policy": stale()}, id="stale"), pytest.param({"state": ServingState(Follower())}, id="led")],
)
@pytest.mark.parametrize("verb", ["filter", "prioritize"])
def test_a_pod_that_passes_does_so_when_others_are_refused(desk: dict[str, object], verb: str) -> None:
    told: list[Observation] = []
    app = app_of(reception(observe=told.append, **desk), Bypass(namespaces=("default",)))  # type: ignore[arg-type]  # by their names
    answer = ask(app, "POST", f"/{verb}", QUESTION).json()
    assert (answer["NodeNames"] if verb == "filter" else [each["Host"] for each in answer]) == ["a1", "a2", "c1"]
    assert [each.outcome for each in told] == [VerbOutcome.BYPASSED]


@pytest.mark.parametrize(
    "bypass", [Bypass(), Bypass(namespaces=("default",))], ids=["a pod that is refused", "a pod that passes"]
)
@pytest.mark.parametrize("verb", ["filter", "prioritize"])
def test_a_body_is_decoded_once_whether_its_pod_is_refused_or_passes(
    verb: str, bypass: Bypass, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[Body] = []

    def counted(body: Body, *rest: Any) -> ExtenderArgs:  # noqa: ANN401 - passed on
        decoded.append(body)
        return decode_args(body, *rest)

    monkeypatch.setattr(app.verbs.filter, "decode_args", counted)
    ask(app_of(reception(stale_policy=stale()), bypass), "POST", f"/{verb}", QUESTION)
    assert decoded == [QUESTION]


@pytest.mark.parametrize(
    ("verb", "expected"),
    [
        ("filter", filter_error),
        ("prioritize", lambda _: b"[]"),
    ],
)
@pytest.mark.parametrize(
    ("bounds", "reason", "message"),
    [
        ({"deadline": -1.0}, "deadline", "the request waited longer than the deadline (KINDRED_HTTP_TIMEOUT)"),
        ({"max_bytes": 10}, "bytes", "the bodies of requests take too many bytes (a quarter of the memory limit)"),
    ],
    ids=["deadline", "bytes"],
)
def test_who_is_turned_away_is_told_so_at_little_cost(
    bounds: dict[str, float], reason: str, message: str, verb: str, expected: Callable[[str], bytes]
) -> None:
    limits = {"deadline": 10.0, "queue_limit": 1, "max_bytes": 10_000, **bounds}
    admission = Admission(clock=lambda: 1.0, **limits)  # type: ignore[arg-type]  # by their names
    response, observation = observed(QUESTION, verb, admission=admission)
    assert response.status_code == 200
    assert expected(f"shed: {message}") == response.content
    assert reason == response.headers["kindred-shed"]
    assert (VerbOutcome.SHED, f"shed: {message}") == (observation.outcome, observation.error)
    assert admission.shed[reason] == 1
    assert (admission.in_flight, admission.bytes_held, admission.waiting) == (0, 0, 0)


def test_who_comes_while_the_queue_is_full_is_turned_away() -> None:
    admission = Admission(deadline=10.0, queue_limit=1, max_bytes=10_000, clock=lambda: 1.0)
    app = app_of(reception(admission=admission))

    async def asked() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://kindred") as client:
            return await asyncio.gather(*(client.post("/filter", content=QUESTION) for _ in range(4)))

    responses = asyncio.run(asked())
    assert [each.headers.get("kindred-shed") for each in responses] == [None, None, "queue_full", "queue_full"]
    assert all(each.json()["NodeNames"] == ["a1", "a2"] for each in responses[:2])
    expected = "shed: too many requests are in the queue (1)"
    assert [each.json()["Error"] for each in responses[2:]] == [expected, expected]
    assert (admission.in_flight, admission.bytes_held, admission.waiting) == (0, 0, 0)
