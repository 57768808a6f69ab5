"""Nodes that are all known are looked up in a short way, which never finds what the long way would not."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.objects.decode import DecodeError
from app.objects.decode_node import decode_node
from app.verbs.wire_in import decode_args
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from tests.app.questions import mirror_of
from tests.app.verbs.receptions import Serving
from tests.builders import make_node

NAMES = tuple(f"node-{number}" for number in range(20))
POD = b'{"metadata":{"name":"p","namespace":"default"},"spec":{}}'
MIRROR = mirror_of(*map(make_node, NAMES))


def body_of(names: Sequence[str], *, pod: bytes = POD, tail: bytes = b"\n") -> bytes:
    return b'{"Pod":%s,"Nodes":null,"NodeNames":%s}%s' % (pod, compact(names), tail)


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def names_in(body: bytes, mirror: ClusterMirror = MIRROR) -> list[str] | str:
    """Return the names of the nodes that a body asks about, or the error."""
    try:
        return list(decode_args(body, mirror).batch.names)
    except DecodeError as error:
        return str(error)


def in_the_long_way(monkeypatch: pytest.MonkeyPatch, body: bytes) -> list[str] | str:
    with monkeypatch.context() as patched:
        patched.setattr(NodeBatch, "found", lambda *_: None)
        return names_in(body)


def test_the_short_way_is_taken_for_what_kube_scheduler_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClusterMirror, "batch", lambda *_: pytest.fail("took the long way"))
    items = [{"metadata": {"name": name, "labels": {"a": "b"}}, "status": {}} for name in NAMES]
    whole = b'{"Pod":%s,"Nodes":{"metadata":{},"items":%s},"NodeNames":null}\n' % (POD, compact(items))
    assert names_in(body_of(NAMES[::-1])) == list(NAMES[::-1])
    assert names_in(whole) == list(NAMES)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(json.dumps({"Pod": json.loads(POD), "NodeNames": NAMES}).encode(), id="spaces"),
        pytest.param(body_of(NAMES, tail=b""), id="no-line-feed"),
        pytest.param(body_of(NAMES, tail=b" \r\n\t "), id="white-space-behind"),
        pytest.param(body_of(NAMES, tail=b" " * 50), id="much-white-space-behind"),
        pytest.param(body_of(NAMES, tail=b"}"), id="a-brace-too-many"),
        pytest.param(body_of(NAMES, tail=b"x]}"), id="garbage-behind"),
        pytest.param(body_of([*NAMES, "stranger"]), id="an-unknown-node"),
        pytest.param(body_of([*NAMES, NAMES[3]]), id="a-node-twice"),
        pytest.param(body_of([]), id="no-node"),
        pytest.param(body_of(NAMES).replace(b"node-7", b"node-\\u0037"), id="an-escape"),
        pytest.param(body_of(NAMES).replace(b'"node-7"', b'"node-7\0"'), id="a-control-character"),
        pytest.param(body_of(NAMES).replace(b'"node-7"', b"null"), id="null"),
        pytest.param(body_of(NAMES, pod=b'{"NodeNames":["node-1"]}'), id="names-inside-of-the-pod"),
        pytest.param(body_of(NAMES, pod=b'{"a":"\\"NodeNames\\":["}'), id="names-inside-of-a-string"),
        pytest.param(body_of(NAMES, pod=b'{"a":"'), id="a-string-without-end"),
        pytest.param(body_of(NAMES, pod=b"{}}"), id="a-pod-with-a-brace-too-many"),
        pytest.param(body_of(NAMES, pod=b"{"), id="a-pod-without-end"),
        pytest.param(body_of(NAMES).replace(b'"Nodes":null', b'"Nodes":{"items":[]}'), id="both-forms"),
        pytest.param(body_of(NAMES).replace(b'"Nodes"', b'"Bodes"'), id="an-unknown-field"),
        pytest.param(body_of(NAMES).replace(b'"NodeNames"', b'"nodeNames"'), id="another-case"),
        pytest.param(b'{"NodeNames":%s,"Pod":%s}' % (compact(NAMES), POD), id="another-order"),
        pytest.param(b'{"NodeNames":%s' % compact(NAMES), id="cut"),
        pytest.param(b"[" + body_of(NAMES) + b"]", id="in-an-array"),
        pytest.param(b'"NodeNames":["node-1"]}', id="no-object"),
    ],
)
def test_both_ways_come_to_the_same(monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    assert in_the_long_way(monkeypatch, body) == names_in(body)


@given(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=6, unique=True),
    st.integers(0, 200),
    st.integers(0, 3),
    st.sampled_from([b"", b'"', b",", b"]", b"}", b"\\", b"\0", b"\xff", b" ", b'"node-1"', b'"NodeNames":[']),
)
def test_both_ways_come_to_the_same_whatever_is_changed(
    names: Sequence[str], position: int, removed: int, added: bytes
) -> None:
    body = body_of(names)
    position %= len(body)
    changed = body[:position] + added + body[position + removed :]
    with pytest.MonkeyPatch.context() as patched:
        assert in_the_long_way(patched, changed) == names_in(changed)


@pytest.mark.parametrize(
    "item",
    [
        pytest.param(b'{"kind":"Node","metadata":{"name":"node-1"}}', id="another-beginning"),
        pytest.param(b'{"metadata":{"uid":"u","name":"node-1"}}', id="another-order"),
        pytest.param(b'{"metadata":{"name":"node\\u002d1"}}', id="an-escape"),
        pytest.param(b'{"metadata":{"name":"stranger"}}', id="an-unknown-node"),
        pytest.param(b'{"metadata":{"name":"' + b"n" * 300 + b'"}}', id="a-name-that-is-too-long"),
        pytest.param(b'{"metadata":{"name":"node-1","labels":{"a":"\xff"}}}', id="other-than-utf-8"),
        pytest.param(b'{"metadata":{"name":""}}', id="no-name"),
        pytest.param(b"{}", id="nothing"),
        pytest.param(b"7", id="no-object"),
    ],
)
def test_both_ways_come_to_the_same_for_whole_nodes(monkeypatch: pytest.MonkeyPatch, item: bytes) -> None:
    body = b'{"Pod":%s,"Nodes":{"items":[{"metadata":{"name":"node-2"}},%s]},"NodeNames":null}' % (POD, item)
    assert in_the_long_way(monkeypatch, body) == names_in(body)


def extender() -> Serving:
    return Serving(mirror_of(*map(make_node, NAMES)))


def passing(response: bytes) -> list[str]:
    names: list[str] = json.loads(response)["NodeNames"]
    return names


def test_prioritize_does_not_look_up_again_what_filter_has_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    requested = extender()
    passed = passing(requested.filter(body_of(NAMES[3:12])).body)
    monkeypatch.setattr(NodeBatch, "found", lambda *_: pytest.fail("looked up again"))
    scored = json.loads(requested.prioritize(body_of(passed)).body)
    assert [(name, 0) for name in NAMES[3:12]] == [(each["Host"], each["Score"]) for each in scored]


@pytest.mark.parametrize(
    "names",
    [NAMES[:3], NAMES[:5], NAMES[:4][::-1], ("node-1", "node-0", "node-2", "node-3"), (*NAMES[:3], "node-19")],
    ids=["fewer", "more", "another-order", "two-changed-places", "another-name"],
)
def test_other_names_than_filter_has_passed_on_are_looked_up(names: Sequence[str]) -> None:
    requested = extender()
    requested.filter(body_of(NAMES[:4]))
    assert list(names) == [each["Host"] for each in json.loads(requested.prioritize(body_of(names)).body)]


def test_no_node_passed_on_is_no_node_to_ask_about() -> None:
    requested = extender()
    nowhere = b'{"metadata":{"name":"p","namespace":"default"},"spec":{"affinity":{"podAffinity":{"%s":[%s]}}}}' % (
        b"requiredDuringSchedulingIgnoredDuringExecution",
        b'{"labelSelector":{"matchLabels":{"a":"b"}},"topologyKey":"zone"}',
    )
    assert passing(requested.filter(body_of(NAMES, pod=nowhere)).body) == []
    assert json.loads(requested.prioritize(body_of([])).body) == []
    assert "is empty" in json.loads(requested.filter(body_of([])).body)["Error"]


def test_what_filter_has_passed_on_is_forgotten_where_nodes_come_and_go() -> None:
    mirror = mirror_of(*map(make_node, NAMES))
    requested = Serving(mirror)
    passed = passing(requested.filter(body_of(NAMES[:2])).body)
    mirror.apply(ClusterEvent("Delete", decode_node(make_node(NAMES[0]).json())))
    mirror.apply(ClusterEvent("Add", decode_node(make_node("newcomer").json())))
    hosts = [each["Host"] for each in json.loads(requested.prioritize(body_of(passed)).body)]
    assert list(NAMES[:2]) == hosts, "and not the newcomer, who has the slot now"
    assert json.loads(requested.filter(body_of(passed)).body)["FailedAndUnresolvableNodes"].keys() == {NAMES[0]}
