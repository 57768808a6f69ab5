"""The last decisions, over HTTP."""

import asyncio
import gc
import json
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from starlette.requests import ClientDisconnect
from starlette.types import Message

from app.admin.decisions_routes import decisions_router
from app.explain.conformance_case.case import CaseArgs
from app.explain.replay import Replayer
from app.long_work import LongWork
from app.objects.decode_pod import decode_pod
from app.settings import Settings
from app.verbs.observation import Asked, Observation, VerbOutcome
from app.wiring.engine import create_extender
from core.events import ClusterEvent
from core.objects.pod import Pod
from tests.app.asgi import ASGI_REQUEST, ask
from tests.app.explain.noted_decisions import Asking
from tests.app.questions import by_name, shop
from tests.builders import make_pod
from tests.conformance.__main__ import main

INTRUDER = make_pod("in").uid("u").label("app", "intruder")
QUESTION = by_name(INTRUDER, "a1", "b1")


@pytest.fixture
def asking() -> Asking:
    return Asking(shop())


@pytest.fixture
def app(asking: Asking) -> FastAPI:
    served = FastAPI()
    replayer = Replayer(asking.mirror, lambda _: create_extender(Settings(), asking.mirror))
    args = CaseArgs(hard_pod_affinity_weight=7)
    served.include_router(decisions_router(asking.mirror, asking.decisions, replayer, args, LongWork()))
    return served


def test_decisions_are_shown_the_latest_first(app: FastAPI, asking: Asking) -> None:
    assert ask(app, "GET", "/debug/decisions").json() == {"noted": 0, "kept": 0, "decisions": []}
    asking.ask(QUESTION)
    asking.ask(by_name(INTRUDER, "a1"), "prioritize")
    asking.ask(by_name(make_pod("other"), "a1"))
    told = ask(app, "GET", "/debug/decisions").json()
    assert (told["noted"], told["kept"], [each["id"] for each in told["decisions"]]) == (3, 3, [3, 2, 1])
    first = told["decisions"][-1]
    hashes = {member: first.pop(member) for member in ("pod_hash", "arguments_hash")}
    assert first == {
        "id": 1,
        "at": "2025-11-22T12:00:00.000Z",
        "verb": "filter",
        "outcome": "fit",
        "pod": "default/in",
        "uid": "u",
        "nodes": 2,
        "passed": 1,
        "seconds": 0.25,
        "waited": 0.125,
        "generation": asking.mirror.generation,
        "source": "",
        "error": "",
        "stale": "",
        "request_bytes": len(QUESTION),
        "response_bytes": first["response_bytes"],
        "kubernetes": "1.34",
    }
    second = told["decisions"][1]
    assert hashes["pod_hash"] == second["pod_hash"] != ""
    assert hashes["arguments_hash"] != second["arguments_hash"]


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        pytest.param("?pod=u", [3, 1], id="uid"),
        pytest.param("?pod=default/in", [3, 1], id="name"),
        pytest.param("?pod=default/in&limit=1", [3], id="limit"),
        pytest.param("?pod=default/unknown", [], id="unknown"),
        pytest.param("?limit=0", [], id="none"),
    ],
)
def test_those_that_are_asked_for_are_shown(app: FastAPI, asking: Asking, query: str, shown: list[int]) -> None:
    for pod in (INTRUDER, make_pod("other"), INTRUDER):
        asking.ask(by_name(pod, "a1"))
    told = ask(app, "GET", f"/debug/decisions{query}").json()["decisions"]
    assert [each["id"] for each in told] == shown


def test_one_decision_is_shown_with_the_pod_and_the_answer(app: FastAPI, asking: Asking) -> None:
    asking.ask(QUESTION)
    told = ask(app, "GET", "/debug/decisions/1").json()
    assert told["decision"]["id"] == 1
    assert told["pod_sent"] == INTRUDER.obj()
    assert told["request"] == json.loads(QUESTION)
    assert told["answer"]["NodeNames"] == ["a1"]


def test_what_is_not_known_of_a_decision_is_null(app: FastAPI, asking: Asking) -> None:
    args = json.loads(by_name(INTRUDER, *(f"n{number}" for number in range(2000))))
    asking.ask(json.dumps(args).encode())
    asking.ask(b"{}")
    large = ask(app, "GET", "/debug/decisions/1").json()
    assert (large["request"], large["answer"]) == (None, None)
    bad = ask(app, "GET", "/debug/decisions/2").json()
    assert (bad["pod_sent"], bad["decision"]["outcome"], bad["decision"]["pod"]) == (None, "bad_request", "")
    assert bad["request"] == {}
    assert bad["answer"]["Error"] == bad["decision"]["error"] != ""


