"""Responses that kube-scheduler would accept, and others."""

import json

import pytest

from tests.load.answers import WrongAnswerError, check_scores, check_shed, check_status, passed_nodes
from tests.load.questions import Nodes

NAMES = Nodes("NodeNames", {name: json.dumps(name).encode() for name in "abcd"})
OBJECTS = Nodes("Nodes", {name: b'{"metadata":{"name":"%s"},"spec":{"taints":[]}}' % name.encode() for name in "abcd"})


def result(**fields: object) -> bytes:
    """Return an ExtenderFilterResult in Go's form."""
    empty: dict[str, object] = {
        "Nodes": None,
        "NodeNames": None,
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }
    return json.dumps(empty | fields).encode()


def node_list(*names: str) -> dict[str, list[object]]:
    return {"items": [json.loads(OBJECTS.pieces[name]) for name in names]}


def raw_result(*items: bytes) -> bytes:
    failed = b'"FailedNodes":null,"FailedAndUnresolvableNodes":null,"Error":""'
    return b'{"Nodes":{"items":[' + b",".join(items) + b']},"NodeNames":null,' + failed + b"}"


def priorities(**scores: int) -> bytes:
    return json.dumps([{"Host": name, "Score": score} for name, score in scores.items()]).encode()


def test_the_names_that_passed_are_given_in_the_order_of_the_answer() -> None:
    body = result(NodeNames=["c", "a"], FailedNodes={"b": "full"}, FailedAndUnresolvableNodes={"d": "gone"})
    assert passed_nodes(body, NAMES, wholly=True) == ["c", "a"]


def test_null_is_as_good_as_no_failed_nodes() -> None:
    body = result(NodeNames=["a", "b", "c", "d"], FailedNodes=None, FailedAndUnresolvableNodes=None)
    assert passed_nodes(body, NAMES, wholly=True) == ["a", "b", "c", "d"]


def test_objects_that_are_given_back_byte_for_byte_are_right() -> None:
    body = raw_result(*OBJECTS.pieces.values())
    assert passed_nodes(body, OBJECTS, wholly=True) == ["a", "b", "c", "d"]


def test_an_object_that_lost_something_is_wrong() -> None:
    body = raw_result(*list(OBJECTS.pieces.values())[1:], b'{"metadata":{"name":"a"}}')
    with pytest.raises(WrongAnswerError, match="another object for a"):
        passed_nodes(body, OBJECTS, wholly=True)


@pytest.mark.parametrize("wholly", [False, True], ids=["counted", "wholly"])
@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b"", "no ExtenderFilterResult", id="empty"),
        pytest.param(b"<html>", "no ExtenderFilterResult: .*<html>", id="html"),
        pytest.param(b'{"NodeNames":["a","b","c","d"]}', "missing required field", id="fields-left-out"),
        pytest.param(b"\xff", "no ExtenderFilterResult", id="not-utf-8"),
        pytest.param(result(Error="not ready"), "Error: not ready", id="error"),
        pytest.param(result(), "NodeNames: null", id="no-names"),
        pytest.param(result(NodeNames=["a", "b", "c"]), "leaves out 1 of 4 nodes, such as d", id="left-out"),
        pytest.param(result(NodeNames=["a", "b", "c", "d", "e"]), "without being asked.*such as e", id="one-more"),
        pytest.param(result(NodeNames=["a", "b", "c", "e"]), "leaves out 1 of 4 nodes, such as d", id="exchanged"),
        pytest.param(result(NodeNames=["a", "b", "c", "d", "d"]), "names 1 of 4 nodes twice", id="twice"),
        pytest.param(
            result(NodeNames=["a", "b", "c", "d"], FailedNodes={"d": "full"}),
            "1 of 4 nodes twice",
            id="passed-and-failed",
        ),
    ],
)
def test_an_answer_about_names_is_wrong(body: bytes, message: str, *, wholly: bool) -> None:
    with pytest.raises(WrongAnswerError, match=message):
        passed_nodes(body, NAMES, wholly=wholly)


