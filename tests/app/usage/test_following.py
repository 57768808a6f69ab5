"""A service that follows a server with a metrics API: its answers follow what is measured, and what is not."""

import asyncio
import json
from typing import Any, Final

import pytest

from app.main import create_service
from app.settings.settings import Settings, SettingsError
from app.wiring.cluster import check_usage
from core.mirror.cluster import ClusterMirror
from core.objects.node import NodeMetrics
from core.profile import parse_profile
from tests.app.verbs.binding.binding_setting import scheduling, until
from tests.builders import make_node, make_pod
from tests.fake_apiserver import Behaviour, FakeApiServer
from tests.fake_apiserver.usage import METRICS_PATH, FakeUsage

AMOUNTS: Final = {"cpu": "4", "memory": "8Gi", "pods": "110"}
N1, N2 = (make_node(name).allocatable(**AMOUNTS).capacity(**AMOUNTS) for name in ("n1", "n2"))
POD: Final = make_pod("p").image("a").limits(cpu="400m")
PACKING: Final[dict[str, Any]] = {"profile": "TargetLoadPacking", "usage_source": "metrics-api", "usage_interval": 1.0}


async def scores_beside(usage: FakeUsage, nodes: int) -> dict[str, int]:
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
    assert asyncio.run(scores_beside(usage, 2)) == {"n1": 85, "n2": 20}


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
def test_without_the_metrics_api_the_service_is_ready_and_says_once_what_is_wrong(
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
            await asyncio.sleep(1.2)  # it is asked again after a second
            assert await scheduler.is_ready()
            response = await scheduler.ask("prioritize", scheduler.create(POD), "n1", "n2")
            assert {each["Score"] for each in response.json()} == {0}

    asyncio.run(main())
    (said,) = [line for line in caplog.messages if "node usage" in line]
    assert logged in said


@pytest.mark.parametrize("source", ["metrics-api", "prometheus"])
def test_plugins_that_follow_the_load_may_start_with_a_source(source: Any) -> None:  # noqa: ANN401 - a literal
    settings = Settings(usage_source=source, usage_prometheus_url="http://prometheus")
    check_usage(settings, parse_profile("full,TargetLoadPacking=5"))


def test_plugins_that_follow_the_load_need_a_source() -> None:
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
