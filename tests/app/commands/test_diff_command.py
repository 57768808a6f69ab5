"""`kindred diff`: the formats, how it ends, and what is said where nothing can be compared."""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result
from fastapi import FastAPI, Response

from app.commands.cli import main
from app.main import create_service
from app.settings import Settings
from core.mirror.comparer import Difference, Differences
from tests.app.commands.running import running
from tests.app.commands.test_cli_serve_cluster import fill, kubeconfig, until_ready
from tests.app.questions import shop
from tests.app.serving import kindred
from tests.builders import make_pod
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.faults import Stall
from tests.fake_apiserver.resources import PODS

SAME = {"nodes": Differences(listed=60)}
OTHER = {
    "nodes": Differences(listed=60, differing=(Difference("node1", "u1", ("labels",)),)),
    "pods": Differences(listed=300, missed=(Difference("shop/web-0", "u2"),)),
    "storageclasses": Differences(listed=1, redundant=(Difference("fast", "u3"),)),
}


@contextmanager
def answering(found: Mapping[str, Differences]) -> Iterator[tuple[str, list[float]]]:
    """Serve a comparison, and give the URL and how long differences had to last."""
    app = FastAPI()
    asked = []

    @app.get("/debug/mirror/diff")
    async def diff(settle: float) -> Response:
        asked.append(settle)
        return Response(msgspec.json.encode(found), media_type="application/json")

    with running(app) as server:
        yield server.url, asked


def diff(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["diff", *arguments])


def test_it_ends_with_0_where_nothing_differs_and_with_1_where_something_does() -> None:
    with answering(SAME) as (url, _):
        same = diff("--server", url)
    with answering(OTHER) as (url, _):
        other = diff("--server", url)
    assert (same.exit_code, same.stdout.splitlines()[0]) == (0, "The mirror equals the API server's lists.")
    assert other.exit_code == 1
    assert other.stdout.startswith("The mirror differs from the API server in 3 objects.\n")
    assert same.stderr == other.stderr == ""


def test_a_service_that_follows_a_cluster_is_compared_with_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with FakeApiServer() as server:
            fill(server)
            following = ("serve", "--kubeconfig", kubeconfig(tmp_path, server.url), "--port", "0", "--admin-port", "0")
            with kindred(tmp_path, *following) as service:
                await until_ready(service)
                (url,) = re.findall(r"Debugging at (\S+)/debug/mirror", service.stdout)
                same = await asyncio.to_thread(diff, "--server", url, "--settle", "0")
                assert (same.exit_code, same.stderr) == (0, "")
                server.disturb(Stall(), PODS.path)
                server.create(PODS.path, make_pod("late").on("b1").obj())
                other = await asyncio.to_thread(diff, "--server", url, "--settle", "0", "-o", "name")
                assert (other.exit_code, other.stdout) == (1, "pod/late\n")

    asyncio.run(scenario())


def test_names_are_those_that_kubectl_prints() -> None:
    with answering(OTHER) as (url, _):
        result = diff("--server", url, "-o", "name")
    assert result.stdout.splitlines() == ["node/node1", "pod/web-0", "storageclass.storage.k8s.io/fast"]


def test_json_is_what_the_route_says() -> None:
    with answering(OTHER) as (url, _):
        result = diff("--server", url, "-o", "json")
    assert json.loads(result.stdout) == json.loads(msgspec.json.encode(OTHER))


def test_how_long_a_difference_has_to_last_is_asked_for() -> None:
    with answering(SAME) as (url, asked):
        diff("--server", url)
        diff("--server", url, "--settle", "2.5")
    assert asked == [1.0, 2.5]
    refused = diff("--settle", "61")
    assert (refused.exit_code, refused.stdout) == (2, "")


def test_a_mirror_of_a_dump_cannot_be_compared() -> None:
    service = create_service(Settings(admin_port=0), shop(), None)
    assert service.admin is not None
    with running(service.admin) as server:
        result = diff("--server", server.url)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "409 Conflict: the mirror comes from a dump, so there is nothing to compare it with" in result.stderr


@pytest.mark.parametrize(
    ("told", "message"),
    [
        pytest.param(None, "no service at 127.0.0.1:1 (Connection refused): start one with", id="nobody-there"),
        pytest.param(["hello"], "is that the admin port?", id="another-service"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_status_2(told: list[str] | None, message: str) -> None:
    app = FastAPI()
    app.get("/debug/mirror/diff")(lambda: told)
    with running(app) as server:
        result = diff("--server", "http://127.0.0.1:1" if told is None else server.url)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