@pytest.mark.parametrize("request_sent", [b'{"Pod"', b"\xff\xfe", b"[" * 5000], ids=["cut-off", "no-text", "deep"])
def test_a_request_that_is_no_json_is_null(app: FastAPI, asking: Asking, request_sent: bytes) -> None:
    asking.ask(request_sent)
    assert ask(app, "GET", "/debug/decisions/1").json()["request"] is None


def test_a_pod_that_is_no_text_where_nobody_reads_it_is_shown_all_the_same(app: FastAPI, asking: Asking) -> None:
    args = json.loads(QUESTION)
    args["Pod"]["unread"] = "?"
    asking.ask(json.dumps(args).encode().replace(b'"?"', b'"\xff"'))
    assert ask(app, "GET", "/debug/decisions/1").json()["pod_sent"]["unread"] == "\N{REPLACEMENT CHARACTER}"
    assert ask(app, "GET", "/debug/decisions/1/case").json()["pod"]["unread"] == "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(("method", "suffix"), [("GET", ""), ("POST", "/replay"), ("GET", "/case")])
def test_an_unknown_decision_is_named(app: FastAPI, asking: Asking, method: str, suffix: str) -> None:
    for _ in range(9):
        asking.ask(QUESTION)
    none_yet = ask(app, method, f"/debug/decisions/10{suffix}")
    assert (none_yet.status_code, none_yet.json()["detail"]) == (404, "decision 10: there was none yet")
    gone = ask(app, method, f"/debug/decisions/1{suffix}")
    assert (gone.status_code, gone.json()["detail"]) == (404, "decision 1: not kept any more")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("GET /debug/decisions?limit=1001", id="too-many"),
        pytest.param("GET /debug/decisions?limit=-1", id="less-than-none"),
        pytest.param("GET /debug/decisions?pod=", id="no-pod"),
        pytest.param("GET /debug/decisions?pod=a&pod=b", id="two-pods"),
        pytest.param("GET /debug/decisions?node=a", id="unknown-parameter"),
        pytest.param("GET /debug/decisions/0", id="zero"),
        pytest.param("GET /debug/decisions/web", id="no-number"),
        pytest.param("POST /debug/decisions/1/replay?limit=1001", id="too-many-differences"),
    ],
)
def test_what_is_not_allowed_is_refused(app: FastAPI, asking: Asking, path: str) -> None:
    asking.ask(QUESTION)
    method, _, url = path.partition(" ")
    assert ask(app, method, url).status_code == 422


def test_a_decision_is_asked_again(app: FastAPI, asking: Asking) -> None:
    asking.ask(QUESTION)
    then = asking.mirror.generation
    asking.mirror.apply(ClusterEvent("Delete", decode_pod(make_pod("hermit").on("b1").json())))
    told = ask(app, "POST", "/debug/decisions/1/replay").json()
    same = {"outcome": "fit", "nodes": 2, "error": "", "kubernetes": "1.34"}
    assert told == {
        "id": 1,
        "at": "2025-11-22T12:00:00.000Z",
        "verb": "filter",
        "pod": "default/in",
        "nodes_asked": "as then",
        "then": {"generation": then, "passed": 1, **same},
        "now": {"generation": asking.mirror.generation, "passed": 2, **same},
        "differing_nodes": 1,
        "differences": [{"node": "b1", "then": "node(s) didn't satisfy existing pods anti-affinity rules", "now": ""}],
    }
    assert ask(app, "POST", "/debug/decisions/1/replay?limit=0").json()["differences"] == []


def test_what_cannot_be_asked_again_is_a_conflict(app: FastAPI, asking: Asking) -> None:
    asking.ask(b"{" + bytes(9000))
    refused = ask(app, "POST", "/debug/decisions/1/replay")
    assert (refused.status_code, refused.json()["detail"]) == (
        409,
        "decision 1: the service no longer has its request or its pod",
    )


