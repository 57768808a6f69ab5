"""Strict wire structs are those that are made from them, but for unknown fields."""

from typing import Annotated

import msgspec
import pytest

from app.objects.decode import Wire
from app.objects.strict import strict


class Inner(Wire):
    """What is inside."""

    node_name: str | None = None


class Outer(Wire):
    """What holds it in each form that a field can have."""

    count: Annotated[int, msgspec.Meta(ge=0)] | None = None
    labels: dict[str, str] | None = None
    inner: Inner | None = msgspec.field(default=None, name="INNER")
    items: list[Inner] | None = None
    named: dict[str, Inner] = msgspec.field(default_factory=dict)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        pytest.param('{"x":1}', "", id="outside"),
        pytest.param('{"INNER":{"x":1}}', " - at `$.INNER`", id="in-an-optional-struct"),
        pytest.param('{"items":[{},{"x":1}]}', " - at `$.items[1]`", id="in-a-list"),
        pytest.param('{"named":{"a":{"x":1}}}', " - at `$.named[...]`", id="in-a-mapping"),
    ],
)
def test_an_unknown_field_is_an_error_however_deep_it_is(text: str, path: str) -> None:
    msgspec.json.decode(text, type=Outer)
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(text, type=strict(Outer))
    assert f"Object contains unknown field `x`{path}" == str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{}", id="nothing"),
        pytest.param('{"labels":{"any":"key"},"INNER":null,"items":[{"nodeName":"n1"}],"named":{"a":{}}}', id="all"),
    ],
)
def test_known_fields_are_read_alike(text: str) -> None:
    read = msgspec.json.decode(text, type=strict(Outer))
    assert isinstance(read, Outer)
    assert msgspec.to_builtins(msgspec.json.decode(text, type=Outer)) == msgspec.to_builtins(read)


def test_other_checks_of_fields_stay() -> None:
    with pytest.raises(msgspec.ValidationError, match="Expected `int` >= 0"):
        msgspec.json.decode('{"count":-1}', type=strict(Outer))
