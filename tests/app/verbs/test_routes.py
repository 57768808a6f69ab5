"""The verbs over HTTP: status and headers, bounded bodies, clients that go away, and faults of our own."""

import re
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from starlette.types import ASGIApp, Message

from app.process.json_text import decode
from app.settings.limits import DEFAULTS, Limits
from app.settings.settings import Settings
from app.verbs.admission import Shed
from app.verbs.endpoint import ExtenderApp
from app.verbs.filter import Extender
from app.verbs.request import Request
from app.verbs.wire_out import filter_error, prioritize_error
from app.wiring.engine import create_extender
from app.wiring.main import create_service
from core.events import ClusterEvent
from core.framework.interface import Status
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.pod import Pod
from core.plugins.interpodaffinity.filtering import DomainSums, PreFilterState
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from core.profile import Profile
from tests.app.asgi import ask, converse
from tests.app.questions import NEAR_WEB, by_name, decoded, mirror_of, scores, shop, state
from tests.app.verbs.receptions import extender_app, reception
from tests.builders import make_node, make_pod
from tests.core.plugins.test_nodevolumelimits import claim, csi_node, csi_volume

WANTS_WEB = make_pod("p").required_affinity(NEAR_WEB)
QUESTION = by_name(WANTS_WEB, "a1", "c1")
HTTP_API = Path(__file__).parents[3] / "docs" / "commands.md"
MIB = 1024 * 1024
CHUNK = 64 * 1024
LARGEST = DEFAULTS.max_body_bytes


def served(mirror: ClusterMirror | None = None, limits: Limits = DEFAULTS) -> ASGIApp:
    return create_service(Settings(), shop() if mirror is None else mirror, None, limits=limits).app


async def spaces(size: int, consumed: list[int] | None = None) -> AsyncIterator[bytes]:
    """Yield so many bytes, each chunk an object of its own."""
    for start in range(0, size, CHUNK):
        chunk = b" " * min(CHUNK, size - start)
        if consumed is not None:
            consumed.append(len(chunk))
        yield chunk


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
@pytest.mark.parametrize("body", [QUESTION, b"{"], ids=["good", "bad"])
def test_a_verb_answers_200_with_json_of_a_known_length(verb: str, body: bytes) -> None:
    response = ask(served(), "POST", f"/{verb}", body)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.headers["content-length"] == str(len(response.content))
    of_the_cache = {"kindred-equivalence"} if body == QUESTION else set()
    assert response.headers.keys() == {"content-type", "content-length"} | of_the_cache
    extender = create_extender(Settings(), shop())
    assert {"filter": extender.filter, "prioritize": extender.prioritize}[verb](Request(body)).body == response.content


@pytest.mark.parametrize(
    "content_type", ["application/json", "application/x-www-form-urlencoded", "text/plain; charset=latin-1", ""]
)
def test_the_body_is_read_whatever_its_content_type_says(content_type: str) -> None:
    response = ask(served(), "POST", "/filter", QUESTION, {"content-type": content_type})
    assert response.json()["NodeNames"] == ["a1"]


@pytest.mark.parametrize("name", ["EBSLimits", "GCEPDLimits", "AzureDiskLimits", "CinderLimits", "NodeVolumeLimits"])
def test_a_removed_plugin_of_the_profile_limits_the_volumes_of_a_node_as_the_plugin_of_today_does(name: str) -> None:
    mirror = mirror_of(make_node("a1"))
    mirror.apply(ClusterEvent("Add", csi_node("a1", 0)))
    mirror.apply(ClusterEvent("Add", csi_volume("disk")))
    mirror.apply(ClusterEvent("Add", claim("data", "disk")))
    pod = make_pod("p").volume({"name": "v", "persistentVolumeClaim": {"claimName": "data"}})
    service = create_service(Settings(profile=name), mirror, None)
    response = ask(service.app, "POST", "/filter", by_name(pod, "a1")).json()
    assert (response["NodeNames"], response["FailedNodes"]) == ([], {"a1": "node(s) exceed max volume count"})


def test_a_query_after_the_verb_is_passed_over() -> None:
    assert ask(served(), "POST", "/filter?timeout=5s", QUESTION).json()["NodeNames"] == ["a1"]


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
def test_a_verb_is_posted_and_nothing_else(verb: str, method: str) -> None:
    response = ask(served(), method, f"/{verb}")
    assert response.status_code == 405
    assert response.headers["allow"] == "POST"


def test_a_verb_that_does_not_exist_is_not_found() -> None:
    assert ask(served(), "POST", "/filters", QUESTION).status_code == 404


# Bodies in pieces.


def test_a_body_in_chunks_without_a_length_is_put_together() -> None:
    async def letter_by_letter() -> AsyncIterator[bytes]:
        for position in range(len(QUESTION)):
            yield QUESTION[position : position + 1]
        yield b""

    assert (
        ask(served(), "POST", "/filter", QUESTION).content
        == ask(served(), "POST", "/filter", letter_by_letter()).content
    )


def test_a_body_of_exactly_the_largest_size_is_read_and_one_byte_more_is_refused() -> None:
    app = served(limits=Limits(max_body_bytes=1024))
    largest = QUESTION.ljust(1024)
    assert ask(app, "POST", "/filter", largest).json()["NodeNames"] == ["a1"]
    expected = "body: larger than 1024 bytes"
    assert filter_error(expected) == ask(app, "POST", "/filter", largest + b" ").content
    assert prioritize_error(expected) == ask(app, "POST", "/prioritize", largest + b" ").content