def test_a_failed_node_that_was_not_asked_about_is_found_where_the_answer_is_looked_at_wholly() -> None:
    body = result(NodeNames=["a", "b", "c"], FailedNodes={"e": "full"})
    with pytest.raises(WrongAnswerError, match="leaves out 1 of 4 nodes, such as d"):
        passed_nodes(body, NAMES, wholly=True)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(result(NodeNames=["a", "b", "c", "d"]), "Nodes: null", id="names-for-objects"),
        pytest.param(result(Nodes=node_list("a", "b", "c")), "leaves out 1 of 4 nodes, such as d", id="left-out"),
        pytest.param(result(Nodes={"items": [{}]}), "missing required field `metadata`", id="without-a-name"),
        pytest.param(result(Nodes={"items": None}), "Expected `array`", id="no-items"),
    ],
)
def test_an_answer_about_objects_is_wrong(body: bytes, message: str) -> None:
    with pytest.raises(WrongAnswerError, match=message):
        passed_nodes(body, OBJECTS, wholly=False)


@pytest.mark.parametrize("wholly", [False, True], ids=["counted", "wholly"])
def test_one_score_for_each_node_is_right(*, wholly: bool) -> None:
    check_scores(priorities(a=0, b=100), ["b", "a"], wholly=wholly)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b'{"Error":"not ready"}', "no HostPriorityList: .*not ready", id="error"),
        pytest.param(b'[{"Host":"a"}]', "no HostPriorityList: .*Score", id="no-score"),
        pytest.param(b"[]", "leaves out 2 of 2 nodes, such as a", id="nothing"),
        pytest.param(priorities(a=1), "leaves out 1 of 2 nodes, such as b", id="left-out"),
        pytest.param(priorities(a=1, b=2, c=3), "without being asked, 1 of 2 nodes, such as c", id="one-more"),
        pytest.param(priorities(a=1, b=101), r"scores of 1\.\.101", id="too-high"),
        pytest.param(priorities(a=-1, b=1), r"scores of -1\.\.1", id="negative"),
    ],
)
def test_scores_are_wrong(body: bytes, message: str) -> None:
    with pytest.raises(WrongAnswerError, match=message):
        check_scores(body, ["a", "b"], wholly=False)


def test_another_node_in_place_of_one_is_found_where_scores_are_looked_at_wholly() -> None:
    with pytest.raises(WrongAnswerError, match="leaves out 1 of 2 nodes, such as b"):
        check_scores(priorities(a=1, c=2), ["a", "b"], wholly=True)


def test_any_status_but_200_is_wrong_and_told_with_its_body() -> None:
    check_status(200, b"")
    with pytest.raises(WrongAnswerError, match="HTTP 204: "):
        check_status(204, b"")
    with pytest.raises(WrongAnswerError, match="HTTP 503: busy"):
        check_status(503, b"busy")


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        pytest.param("filter", result(NodeNames=None, Error="shed: the deadline is over"), id="filter"),
        pytest.param("prioritize", b"[]", id="no-scores"),
        pytest.param("prioritize", b'[{"Host":"a","Score":0}]', id="neutral-scores"),
    ],
)
def test_a_question_that_was_shed_may_be_answered_so(verb: str, body: bytes) -> None:
    check_shed(verb, body)


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        pytest.param("filter", result(NodeNames=["a"]), id="filter-with-an-answer"),
        pytest.param("filter", result(Error="internal error: KeyError"), id="filter-with-another-error"),
        pytest.param("prioritize", b'[{"Host":"a","Score":7}]', id="a-score"),
        pytest.param("prioritize", b'{"Error":"shed: the deadline is over"}', id="no-list"),
    ],
)
def test_a_question_that_was_shed_may_not_be_answered_so(verb: str, body: bytes) -> None:
    with pytest.raises(WrongAnswerError, match="shed, and then: "):
        check_shed(verb, body)
