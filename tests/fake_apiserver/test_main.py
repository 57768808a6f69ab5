"""The process of its own: what it prints, what it serves, and how it ends."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.fake_apiserver.__main__ import main
from tests.fake_apiserver.resources import NODES, PODS
from tests.fake_apiserver.stored import Object

ROOT = Path(__file__).parents[2]
SMALL = ("--nodes", "10", "--pods", "100")


@contextmanager
def started(*arguments: str) -> Iterator[tuple["subprocess.Popen[str]", Object]]:
    """Run the process until it listens, and see to it that it has ended afterwards."""
    command = [sys.executable, "-m", "tests.fake_apiserver", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own program
        assert process.stdout is not None
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


def test_it_serves_the_bench_cluster_and_churns_until_it_is_told_to_end() -> None:
    with started(*SMALL, "--churn", "500") as (process, announced), httpx.Client(base_url=announced["url"]) as client:
        assert (announced["pid"], announced["nodes"], announced["pods"]) == (process.pid, 10, 100)
        assert len(client.get(NODES.path).json()["items"]) == 10
        assert len(client.get(PODS.path).json()["items"]) >= 100
        params = {"watch": "true", "resourceVersion": str(announced["version"])}
        with client.stream("GET", PODS.path, params=params) as response:
            assert next(response.iter_lines()).startswith('{"type":')
        client.post("/_control/churn", json={"rate": 0})
        assert client.get("/_control/quiet").json()["churn_events"] > 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


def test_it_ends_after_its_time() -> None:
    with started(*SMALL, "--seconds", "0.1", "--watch-list", "off", "--token", "x") as (process, _):
        assert process.wait(10) == 0


@pytest.mark.parametrize("arguments", [("--pods", "49"), ("--pods", "0", "--churn", "5"), ("--watch-list", "maybe")])
def test_what_cannot_be_is_told(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "error: " in capsys.readouterr().err
