"""The usage of nodes in the mirror: read at an interval, too old in time, and what is wrong is said once."""

import asyncio
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from app.api_server.client import ConnectionFailedError, StatusError
from app.feeds.usage_feed import Measurements, UsageFeed, covered_until
from app.objects.decode import DecodeError
from app.settings.settings import Settings, SettingsError
from app.wiring.cluster import check_usage
from app.wiring.main import create_service
from core.mirror.cluster import ClusterMirror
from core.objects.node import NodeMetrics, Usage
from core.profile import parse_profile
from tests.app.verbs.binding.binding_setting import scheduling, until
from tests.builders import make_node, make_pod
from tests.core.decoded import mirror_of
from tests.fake_apiserver import Behaviour, FakeApiServer
from tests.fake_apiserver.usage import METRICS_PATH, FakeUsage
from tests.virtual_time import run_in_virtual_time

NOW: Final = 1_767_225_600.0
REJECTED: Final = ConnectionFailedError("GET /x at https://server: Connection refused")


def measured(name: str, age: float = 0.0, cpu: int = 100) -> NodeMetrics:
    at = NOW - age
    return NodeMetrics(name=name, measured_at=int(at), covers_pods_until=covered_until(at), cpu=Usage(cpu))


class Source:
    """Gives what a test wants, one after the other, and the last for ever."""

    name = "source"

    def __init__(self, *responses: Measurements | Exception) -> None:
        self.responses = [*responses]
        self.requested = 0
        self.closed = 0

    async def measurements(self) -> Measurements:
        self.requested += 1
        found = self.responses.pop(0) if len(self.responses) > 1 else self.responses[0]
        if isinstance(found, Exception):
            raise found
        return found

    def remedy(self, error: Exception) -> str:
        return "try something" if isinstance(error, StatusError) else ""

    async def close(self) -> None:
        self.closed += 1


class Setting:
    """Nodes n1 and n2, a source, and a clock that the test moves."""

    def __init__(self, source: Source) -> None:
        self.now = NOW
        self.mirror = mirror_of(make_node("n1"), make_node("n2"))
        self.feed = UsageFeed(source, self.mirror, self.mirror.apply, lambda: self.now, interval=30.0, max_age=180.0)

    def polled(self, times: int = 1) -> "Setting":
        """Ask so many times."""

        async def ask() -> None:
            for _ in range(times):
                await self.feed.poll()

        asyncio.run(ask())
        return self

    def aged(self) -> None:
        """Look at the age of what is held."""
        asyncio.run(self.feed.age())

    @property
    def stored(self) -> dict[str, NodeMetrics]:
        return dict(self.mirror.objects(NodeMetrics))


def good(*metrics: NodeMetrics, problems: Sequence[str] = ()) -> Measurements:
    return Measurements(metrics, problems)


def test_measurements_of_known_nodes_are_given_to_the_mirror() -> None:
    setting = Setting(Source(good(measured("n1"), measured("gone")))).polled()
    assert setting.stored == {"n1": measured("n1")}
    assert setting.feed.counts() == {"measured": 1, "too_old": 0, "not_measured": 1}


def test_a_measurement_becomes_too_old_though_the_source_says_nothing_more(caplog: pytest.LogCaptureFixture) -> None:
    setting = Setting(Source(good(measured("n1", age=10), measured("n2")))).polled()
    setting.now += 175
    setting.aged()
    setting.aged()
    assert {name: each.too_old for name, each in setting.stored.items()} == {"n1": True, "n2": False}
    assert setting.feed.counts() == {"measured": 1, "too_old": 1, "not_measured": 0}
    assert [line for line in caplog.messages if "ignored" in line] == [
        "node usage: nodes measured more than 180 s ago, ignored: 1, n1 first"
    ]


