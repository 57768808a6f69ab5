"""Requests that kube-scheduler would not send: each gets an answer that it can read, and the mirror stays as it was."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.objects.decode import NULL
from app.settings.settings import Settings
from app.verbs.wire_in import decode_incoming_pod
from app.verbs.wire_out import filter_error, prioritize_error
from app.wiring.engine import create_extender
from tests.app.questions import NEAR_WEB, UNKNOWN, ZONE, Bodies, by_name, decoded, reasons, shop, state, zeros
from tests.builders import PREFERRED, REQUIRED, Object, expressed, labelled, make_node, make_pod, term
from tests.json_places import places, replaced

POD = make_pod("p")
WANTS_WEB = make_pod("p").required_affinity(NEAR_WEB)
DEEP = 100_000

PREFIX = f"Pod.spec.affinity.podAffinity.{REQUIRED}"
EMPTY_VALUES = (
    "matchExpressions[0]: values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
)
UNKNOWN_OPERATOR = '"Near" is not a valid label selector operator'


def extender() -> Bodies:
    return Bodies(create_extender(Settings(), shop()))


def args(**members: object) -> bytes:
    return json.dumps(members).encode()


def pod_with(**members: object) -> Object:
    return {**POD.obj(), **members}


def nodes(*items: object) -> Object:
    return {"items": list(items)}


A1 = make_node("a1").obj()
C1 = make_node("c1").obj()
TWO = ["a1", "c1"]

# id -> body, the whole Error of filter, the nodes of the neutral list of prioritize (None where it is the Error too)
BAD_ARGS: dict[str, tuple[bytes, str, list[str] | None]] = {
    "empty-body": (b"", "body: malformed JSON: input data was truncated", None),
    "truncated": (by_name(POD, "a1")[:-1], "body: malformed JSON: input data was truncated", None),
    "null": (b"null", "body: expected object, got null", None),
    "array": (b"[]", "body: expected object, got array", None),
    "string": (b'"Pod"', "body: expected object, got str", None),
    "number": (b"3", "body: expected object, got int", None),
    "deep-arrays": (b"[" * DEEP, "body: expected object, got array", None),
    "deep-objects": (b'{"Pod":' * DEEP + b"1" + b"}" * DEEP, "body: malformed JSON: nested too deeply", None),
    "deep-pod": (
        b'{"Pod":%s,"NodeNames":["a1"]}' % (b'{"spec":' * DEEP + b"{}" + b"}" * DEEP),
        "body: malformed JSON: nested too deeply",
        None,
    ),
    "deep-nodes": (
        b'{"Pod":%s,"Nodes":{"items":%s}}' % (POD.json(), b"[" * DEEP + b"]" * DEEP),
        "body: malformed JSON: nested too deeply",
        None,
    ),
    "empty-object": (b"{}", "NodeNames: required (or Nodes, where nodeCacheCapable is false)", None),
    "no-pod": (args(NodeNames=TWO), "Pod: required", TWO),
    "pod-null": (args(Pod=None, NodeNames=TWO), "Pod: required", TWO),
    "no-pod-whole-nodes": (args(Nodes=nodes(A1, C1)), "Pod: required", TWO),
    "neither-nodes-nor-names": (
        args(Pod=POD.obj()),
        "NodeNames: required (or Nodes, where nodeCacheCapable is false)",
        None,
    ),
    "nodes-and-names-null": (
        args(Pod=POD.obj(), Nodes=None, NodeNames=None),
        "NodeNames: required (or Nodes, where nodeCacheCapable is false)",
        None,
    ),
    "both-nodes-and-names": (
        args(Pod=POD.obj(), Nodes=nodes(A1), NodeNames=TWO),
        "Nodes, NodeNames: both given; kube-scheduler sends one, by nodeCacheCapable",
        TWO,
    ),
    "unknown-field": (
        args(Pod=POD.obj(), NodeNames=TWO, NodeName="a1"),
        "NodeName: unknown field; ExtenderArgs has Pod, Nodes, NodeNames",
        TWO,
    ),
    "unknown-field-and-whole-nodes": (
        args(pod=POD.obj(), nodes=nodes(A1, C1), Verb="filter"),
        "Verb: unknown field; ExtenderArgs has Pod, Nodes, NodeNames",
        TWO,
    ),
    "pod-number": (args(Pod=3, NodeNames=TWO), "Pod: expected object, got int", TWO),
    "pod-array": (args(Pod=[], NodeNames=TWO), "Pod: expected object, got array", TWO),
    "pod-without-metadata": (args(Pod={}, NodeNames=TWO), "Pod.metadata.name: required", TWO),
    "pod-of-another-kind": (
        args(Pod=pod_with(kind="Node"), NodeNames=TWO),
        "Pod.kind: expected Pod, got Node",
        TWO,
    ),
    "pod-spec-string": (
        args(Pod=pod_with(spec="x"), NodeNames=TWO),
        "Pod.spec: expected object | null, got str",
        TWO,
    ),
    "label-number": (
        args(Pod={"metadata": {"name": "p", "labels": {"a": 1}}}, NodeNames=TWO),
        "Pod.metadata.labels[a]: expected str | null, got int",
        TWO,
    ),
    "affinity-array": (
        args(Pod=pod_with(spec={"affinity": []}), NodeNames=TWO),
        "Pod.spec.affinity: expected object, got array",
        TWO,
    ),
    "terms-object": (
        args(Pod=pod_with(spec={"affinity": {"podAffinity": {REQUIRED: {}}}}), NodeNames=TWO),
        f"{PREFIX}: expected array | null, got object",
        TWO,
    ),
    "weight-out-of-int32": (
        args(Pod=pod_with(spec={"affinity": {"podAffinity": {PREFERRED: [{"weight": 2**31}]}}}), NodeNames=TWO),
        f"Pod.spec.affinity.podAffinity.{PREFERRED}[0].weight: expected int <= 2147483647",
        TWO,
    ),
    "invalid-operator": (
        by_name(POD.required_affinity(NEAR_WEB, term(ZONE, expressed("a", "Near"))), *TWO),
        f"{PREFIX}[1].labelSelector.matchExpressions[0].operator: {UNKNOWN_OPERATOR}",
        TWO,
    ),
    "invalid-operator-whole-nodes": (
        args(Pod=POD.required_affinity(term(ZONE, expressed("a", "Near"))).obj(), Nodes=nodes(A1, C1)),
        f"{PREFIX}[0].labelSelector.matchExpressions[0].operator: {UNKNOWN_OPERATOR}",
        TWO,
    ),
    "invalid-namespace-selector": (
        by_name(POD.preferred_anti_affinity(1, term(ZONE, labelled(), namespace_selector=expressed("a", "In"))), *TWO),
        f"Pod.spec.affinity.podAntiAffinity.{PREFERRED}[0].podAffinityTerm.namespaceSelector.{EMPTY_VALUES}",
        TWO,
    ),
    "names-string": (args(Pod=POD.obj(), NodeNames="a1"), "NodeNames: expected array | null, got str", None),
    "names-object": (args(Pod=POD.obj(), NodeNames={"a1": 1}), "NodeNames: expected array | null, got object", None),
    "name-number": (args(Pod=POD.obj(), NodeNames=["a1", 1]), "NodeNames[1]: expected str, got int", None),
    "name-null": (args(Pod=POD.obj(), NodeNames=[None]), "NodeNames[0]: expected str, got null", None),
    "no-names": (args(Pod=POD.obj(), NodeNames=[]), "NodeNames: is empty; there is no node to choose from", []),
    "no-items": (args(Pod=POD.obj(), Nodes=nodes()), "Nodes.items: is empty; there is no node to choose from", []),
    "nodes-array": (args(Pod=POD.obj(), Nodes=[A1]), "Nodes: expected object, got array", None),
    "nodes-without-items": (args(Pod=POD.obj(), Nodes={}), "Nodes.items: required", None),
    "items-null": (args(Pod=POD.obj(), Nodes={"items": None}), "Nodes.items: required", None),
    "items-object": (
        args(Pod=POD.obj(), Nodes={"items": A1}),
        "Nodes.items: expected array | null, got object",
        None,
    ),
    "item-number": (args(Pod=POD.obj(), Nodes=nodes(A1, 3)), "Nodes.items[1]: expected object, got int", None),
    "item-without-name": (
        args(Pod=POD.obj(), Nodes=nodes(A1, {"metadata": {"generateName": "a"}})),
        "Nodes.items[1].metadata.name: required",
        None,
    ),
    "item-with-broken-labels": (
        args(Pod=POD.obj(), Nodes=nodes(A1, {"metadata": {"name": "new", "labels": []}})),
        "Nodes.items[1].metadata.labels: expected object | null, got array",
        ["a1", "new"],
    ),
    "item-of-another-kind": (
        args(Pod=POD.obj(), Nodes=nodes(A1, {**make_node("new").obj(), "kind": "Pod"})),
        "Nodes.items[1].kind: expected Node, got Pod",
        ["a1", "new"],
    ),
    "name-twice": (
        args(Pod=POD.obj(), NodeNames=["a1", "c1", "b1", "c1", "a1"]),
        "NodeNames[3]: c1 is at position 1 already",
        ["a1", "c1", "b1", "c1", "a1"],
    ),
    "unknown-name-twice": (
        args(Pod=POD.obj(), NodeNames=["ghost", "a1", "ghost"]),
        "NodeNames[2]: ghost is at position 0 already",
        ["ghost", "a1", "ghost"],
    ),
    "name-twice-beside-an-unknown-one": (
        args(Pod=POD.obj(), NodeNames=["ghost", "a1", "a1"]),
        "NodeNames[2]: a1 is at position 1 already",
        ["ghost", "a1", "a1"],
    ),
    "whole-node-twice": (
        args(Pod=POD.obj(), Nodes=nodes(A1, C1, A1)),
        "Nodes.items[2]: a1 is at position 0 already",
        ["a1", "c1", "a1"],
    ),
    "unknown-whole-node-twice": (
        args(Pod=POD.obj(), Nodes=nodes(make_node("x").obj(), make_node("x").label("a", "b").obj())),
        "Nodes.items[1]: x is at position 0 already",
        ["x", "x"],
    ),
}

each_bad_request = pytest.mark.parametrize(
    ("body", "error", "neutral"), [pytest.param(*case, id=name) for name, case in BAD_ARGS.items()]
)


@each_bad_request
def test_filter_answers_a_bad_request_with_an_error_that_names_the_field(
    body: bytes, error: str, neutral: list[str] | None
) -> None:
    del neutral
    assert error == decoded(extender().filter(body))["Error"]
    assert filter_error(error) == extender().filter(body)


@each_bad_request
def test_prioritize_answers_a_bad_request_with_zeros_where_its_nodes_can_be_read_and_quotes_nothing_of_it_in_the_log(
    body: bytes, error: str, neutral: list[str] | None, caplog: pytest.LogCaptureFixture
) -> None:
    response = extender().prioritize(body)
    assert response == (prioritize_error(error) if neutral is None else zeros(neutral))
    assert caplog.records == []


@pytest.mark.parametrize(
    "question", [args(Pod={}, NodeNames=TWO), args(Pod={}, Nodes=nodes(A1, C1))], ids=["names", "objects"]
)
def test_the_nodes_of_a_request_whose_pod_alone_is_bad_are_not_read_again(
    question: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.verbs.filter.requested_names", lambda _: pytest.fail("read again"))
    monkeypatch.setattr("app.verbs.filter.decode_incoming_pod", lambda _: decode_incoming_pod(NULL))
    assert extender().prioritize(question) == zeros(TWO)


@each_bad_request
def test_a_bad_request_leaves_the_mirror_as_it_was_and_the_next_one_is_answered(
    body: bytes, error: str, neutral: list[str] | None
) -> None:
    del error, neutral
    mirror = shop()
    verbs, before = Bodies(create_extender(Settings(), mirror)), state(mirror)
    verbs.filter(body)
    verbs.prioritize(body)
    assert before == state(mirror)
    assert decoded(verbs.filter(by_name(WANTS_WEB, *TWO)))["NodeNames"] == ["a1"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(by_name(POD, "a1") + b"x", id="trailing-characters"),
        pytest.param(by_name(POD, "a1") * 2, id="two-documents"),
        pytest.param(b"\xef\xbb\xbf" + by_name(POD, "a1"), id="byte-order-mark"),
        pytest.param(by_name(POD, "a1").decode().encode("utf-16"), id="utf-16"),
        pytest.param(b'{"Pod":%s,"NodeNames":["a1",]}' % POD.json(), id="trailing-comma"),
        pytest.param(b"{'Pod':{}}", id="single-quotes"),
        pytest.param(b'{"Pod":%s,"NodeNames":["\\ud800"]}' % POD.json(), id="lone-surrogate"),
        pytest.param(b"Pod: {}\nNodeNames: [a1]", id="yaml"),
        pytest.param(b"\x00" * 100, id="zeros"),
        pytest.param(b"\x1f\x8b\x08\x00", id="gzip"),
    ],
)
def test_what_is_not_json_is_said_to_be_malformed(body: bytes) -> None:
    error = decoded(extender().filter(body))["Error"]
    assert error.startswith("body: malformed JSON: ")
    assert prioritize_error(error) == extender().prioritize(body)


def test_text_that_is_not_utf_8_is_refused_and_named() -> None:
    in_label = b'{"Pod":{"metadata":{"name":"p","labels":{"a":"\xff"}}},"NodeNames":["a1"]}'
    in_name = b'{"Pod":%s,"NodeNames":["a\xff"]}' % POD.json()
    assert decoded(extender().filter(in_label))["Error"].startswith("Pod: malformed JSON: ")
    assert zeros(["a1"]) == extender().prioritize(in_label)
    assert decoded(extender().filter(in_name))["Error"].startswith("NodeNames: malformed JSON: ")
    assert decoded(extender().prioritize(in_name)).keys() == {"Error"}


def test_unknown_names_fail_one_by_one_and_the_others_are_judged() -> None:
    body = by_name(WANTS_WEB, "ghost", "a1", "phantom", "b1")
    assert reasons(extender().filter(body)) == {"ghost": UNKNOWN, "phantom": UNKNOWN}
    assert decoded(extender().filter(body))["NodeNames"] == ["a1", "b1"]


def test_unknown_fields_inside_a_pod_are_passed_over() -> None:
    pod = {**WANTS_WEB.obj(), "spec": {**WANTS_WEB.obj()["spec"], "newInRelease99": {"a": [1, 2.5, None]}}}
    assert extender().filter(by_name(WANTS_WEB, *TWO)) == extender().filter(args(Pod=pod, NodeNames=TWO))


# Whatever else may come.

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=8,
)
RICH = POD.required_affinity(NEAR_WEB).preferred_anti_affinity(3, term(ZONE, expressed("app", "In", "web")))
BY_NAME: Object = json.loads(by_name(RICH, *TWO, "ghost"))
BY_OBJECT: Object = {"Pod": RICH.obj(), "Nodes": {"items": [A1, make_node("new").label(ZONE, "a").obj()]}}


@st.composite
def spoiled_bodies(draw: st.DrawFn) -> bytes:
    question = draw(st.sampled_from([BY_NAME, BY_OBJECT]))
    return json.dumps(replaced(question, draw(st.sampled_from(places(question))), draw(json_values))).encode()


def assert_responded(body: bytes) -> None:
    """Hold both answers to their form: an Error, or each node asked exactly once."""
    mirror = shop()
    verbs, before = Bodies(create_extender(Settings(), mirror)), state(mirror)
    result, priorities = decoded(verbs.filter(body)), decoded(verbs.prioritize(body))
    assert list(result) == ["Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error"]
    if not result["Error"]:
        retained = result["NodeNames"]
        if retained is None:
            retained = [item["metadata"]["name"] for item in result["Nodes"]["items"]]
        requested = [entry["Host"] for entry in priorities]
        assert sorted(requested) == sorted([*retained, *result["FailedNodes"], *result["FailedAndUnresolvableNodes"]])
        assert all(0 <= entry["Score"] <= 100 for entry in priorities)
    elif isinstance(priorities, list):
        assert not any(entry["Score"] for entry in priorities)
    else:
        assert priorities == {"Error": result["Error"]}
    assert before == state(mirror)


@settings(deadline=None)
@given(spoiled_bodies())
def test_a_body_with_any_value_replaced_is_answered(body: bytes) -> None:
    assert_responded(body)


@settings(deadline=None)
@given(st.binary(max_size=200) | json_values.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_answered(body: bytes) -> None:
    assert_responded(body)


@settings(deadline=None)
@given(st.data())
def test_a_body_cut_off_or_garbled_anywhere_is_answered(data: st.DataObject) -> None:
    body = bytearray(json.dumps(data.draw(st.sampled_from([BY_NAME, BY_OBJECT]))).encode())
    position = data.draw(st.integers(0, len(body) - 1))
    body[position : data.draw(st.sampled_from([position, position + 1, len(body)]))] = data.draw(st.binary(max_size=2))
    assert_responded(bytes(body))
