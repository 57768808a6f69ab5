"""JSON for people and their tools: what msgspec writes comes out the same; what is read is of the kind asked for."""

import json
from datetime import UTC, datetime
from enum import Enum
from typing import Any, NamedTuple

import msgspec
import pytest

from app.process.json_text import decode, encode, indented


class Colour(Enum):
    """A value by its name."""

    RED = "red"


class Pair(NamedTuple):
    """A tuple, and so an array."""

    left: int
    right: str


class Inner(msgspec.Struct, rename="camel", omit_defaults=True):
    """A struct with other names in JSON, and without what is not said."""

    some_name: int = 0
    other_name: str = ""


class Outer(msgspec.Struct, frozen=True):
    """A struct in a struct, beside JSON that stays as it came."""

    inner: Inner
    sent: msgspec.Raw
    inside: list[str] = msgspec.field(default_factory=list, name="in")


OUTER = Outer(Inner(other_name="é"), msgspec.Raw(b'{"n":1.50,"big":1e400}'))


def deep(levels: int) -> object:
    found: object = 1
    for _ in range(levels):
        found = [found]
    return found


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(OUTER, id="struct-with-json-as-it-was-sent"),
        pytest.param([OUTER, {"a": OUTER}], id="structs-in-a-list-and-a-mapping"),
        pytest.param({"a": Pair(1, "x"), "b": frozenset({"y"}), "c": Colour.RED}, id="tuple-set-enum"),
        pytest.param({1: "a", 2**40: "b"}, id="numbers-as-keys"),
        pytest.param([float("nan"), float("inf"), 0.1], id="no-number"),
        pytest.param([2**70, -(2**70), 2**64 - 1, {"s": OUTER}], id="integers-of-more-than-64-bits"),
        pytest.param(deep(500), id="deep"),
        pytest.param(datetime(2026, 1, 2, tzinfo=UTC).isoformat(), id="text"),
        pytest.param('\x00\x1f\u2028\U0001f600"\\', id="odd-characters"),
    ],
)
def test_what_is_written_is_what_msgspec_writes(value: object) -> None:
    assert msgspec.json.encode(value) == encode(value)
    assert json.loads(indented(value)) == json.loads(encode(value))


def test_people_get_two_spaces_a_level() -> None:
    assert indented({"a": [Inner(7)], "b": []}) == '{\n  "a": [\n    {\n      "someName": 7\n    }\n  ],\n  "b": []\n}'


@pytest.mark.parametrize("value", [object(), {"a": object()}, [Outer(object(), msgspec.Raw(b"1"))]])  # type: ignore[arg-type]  # on purpose
def test_a_value_without_a_form_in_json_is_an_error_unless_it_is_replaced(value: object) -> None:
    with pytest.raises(TypeError, match="object is unsupported"):
        encode(value)
    assert b"replaced" in encode(value, unknown=lambda _: "replaced")


@pytest.mark.parametrize("value", ["\ud800", {"a": ["\udfff"]}, {"\ud800": 1}])
def test_half_of_a_surrogate_pair_is_an_error_that_says_so(value: object) -> None:
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
        encode(value, unknown=str)


def test_a_kind_is_read_with_its_own_names() -> None:
    assert decode(b'{"someName":3}', Inner) == Inner(3)
    assert decode(b'{"a":{"b":[1,null]}}') == {"a": {"b": [1, None]}}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        pytest.param(b"", Any, id="nothing"),
        pytest.param(b"<html>", Any, id="no-json"),
        pytest.param(b'"\xff"', Any, id="no-utf-8"),
        pytest.param(b'"\\ud800"', Any, id="half-of-a-surrogate-pair"),
        pytest.param(b"NaN", Any, id="no-number"),
        pytest.param(b"[" * 2000, Any, id="deep"),
        pytest.param(b'{"someName":"3"}', Inner, id="another-kind"),
        pytest.param(b"[]", Inner, id="no-object"),
    ],
)
def test_what_cannot_be_read_is_one_error(text: bytes, kind: Any) -> None:  # noqa: ANN401  # a type
    with pytest.raises(msgspec.DecodeError):
        decode(text, kind)