def test_a_measurement_that_is_hours_old_is_held_as_too_old_and_stays_so() -> None:
    setting = Setting(Source(good(measured("n1", age=7200)))).polled()
    generation = setting.mirror.generation
    assert setting.polled(3).stored["n1"].too_old
    assert setting.mirror.generation == generation, "what is read again changes nothing"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        pytest.param(StatusError(404, "NotFound", "GET /apis: 404 NotFound"), "404 NotFound (try something)", id="404"),
        pytest.param(REJECTED, "Connection refused; retried", id="unreachable"),
        pytest.param(DecodeError("", "malformed JSON"), "malformed JSON; retried", id="no-json"),
    ],
)
def test_a_failure_is_said_once_and_leaves_what_is_held(
    error: Exception, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    setting = Setting(Source(good(measured("n1")), error, error, error, good(measured("n1")))).polled(4)
    assert setting.stored == {"n1": measured("n1")}
    assert len(caplog.messages) == 1
    assert text in caplog.messages[0]
    setting.polled()
    assert caplog.messages[1:] == ["node usage: source: responds again"]


def test_values_that_cannot_be_used_are_said_once_until_they_are_others(caplog: pytest.LogCaptureFixture) -> None:
    first, second = [f"node n{number}: usage.cpu: -1 cannot be" for number in range(5)], ["node n9: x"]
    setting = Setting(Source(good(problems=first), good(problems=first), good(problems=[*first, *second])))
    setting.polled(3)
    assert caplog.messages == [
        f"node usage: source: ignored: {'; '.join(first[:3])}; and 2 more",
        "node usage: source: ignored: node n9: x",
    ]


def test_a_clock_that_is_ahead_is_said_and_its_measurement_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    setting = Setting(Source(good(measured("n1", age=-60), measured("n2", age=-61)))).polled()
    assert set(setting.stored) == {"n1"}
    assert caplog.messages == ["node usage: source: ignored: node n2: its clock is ahead"]


def test_the_source_is_asked_at_the_interval_and_one_that_is_silent_has_failed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> int:
        loop = asyncio.get_running_loop()
        mirror = mirror_of(make_node("n1"))

        class Silent(Source):
            async def measurements(self) -> Measurements:
                self.requested += 1
                if self.requested == 2:
                    await asyncio.sleep(10_000)
                return good(measured("n1"))

        source = Silent(good())
        feed = UsageFeed(source, mirror, mirror.apply, loop.time, interval=30.0, max_age=1e12)
        task = asyncio.create_task(feed.run())
        await asyncio.sleep(100)  # asked at 0, 30 (until 60) and 90
        task.cancel()
        return source.requested

    assert run_in_virtual_time(main()) == 3
    assert sum("no response within 30 s" in line for line in caplog.messages) == 1


def test_the_source_is_asked_at_the_interval_though_the_clock_is_set_back() -> None:
    async def main() -> int:
        source = Source(good(measured("n1")))
        setting = Setting(source)
        task = asyncio.create_task(setting.feed.run())
        await asyncio.sleep(1)
        setting.now -= 3600
        await asyncio.sleep(95)  # asked at 0, 30, 60 and 90
        task.cancel()
        return source.requested

    assert run_in_virtual_time(main()) == 4


def test_the_source_is_closed_when_the_feed_ends() -> None:
    source = Source(good(measured("n1")))
    setting = Setting(source)

    async def run_and_end() -> None:
        task = asyncio.create_task(setting.feed.run())
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(run_and_end())
    assert (source.requested, source.closed) == (1, 1)


# In a service.


AMOUNTS: Final = {"cpu": "4", "memory": "8Gi", "pods": "110"}
N1, N2 = (make_node(name).allocatable(**AMOUNTS).capacity(**AMOUNTS) for name in ("n1", "n2"))
POD: Final = make_pod("p").image("a").limits(cpu="400m")
PACKING: Final[dict[str, Any]] = {"profile": "TargetLoadPacking", "usage_source": "metrics-api", "usage_interval": 1.0}


async def scores_next_to(usage: FakeUsage, nodes: int) -> dict[str, int]:
    """Return the scores of both nodes once so many are measured."""
    async with (
        FakeApiServer(Behaviour(other_apis=usage.apis)) as server,
        scheduling(server, N1, N2, **PACKING) as scheduler,
    ):
        await until(lambda: len(scheduler.mirror.objects(NodeMetrics)) == nodes)
        response = await scheduler.ask("prioritize", scheduler.create(POD), "n1", "n2")
        return {each["Host"]: each["Score"] for each in response.json()}


def test_scores_follow_what_metrics_server_measures() -> None:
    usage = FakeUsage(cpu={"n1": 800, "n2": 2400}, memory={"n1": 2**30, "n2": 2**30})
    # n1: (800 + 400) / 4000 = 30 %: 60 * 30 / 40 + 40 = 85; n2: 70 %: 40 * 30 / 60 = 20
    assert asyncio.run(scores_next_to(usage, 2)) == {"n1": 85, "n2": 20}


@pytest.mark.parametrize(
    ("responses", "logged"),
    [
        pytest.param({}, "no metrics-server is installed", id="not-installed"),
        pytest.param(
            {
                METRICS_PATH: lambda _: (
                    403,
                    json.dumps({"kind": "Status", "code": 403, "reason": "Forbidden"}).encode(),
                )
            },
            "the RBAC rule that is missing",
            id="forbidden",
        ),
        pytest.param({METRICS_PATH: lambda _: (200, b"<html>")}, "malformed JSON", id="no-json"),
        pytest.param({METRICS_PATH: lambda _: (503, b"")}, "metrics-server is not available", id="not-available"),
    ],
)
def test_without_the_metrics_api_the_service_is_ready_and_says_what_is_wrong(
    responses: Any,  # noqa: ANN401 - as Behaviour has it
    logged: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with (
            FakeApiServer(Behaviour(other_apis=responses)) as server,
            scheduling(server, N1, N2, **PACKING) as scheduler,
        ):
            await until(lambda: any("node usage" in line for line in caplog.messages))
            assert await scheduler.is_ready()
            response = await scheduler.ask("prioritize", scheduler.create(POD), "n1", "n2")
            assert {each["Score"] for each in response.json()} == {0}

    asyncio.run(main())
    assert logged in next(line for line in caplog.messages if "node usage" in line)


def test_plugins_that_follow_the_load_need_a_source() -> None:
    check_usage(Settings(usage_source="metrics-api"), parse_profile("full,TargetLoadPacking=5"))
    settings = Settings(profile="full,LoadAware,TargetLoadPacking")
    with pytest.raises(SettingsError) as caught:
        check_usage(settings, parse_profile(settings.profile))
    assert str(caught.value) == (
        "KINDRED_PROFILE='full,LoadAware,TargetLoadPacking': LoadAware, TargetLoadPacking needs KINDRED_USAGE_SOURCE"
    )


def test_a_dump_needs_no_source() -> None:
    assert create_service(Settings(profile="TargetLoadPacking"), ClusterMirror(), None).background is not None


def test_prometheus_needs_its_address() -> None:
    with pytest.raises(ValueError, match="needs KINDRED_USAGE_PROMETHEUS_URL"):
        Settings(usage_source="prometheus")


@pytest.mark.parametrize("file", ["usage_prometheus_token_file", "usage_prometheus_ca_file"])
@pytest.mark.parametrize("url", ["", "http://prometheus:9090", "HTTPS://prometheus:9090"])
def test_a_token_is_for_prometheus_over_https_alone(file: str, url: str) -> None:
    given = {"usage_prometheus_url": url, file: "/run/f"}
    if url.startswith("HTTPS"):
        assert getattr(Settings.model_validate(given), file) == Path("/run/f")
        return
    with pytest.raises(ValueError, match="needs KINDRED_USAGE_PROMETHEUS_URL with https"):
        Settings.model_validate(given)
