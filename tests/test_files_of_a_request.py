"""How many files of app and core a request passes: what a reader has to open to follow it."""

import asyncio
from typing import Final

import pytest

from tests.app.feeds.following import scenario
from tests.app.server.conversations import connected, read_response, request, serving
from tests.app.verbs.binding.binding_setting import N1, N2, PATIENCE, WEB, scheduling, until
from tests.builders import make_pod
from tests.calls import ROOT, Calls, port_of
from tests.fake_apiserver import FakeApiServer

REQUEST: Final = ROOT / "app/demo/requests/required-affinity.json"


@pytest.fixture(autouse=True)
def _no_pod_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what passes with the time alone is counted, if it falls into the request."""
    monkeypatch.setattr("app.feeds.objects._EXPIRY_EVERY", 600.0)


async def calls_of_a_filter() -> Calls:
    """Send a pod of a known class over a connection, and return the calls of the second request."""
    calls = Calls()
    port = serving(port_of("extender"))
    async with asyncio.timeout(PATIENCE), port as (_, number), connected(number) as (reader, writer):
        writer.write(request("/filter", REQUEST.read_bytes()))
        await read_response(reader)
        with calls.watching():
            writer.write(request("/filter", REQUEST.read_bytes()))
            assert (await read_response(reader))[0] == 200
    return calls


def test_a_filter_of_a_known_class_passes_few_files() -> None:
    found = asyncio.run(calls_of_a_filter()).files
    files = [each for each in found if each != "app/server/server.py"]  # uvicorn's loop may tick meanwhile
    assert "app/verbs/filter.py" in files
    assert len(files) <= 26, files


@scenario()
async def test_a_decision_passes_few_files(server: FakeApiServer) -> None:
    roomy = [each.allocatable(cpu="8", pods="100") for each in (N1, N2)]
    async with scheduling(server, *roomy, decide="any-node", profile="full") as scheduler:
        calls = Calls()
        for name in ("first", "second", "third", "fourth"):  # from the third on, the class has a ranking
            pod = await scheduler.pending(make_pod(name).label("app", "web"))
            calls = Calls()
            with calls.watching():
                assert (await scheduler.ask("filter", pod, "n1", "n2")).is_success
    assert len(calls.files) <= 49, calls.files


@scenario()
async def test_a_binding_passes_few_files(server: FakeApiServer) -> None:
    async with scheduling(server, N1) as scheduler:
        pod = scheduler.create(WEB)
        assert await scheduler.filter(pod, "n1") == ["n1"]
        await until(server.all_sent)
        scheduler.stall_watch()  # the event of the binding is not a part of it
        calls = Calls()
        with calls.watching():
            assert await scheduler.bind(pod, "n1") == ""
    assert len(calls.files) <= 34, calls.files
