"""What a request may hold is bounded before it is decoded, as a decoded element may weigh 30 times its text."""

import json
import tracemalloc
from collections.abc import Callable

import pytest

from app.limits import MAX_NODES
from app.main import create_extender
from app.settings import Settings
from tests.app.questions import Bodies, decoded, shop
from tests.builders import make_pod

POD = make_pod("p").json()
MEBIBYTE = 1024 * 1024


def extender() -> Bodies:
    return Bodies(create_extender(Settings(), shop()))


def by_name(names: bytes) -> bytes:
    return b'{"Pod":%s,"NodeNames":[%s]}' % (POD, names)


def by_object(items: bytes) -> bytes:
    return b'{"Pod":%s,"Nodes":{"items":[%s]}}' % (POD, items)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(by_object(b"{}," * 6_000_000 + b"{}"), id="empty-nodes"),
        pytest.param(by_name(b'"a",' * 6_000_000 + b'"b"'), id="short-names"),
    ],
)
@pytest.mark.parametrize(
    "verb", [pytest.param(Bodies.filter, id="filter"), pytest.param(Bodies.prioritize, id="prioritize")]
)
def test_many_tiny_elements_are_refused_without_being_decoded(
    verb: Callable[[Bodies, bytes], bytes], body: bytes
) -> None:
    asked = extender()
    tracemalloc.start()
    try:
        answer = decoded(verb(asked, body))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert answer["Error"] == "body: more than 5000000 elements"
    assert peak < MEBIBYTE


@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param(by_name(b",".join(b'"n%d"' % n for n in range(MAX_NODES + 1))), "NodeNames", id="names"),
        pytest.param(
            by_object(b",".join(b'{"metadata":{"name":"n%d"}}' % n for n in range(MAX_NODES + 1))),
            "Nodes.items",
            id="whole-nodes",
        ),
    ],
)
def test_more_nodes_than_any_cluster_has_are_refused(body: bytes, field: str) -> None:
    assert decoded(extender().filter(body))["Error"] == f"{field}: more than {MAX_NODES} nodes"
    assert decoded(extender().prioritize(body)) == {"Error": f"{field}: more than {MAX_NODES} nodes"}


def test_as_many_nodes_as_are_allowed_are_answered() -> None:
    names = [f"n{number}" for number in range(MAX_NODES)]
    body = json.dumps({"Pod": make_pod("p").obj(), "NodeNames": names}).encode()
    assert len(decoded(extender().filter(body))["FailedAndUnresolvableNodes"]) == MAX_NODES


def test_a_pod_larger_than_any_api_server_stores_is_refused() -> None:
    pod = make_pod("p").label("a", "x" * 4 * MEBIBYTE).obj()
    body = json.dumps({"Pod": pod, "NodeNames": ["a1"]}).encode()
    assert decoded(extender().filter(body))["Error"] == f"Pod: larger than {4 * MEBIBYTE} bytes"
    assert decoded(extender().prioritize(body)) == [{"Host": "a1", "Score": 0}]
