"""Fields of Go's structs are read in any case, as encoding/json reads them."""

import msgspec
import pytest

from app.objects.decode import DecodeError
from app.objects.go_struct import GoStruct

PLACE = GoStruct("Place", "Node", "PodUID")


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        pytest.param(b'{"Node":"a","PodUID":1}', {"Node": b'"a"', "PodUID": b"1"}, id="as-go-writes"),
        pytest.param(b'{"NODE":"a","poduid":1}', {"Node": b'"a"', "PodUID": b"1"}, id="any-case"),
        pytest.param(b'{"node":"a","Node":"b","nODE":"c"}', {"Node": b'"c"'}, id="last-spelling-counts"),
        pytest.param(b'{"PodUID":null}', {"PodUID": b"null"}, id="null-is-given"),
        pytest.param(b"{}", {}, id="nothing"),
    ],
)
def test_fields_have_gos_spelling_whatever_case_they_come_in(body: bytes, fields: dict[str, bytes]) -> None:
    assert fields == {name: bytes(raw) for name, raw in PLACE.decode(body).items()}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b'{"node":"a","Later":1}', "Later: unknown field; Place has Node, PodUID", id="unknown"),
        pytest.param(b"[]", "body: expected object, got array", id="no-object"),
        pytest.param(b"{", "body: malformed JSON: ", id="no-json"),
    ],
)
def test_a_body_that_is_something_else_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        PLACE.decode(body)
    assert str(caught.value).startswith(message)


def test_unknown_members_of_an_object_inside_are_passed_over() -> None:
    members = {"node": msgspec.Raw(b"1"), "Later": msgspec.Raw(b"2")}
    assert PLACE.fields_of(members) == {"Node": msgspec.Raw(b"1")}
