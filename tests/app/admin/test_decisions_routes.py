"""The last decisions, over HTTP."""

import json

import pytest
from fastapi import FastAPI

from app.admin.decisions_routes import decisions_router
from app.process.long_work import LongWork
from tests.app.asgi import ask
from tests.app.explain.test_decisions import Asking
from tests.app.questions import by_name, shop
from tests.builders import make_pod

INTRUDER = make_pod("in").uid("u").label("app", "intruder")
QUESTION = by_name(INTRUDER, "a1", "b1")


@pytest.fixture
def asking() -> Asking:
    return Asking(shop())


@pytest.fixture
def app(asking: Asking) -> FastAPI:
    served = FastAPI()
    served.include_router(decisions_router(asking.decisions, LongWork()))
    return served


def test_decisions_are_shown_the_latest_first(app: FastAPI, asking: Asking) -> None:
    assert ask(app, "GET", "/debug/decisions").json() == {"noted": 0, "kept": 0, "decisions": []}
    asking.ask(QUESTION)
    asking.ask(by_name(INTRUDER, "a1"), "prioritize")
    asking.ask(by_name(make_pod("other"), "a1"))
    reported = ask(app, "GET", "/debug/decisions").json()
    assert (reported["noted"], reported["kept"], [each["id"] for each in reported["decisions"]]) == (3, 3, [3, 2, 1])
    first = reported["decisions"][-1]
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
    second = reported["decisions"][1]
    assert hashes["pod_hash"] == second["pod_hash"] != ""
    assert hashes["arguments_hash"] != second["arguments_hash"]


@pytest.mark.parametrize(
    ("query", "rendered"),
    [
        pytest.param("?pod=u", [3, 1], id="uid"),
        pytest.param("?pod=default/in", [3, 1], id="name"),
        pytest.param("?pod=default/in&limit=1", [3], id="limit"),
        pytest.param("?pod=default/unknown", [], id="unknown"),
        pytest.param("?limit=0", [], id="none"),
    ],
)
def test_those_that_are_asked_for_are_shown(app: FastAPI, asking: Asking, query: str, rendered: list[int]) -> None:
    for pod in (INTRUDER, make_pod("other"), INTRUDER):
        asking.ask(by_name(pod, "a1"))
    reported = ask(app, "GET", f"/debug/decisions{query}").json()["decisions"]
    assert [each["id"] for each in reported] == rendered


def test_one_decision_is_shown_with_the_pod_and_the_answer(app: FastAPI, asking: Asking) -> None:
    asking.ask(QUESTION)
    reported = ask(app, "GET", "/debug/decisions/1").json()
    assert reported["decision"]["id"] == 1
    assert reported["pod_sent"] == INTRUDER.obj()
    assert reported["request"] == json.loads(QUESTION)
    assert reported["answer"]["NodeNames"] == ["a1"]


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


def test_of_containers_only_what_rules_read_is_shown(app: FastAPI, asking: Asking) -> None:
    """The environment and the commands may have secrets, and the port shows none."""
    args = json.loads(QUESTION)
    pod, applied = args["Pod"], {"kubectl.kubernetes.io/last-applied-configuration": "s3cret", "kept": "1"}
    read = {"name": "c", "image": "i", "resources": {"requests": {"cpu": 0.10}}, "ports": [{"containerPort": 80}]}
    unread = {"env": [{"name": "TOKEN", "value": "s3cret"}], "command": ["s3cret"], "lifecycle": {"s3cret": "1"}}
    pod["metadata"]["annotations"] = applied
    kinds = "containers", "initContainers", "ephemeralContainers"
    pod["spec"] |= {kind: [{**read, **unread}] for kind in kinds}
    args["NodeNameToVictims"] = {"a1": {"Pods": [pod], "NumPDBViolations": 0}}
    asking.ask(json.dumps(args).encode())
    reported = ask(app, "GET", "/debug/decisions/1")
    assert "s3cret" not in reported.text
    pod["metadata"]["annotations"] = {"kept": "1"}
    pod["spec"] |= {kind: [read] for kind in kinds}
    assert reported.json()["request"] == args


def test_labels_with_the_names_of_fields_of_containers_are_shown(app: FastAPI, asking: Asking) -> None:
    args = json.loads(QUESTION)
    args["Pod"]["metadata"]["labels"] = {"containers": "few", "initContainers": ""}
    asking.ask(json.dumps(args).encode())
    assert ask(app, "GET", "/debug/decisions/1").json()["pod_sent"] == args["Pod"]


def test_an_unknown_decision_is_named(app: FastAPI, asking: Asking) -> None:
    for _ in range(9):
        asking.ask(QUESTION)
    none_yet = ask(app, "GET", "/debug/decisions/10")
    assert (none_yet.status_code, none_yet.json()["detail"]) == (404, "decision 10: there was none yet")
    gone = ask(app, "GET", "/debug/decisions/1")
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
    ],
)
def test_what_is_not_allowed_is_refused(app: FastAPI, asking: Asking, path: str) -> None:
    asking.ask(QUESTION)
    method, _, url = path.partition(" ")
    assert ask(app, method, url).status_code == 422
