"""The places in a JSON value, for tests that replace the value at each place."""

from typing import Any, TypeAlias

Place: TypeAlias = tuple[str | int, ...]


def places(value: Any, place: Place = ()) -> list[Place]:  # noqa: ANN401 - any JSON
    """Return the place of every value inside a JSON value, and of the value itself."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place, *(inner for key, member in members for inner in places(member, (*place, key)))]


def replaced(value: Any, place: Place, new: object) -> object:  # noqa: ANN401 - any JSON
    """Return a copy of a JSON value with another value at the place."""
    if not place:
        return new
    copy = value.copy()
    copy[place[0]] = replaced(copy[place[0]], place[1:], new)
    return copy
