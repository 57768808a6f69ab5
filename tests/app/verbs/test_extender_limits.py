"""What a request may hold is bounded before it is decoded, as a decoded element may weigh 30 times its text."""

import json
import tracemalloc
from collections.abc import Callable

import pytest

from app.objects.decode import MAX_NODES
from app.settings.settings import Settings
from app.wiring.engine import create_extender
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
    requested = extender()
    tracemalloc.start()
    try:
        response = decoded(verb(requested, body))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert response["Error"] == "body: more than 5000000 elements"
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


@pytest.mark.parametrize(
    ("write", "field"),
    [
        pytest.param(lambda name: b'"%s"' % name, "NodeNames[1]", id="names"),
        pytest.param(lambda name: b'{"metadata":{"name":"%s"}}' % name, "Nodes.items[1].metadata.name", id="objects"),
    ],
)
def test_a_node_name_longer_than_any_node_has_is_refused(write: Callable[[bytes], bytes], field: str) -> None:
    def requested(length: int) -> bytes:
        return b",".join((write(b"n1"), write(b"x" * length), write(b"n2")))

    body_of = by_name if field.startswith("NodeNames") else by_object
    assert decoded(extender().filter(body_of(requested(254))))["Error"] == f"{field}: longer than 253 bytes"
    assert decoded(extender().filter(body_of(requested(253))))["Error"] == ""


def test_one_long_name_among_very_many_costs_no_more_than_they_do() -> None:
    names = [b"n%d" % number for number in range(90_000)]
    uniform, ragged = (by_name(b'"%s"' % b'","'.join((*names, last))) for last in (b"x", b"x" * 253))
    requested = extender()
    peaks = []
    for body in (uniform, ragged):
        tracemalloc.start()
        try:
            assert decoded(requested.filter(body))["Error"] == ""
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0]


def test_why_a_node_failed_quotes_no_more_of_the_pod_than_is_of_use() -> None:
    spec = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c" * 30_000}}]}
    pod = json.dumps({"metadata": {"name": "p", "namespace": "default"}, "spec": spec}).encode()
    volumes = Bodies(create_extender(Settings(profile="VolumeBinding"), shop()))
    reasons = decoded(volumes.filter(b'{"Pod":%s,"NodeNames":["a1"]}' % pod))["FailedAndUnresolvableNodes"]
    assert reasons["a1"].startswith('persistentvolumeclaim "ccc')
    assert len(reasons["a1"]) == 1024
