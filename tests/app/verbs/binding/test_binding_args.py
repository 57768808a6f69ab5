"""ExtenderBindingArgs as Go writes them and as people do, and what is none."""

import json

import pytest

from app.objects.decode import DecodeError
from app.verbs.pods import BindingArgs, binding_result, decode_binding_args

GOOD = {"PodName": "web-0", "PodNamespace": "shop", "PodUID": "u-1", "Node": "n1"}


def body(**changes: object) -> bytes:
    return json.dumps({**GOOD, **changes}).encode()


def test_the_arguments_are_read_as_go_writes_them() -> None:
    assert decode_binding_args(body()) == BindingArgs(namespace="shop", name="web-0", uid="u-1", node="n1")
    assert decode_binding_args(body()).full_name == "shop/web-0"


@pytest.mark.parametrize("spelling", [str.lower, str.upper, str.swapcase])
def test_keys_are_read_in_any_case(spelling: type[str]) -> None:
    args = {spelling(key): value for key, value in GOOD.items()}
    assert decode_binding_args(json.dumps(args).encode()) == decode_binding_args(body())


@pytest.mark.parametrize("name", ["a", "0", "a.b", "web-5d4f.x-1", "a" * 253])
def test_names_are_those_that_an_object_can_have(name: str) -> None:
    assert decode_binding_args(body(PodName=name)).name == name


NO_NAME = "is not a valid object name"


@pytest.mark.parametrize(
    ("given", "error"),
    [
        pytest.param(b"", "body: malformed JSON: ", id="nothing"),
        pytest.param(b"{", "body: malformed JSON: ", id="half"),
        pytest.param(b'{"Node":"\xff"}', "Node: malformed JSON: ", id="not-utf-8"),
        pytest.param(body().ljust(65537), "body: larger than 65536 bytes", id="large"),
        pytest.param(b'{"Node":' + b"[" * 10_000, "body: malformed JSON: ", id="deep"),
        pytest.param(b"[]", "body: expected object, got array", id="array"),
        pytest.param(b"null", "body: expected object, got null", id="null"),
        pytest.param(
            body(Pod="web"),
            "Pod: unknown field; ExtenderBindingArgs has PodName, PodNamespace, PodUID, Node",
            id="unknown",
        ),
        pytest.param(body(PodName=3), "PodName: expected str | null, got int", id="number"),
        pytest.param(body(PodName=None), "PodName: required", id="no-name"),
        pytest.param(body(PodNamespace=""), "PodNamespace: required", id="no-namespace"),
        pytest.param(body(PodUID=""), "PodUID: required", id="no-uid"),
        pytest.param(body(Node=""), "Node: required", id="no-node"),
        pytest.param(body(PodName="../secrets/x"), f"PodName: '../secrets/x' {NO_NAME}", id="path"),
        pytest.param(body(PodName="a%2fb"), f"PodName: 'a%2fb' {NO_NAME}", id="escape"),
        pytest.param(body(PodName="a?b"), f"PodName: 'a?b' {NO_NAME}", id="query"),
        pytest.param(body(PodNamespace=".."), f"PodNamespace: '..' {NO_NAME}", id="dots"),
        pytest.param(body(PodName="a\n"), f"PodName: 'a\\n' {NO_NAME}", id="line-feed"),
        pytest.param(body(PodName="a" * 254), NO_NAME, id="too-long"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_field(given: bytes, error: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_binding_args(given)
    assert error in str(caught.value)


@pytest.mark.parametrize(
    ("error", "expected"),
    [("", b'{"Error":""}'), ('"a"\nb', rb'{"Error":"\"a\"\\nb"}'), ("x" * 9000, b'{"Error":"%s..."}' % (b"x" * 2000))],
    ids=["none", "one-line", "not-endless"],
)
def test_a_result_is_one_line(error: str, expected: bytes) -> None:
    assert expected == binding_result(error)