@pytest.mark.parametrize("headers", [{}, {"content-length": str(100 * MIB)}], ids=["chunked", "content-length"])
@pytest.mark.parametrize("verb", ["filter", "prioritize"])
def test_one_hundred_megabytes_are_refused_while_no_more_than_the_largest_body_is_held(
    verb: str, headers: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    mirror = shop()
    app, before = served(mirror), state(mirror)
    tracemalloc.start()
    try:
        response = ask(app, "POST", f"/{verb}", spaces(100 * MIB), headers)
        stored, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    error = f"body: larger than {LARGEST} bytes"
    assert response.status_code == 200
    assert response.content == {"filter": filter_error, "prioritize": prioritize_error}[verb](error)
    assert peak <= LARGEST + 2 * MIB
    assert stored <= MIB
    (record,) = caplog.records
    assert (record.getMessage(), vars(record)["outcome"]) == ("request", "bad_request")
    assert before == state(mirror)
    assert ask(app, "POST", "/filter", QUESTION).json()["NodeNames"] == ["a1"]


def test_a_body_without_end_is_answered_after_a_few_times_the_largest_size() -> None:
    consumed: list[int] = []
    response = ask(served(limits=Limits(max_body_bytes=MIB)), "POST", "/filter", spaces(100 * MIB, consumed))
    assert response.json()["Error"].startswith("body: larger than ")
    assert MIB < sum(consumed) <= 5 * MIB


def test_a_body_in_tiny_chunks_costs_not_many_times_its_size() -> None:
    app = served(limits=Limits(max_body_bytes=256 * 1024))

    def pairs() -> Iterator[Message]:
        for _ in range(64 * 1024):
            yield {"type": "http.request", "body": bytes(2), "more_body": True}
        yield {"type": "http.request", "body": b"", "more_body": False}

    converse(app, "/filter", pairs())  # once before, so that what is made only once is not measured
    tracemalloc.start()
    try:
        converse(app, "/filter", pairs())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 4 * 256 * 1024


# Clients that go away.


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
@pytest.mark.parametrize("part", [b"", QUESTION[:50], QUESTION], ids=["at-once", "midway", "before-the-end"])
def test_a_client_that_goes_away_midway_is_not_answered_and_the_next_one_is(verb: str, part: bytes) -> None:
    mirror = shop()
    app, before = served(mirror), state(mirror)
    received: list[Message] = [
        {"type": "http.request", "body": part, "more_body": True},
        {"type": "http.disconnect"},
    ]
    assert converse(app, f"/{verb}", iter(received)) == []
    assert before == state(mirror)
    assert ask(app, "POST", "/filter", QUESTION).json()["NodeNames"] == ["a1"]


# Faults of our own.


class Faulty(InterPodAffinity):
    """Breaks down over pods that are named `breaker`."""

    def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, PreFilterState | None]:
        self._break_down(pod)
        return super().pre_filter(mirror, pod)

    def pre_score(self, mirror: ClusterMirror, pod: Pod, batch: NodeBatch) -> tuple[Status, DomainSums | None]:
        self._break_down(pod)
        return super().pre_score(mirror, pod, batch)

    @staticmethod
    def _break_down(pod: Pod) -> None:
        if pod.name == "breaker":
            raise ZeroDivisionError("a secret of the cluster")


def test_an_unexpected_exception_is_an_error_of_its_request_alone(caplog: pytest.LogCaptureFixture) -> None:
    mirror = shop()
    before = state(mirror)
    profile = Profile(filters=(Faulty(),), scores=((Faulty(), 1),))
    app = extender_app(Extender(profile, mirror), mirror, reception())
    breaker = by_name(make_pod("breaker").required_affinity(NEAR_WEB), "a1", "c1")
    expected = "internal error: ZeroDivisionError"
    for verb, error in (("filter", filter_error), ("prioritize", prioritize_error)):
        response = ask(app, "POST", f"/{verb}", breaker)
        assert response.status_code == 200
        assert error(expected) == response.content
    raised = r": failed: ZeroDivisionError at test_routes\.py:\d+ _break_down < .*"
    assert [re.sub(raised, "", record.getMessage()) for record in caplog.records] == ["filter", "prioritize"]
    assert "a secret" not in caplog.text
    assert before == state(mirror)
    assert decoded(ask(app, "POST", "/filter", QUESTION).content)["NodeNames"] == ["a1"]
    likes_web = by_name(make_pod("p").preferred_affinity(1, NEAR_WEB), "a1", "c1")
    assert scores(ask(app, "POST", "/prioritize", likes_web).content) == {"a1": 100, "c1": 0}


def test_the_page_has_the_response_of_each_verb_to_a_request_that_is_rejected_under_load() -> None:
    app = create_service(Settings(preempt="verb"), ClusterMirror(), None).app
    assert isinstance(app, ExtenderApp)
    section = HTTP_API.read_text("utf-8").partition("### Rejected under load\n")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.MULTILINE))
    assert rows.keys() == {path.strip("/") for path in app.verbs}
    assert set(re.findall(r"`(deadline|queue_full|bytes)`", section)) == {reason.value for reason in Shed}
    for path, endpoint in app.verbs.items():
        request = Request()
        assert (b"kindred-shed", b"deadline") in endpoint.reject(Shed.DEADLINE, request)
        body, row = decode(request.response.body), rows[path.strip("/")]
        if isinstance(body, list):
            assert (body, "`[]`" in row) == ([], True)
        else:
            assert body.pop("Error").startswith("shed: ")
            assert "`Error`" in row
            assert not any(body.values()), "no node, and nothing done"