def test_a_decision_is_taken_as_a_conformance_case(
    app: FastAPI, asking: Asking, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asking.ask(QUESTION)
    then = asking.mirror.generation
    asking.mirror.apply(ClusterEvent("Add", decode_pod(make_pod("in").uid("u").on("a1").json())))
    taken = ask(app, "GET", "/debug/decisions/1/case")
    assert taken.headers["content-type"] == "application/x-ndjson"
    assert taken.headers["content-disposition"] == 'attachment; filename="decision-1.jsonl"'
    case = taken.json()
    assert case["name"] == "decision/1/default/in"
    assert case["note"] == (
        "filter at 2025-11-22T12:00:00.000Z: fit, 1 of 2 nodes passed; "
        f"asked at generation {then}, the cluster as of generation {asking.mirror.generation}"
    )
    assert case["args"]["hardPodAffinityWeight"] == 7
    assert case["pod"] == INTRUDER.obj()
    assert len(case["pods"]) == 5  # without the pod itself
    file = tmp_path / "decision-1.jsonl"
    file.write_bytes(taken.content)
    assert main([str(file)]) == 0
    assert capsys.readouterr().out.endswith("InterPodAffinity: 1 passed, 0 failed\n")


def test_a_pod_that_only_the_mirror_knows_any_more_is_taken_from_there(app: FastAPI, asking: Asking) -> None:
    asking.decisions(Observation("bind", VerbOutcome.FIT, 0.1, 0.0, 9, 9, Asked("default/x", "x", 1, 1), "", "", ""))
    asking.mirror.apply(ClusterEvent("Add", decode_pod(make_pod("x").uid("x").label("app", "web").on("a1").json())))
    case = ask(app, "GET", "/debug/decisions/1/case").json()
    metadata = {"name": "x", "namespace": "default", "uid": "x", "labels": {"app": "web"}}
    assert case["pod"] == {"metadata": metadata}
    assert len(case["pods"]) == 5


def test_without_its_pod_a_decision_is_no_case(app: FastAPI, asking: Asking) -> None:
    asking.ask(b"{}")
    refused = ask(app, "GET", "/debug/decisions/1/case")
    assert (refused.status_code, refused.json()["detail"]) == (409, "decision 1: the service no longer has its pod")


def test_what_cannot_be_written_of_the_cluster_is_a_conflict_that_names_it(app: FastAPI, asking: Asking) -> None:
    asking.ask(QUESTION)
    asking.mirror.apply(ClusterEvent("Add", Pod("x", "shop", "odd", node_name="a1", requests={"cpu": 3})))
    refused = ask(app, "GET", "/debug/decisions/1/case")
    assert refused.status_code == 409
    assert refused.json()["detail"].startswith("decision 1: no case can be made: pod shop/odd: found no 0 containers")


def test_one_case_is_written_at_a_time(app: FastAPI, asking: Asking) -> None:
    asking.ask(QUESTION)

    async def both() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://kindred") as client:
            return list(await asyncio.gather(*(client.get("/debug/decisions/1/case") for _ in range(2))))

    first, second = asyncio.run(both())
    assert first.status_code == 200
    assert (second.status_code, second.json()["detail"]) == (409, "another case is being written")
    assert ask(app, "GET", "/debug/decisions/1/case").status_code == 200


def test_no_case_is_written_while_one_is_sent_to_a_slow_client(app: FastAPI, asking: Asking) -> None:
    asking.ask(QUESTION)
    scope = {**ASGI_REQUEST, "method": "GET", "path": "/debug/decisions/1/case", "asgi": {"spec_version": "2.4"}}

    async def story() -> None:
        sending, read_on = asyncio.Event(), asyncio.Event()

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                sending.set()
                await read_on.wait()

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://kindred") as client:
            slow = asyncio.create_task(app(scope, receive, send))
            await sending.wait()
            assert (await client.get("/debug/decisions/1/case")).status_code == 409
            read_on.set()
            await slow
            assert (await client.get("/debug/decisions/1/case")).status_code == 200

    asyncio.run(asyncio.wait_for(story(), 10))


def test_a_client_that_goes_away_leaves_room_for_the_next_case(app: FastAPI, asking: Asking) -> None:
    asking.ask(QUESTION)
    scope = {**ASGI_REQUEST, "method": "GET", "path": "/debug/decisions/1/case", "asgi": {"spec_version": "2.4"}}

    async def send(_: Message) -> None:
        raise OSError

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    with pytest.raises(ClientDisconnect):
        asyncio.run(app(scope, receive, send))
    gc.collect()
    assert ask(app, "GET", "/debug/decisions/1/case").status_code == 200
