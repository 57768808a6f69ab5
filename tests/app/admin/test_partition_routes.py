"""The partition, looked at and replaced over HTTP."""

import json
from collections.abc import AsyncIterator

import pytest
from fastapi import FastAPI

from app.admin.partition import NodePartition, partition_router
from app.process.long_work import LongWork
from core.mirror.cluster import ClusterMirror
from tests.app.asgi import ask
from tests.app.questions import mirror_of
from tests.builders import Object, make_node
from tests.core.mirror.audit import audit

ZONE_A = {"matchLabels": {"zone": "a"}}


def three_nodes() -> ClusterMirror:
    """Two nodes in zone a, and one in zone b."""
    return mirror_of(*(make_node(name).label("zone", name[0]) for name in ("a1", "a2", "b1")))


def served(mirror: ClusterMirror) -> FastAPI:
    app = FastAPI()
    app.include_router(partition_router(NodePartition(mirror), LongWork()))
    return app


def put(app: FastAPI, rule: Object) -> Object:
    response = ask(app, "PUT", "/debug/partition", json.dumps(rule).encode())
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    answer: Object = response.json()
    assert answer == ask(app, "GET", "/debug/partition").json()
    return answer


def inside(mirror: ClusterMirror, *names: str) -> list[str]:
    return [name for name in names or ("a1", "a2", "b1") if mirror.node_in_partition(name)]


def refusal(app: FastAPI, body: bytes) -> str:
    before = ask(app, "GET", "/debug/partition").json()
    response = ask(app, "PUT", "/debug/partition", body)
    assert response.status_code == 422
    assert ask(app, "GET", "/debug/partition").json() == before
    detail: str = response.json()["detail"]
    return detail


def test_at_first_every_node_is_in() -> None:
    app = served(three_nodes())
    response = ask(app, "GET", "/debug/partition")
    assert response.status_code == 200
    assert response.json() == {"rule": {"selector": None, "in": [], "out": []}, "nodes": {"in": 3, "out": 0}}


def test_a_selector_lets_in_the_nodes_that_it_matches() -> None:
    mirror = three_nodes()
    answer = put(served(mirror), {"selector": ZONE_A})
    assert answer == {"rule": {"selector": ZONE_A, "in": [], "out": []}, "nodes": {"in": 2, "out": 1}}
    assert inside(mirror) == ["a1", "a2"]
    assert audit(mirror) == []


def test_named_nodes_are_in_or_out_whatever_the_selector_says() -> None:
    mirror = three_nodes()
    answer = put(served(mirror), {"selector": ZONE_A, "in": ["b1", "c1"], "out": ["a1"]})
    assert answer["nodes"] == {"in": 2, "out": 1}
    assert inside(mirror, "a1", "a2", "b1", "c1", "d1") == ["a2", "b1", "c1"]


def test_a_rule_replaces_the_one_before_as_a_whole() -> None:
    mirror = three_nodes()
    app = served(mirror)
    put(app, {"selector": ZONE_A, "in": ["b1"], "out": ["a1", "a2"]})
    put(app, {"selector": ZONE_A, "in": ["a2"]})
    assert inside(mirror) == ["a1", "a2"]
    put(app, {"out": ["a2"]})
    assert inside(mirror) == ["a1", "b1"]
    assert put(app, {})["nodes"] == {"in": 3, "out": 0}
    assert inside(mirror) == ["a1", "a2", "b1"]


def test_a_selector_that_is_null_matches_every_node_and_an_empty_one_does_too() -> None:
    empty: Object = {}
    for selector in (None, empty):
        mirror = three_nodes()
        app = served(mirror)
        put(app, {"selector": ZONE_A})
        assert put(app, {"selector": selector})["nodes"] == {"in": 3, "out": 0}


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        pytest.param('{"node": []}', "object contains unknown field node", id="unknown-field"),
        pytest.param(
            '{"selector": {"matchExpressions": [{"key": "a", "operator": "In", "value": "b"}]}}',
            "selector.matchExpressions[0]: object contains unknown field value",
            id="unknown-in-expression",
        ),
        pytest.param(
            '{"selector": {"matchExpressions": [{"key": "a"}]}}',
            'selector.matchExpressions[0].operator: "" is not a valid label selector operator',
            id="no-operator",
        ),
        pytest.param('{"out": ["a1", 2]}', "out[1]: expected str, got int", id="number-as-name"),
        pytest.param('{"in": ["a1", ""]}', "in[1]: empty", id="empty-name-in"),
        pytest.param('{"in": ["a2", "a1"], "out": ["b1", "a1"]}', "out[1]: a1 is in[1], too", id="in-and-out"),
        pytest.param(
            '{"selector": {"matchExpressions": [{"key": "zone", "operator": "Equals", "values": ["a"]}]}}',
            'selector.matchExpressions[0].operator: "Equals" is not a valid label selector operator',
            id="unknown-operator",
        ),
    ],
)
def test_a_rule_that_is_not_clear_is_refused_and_changes_nothing(body: str, detail: str) -> None:
    mirror = three_nodes()
    app = served(mirror)
    put(app, {"selector": ZONE_A, "in": ["b1"]})
    assert refusal(app, body.encode()) == detail
    assert inside(mirror) == ["a1", "a2", "b1"]


def test_an_invalid_label_is_named() -> None:
    detail = refusal(served(three_nodes()), b'{"selector": {"matchLabels": {"zone": "-"}}}')
    assert detail.startswith("selector.matchLabels[zone]: ")


def test_a_body_without_end_is_not_read_to_its_end() -> None:
    sent = 0

    async def spaces() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(1000):
            sent += 1
            yield b" " * 1024 * 1024

    response = ask(served(three_nodes()), "PUT", "/debug/partition", spaces())
    assert response.status_code == 413
    assert response.json() == {"detail": "body: larger than 4194304 bytes"}
    assert sent < 10
