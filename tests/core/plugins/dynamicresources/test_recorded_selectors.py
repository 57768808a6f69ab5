"""Selectors against recorded results of cel-go: upstream's own table, and expressions of tests/upstream/selectors.json.

A selector that Kindred does not evaluate may have any result there. One that it evaluates has cel-go's.
"""

import json
from functools import lru_cache
from typing import Any, Final

import pytest

from core.objects import quantity
from core.plugins.dynamicresources.selectors import (
    AttributeValue,
    SelectedDevice,
    SelectorError,
    SelectorErrorKind,
    Version,
    compile_selector,
)
from core.releases.release import RELEASES, Release
from tests.upstream.selectors import file_of, letters, queries_of_all

_LETTERS: Final = {
    SelectorErrorKind.COMPILE: "c",
    SelectorErrorKind.RUNTIME: "r",
    SelectorErrorKind.COST: "?",
    SelectorErrorKind.NOT_EVALUATED: "?",
}
_NOT_EVALUATED_ROWS: Final = {"expensive"}
"""Rows of upstream's table that are not evaluated: one that is above the limit of cost there, too."""
_NOT_EVALUATED: Final = 0.108
"""The most of the results of selectors.json, which has an expression for each function, that are not evaluated."""


def device_of(v1: dict[str, Any]) -> SelectedDevice:
    """Return a device as cel-go was asked about it."""
    return SelectedDevice(
        driver=v1["driver"],
        attributes={name: _value(each) for name, each in v1.get("attributes", {}).items()},
        capacity={
            name: quantity.nanos(each["value"] if isinstance(each, dict) else each)
            for name, each in v1.get("capacity", {}).items()
        },
        allow_multiple_allocations=v1.get("allowMultipleAllocations"),
    )


def _value(attribute: dict[str, Any]) -> AttributeValue:
    for kind, value in attribute.items():
        values = value if isinstance(value, list) else [value]
        made = tuple(Version(each) if kind.startswith("version") else each for each in values)
        return made if isinstance(value, list) else made[0]
    return None


def _letter(expression: str, device: SelectedDevice, release: Release) -> str:
    try:
        return "t" if compile_selector(expression, release).matches(device) else "f"
    except SelectorError as error:
        return _LETTERS[error.kind]


@lru_cache(maxsize=4)
def _recorded(release: Release) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(file_of(str(release)).read_text("utf-8"))
    return read


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_the_rows_of_upstreams_table_are_evaluated_as_cel_go_does(release: Release) -> None:
    not_evaluated = set()
    for row in _recorded(release)["rows"]:
        found = "".join(_letter(row["expression"], device_of(each), release) for each in row["devices"])
        if found == "?":
            not_evaluated.add(row["name"])
        else:
            assert found == letters(row), row
    assert not_evaluated == _NOT_EVALUATED_ROWS


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_no_expression_has_another_result_than_that_of_cel_go(release: Release) -> None:
    devices = [device_of(each) for each in queries_of_all()["devices"]]
    found = {
        expression: "".join(_letter(expression, each, release) for each in devices)
        for expression in queries_of_all()["expressions"]
    }
    expected = _recorded(release)["results"]
    assert found.keys() == expected.keys()
    for expression, results in found.items():
        pairs = zip(results, expected[expression], strict=True)
        assert all(ours in ("?", theirs) for ours, theirs in pairs), (expression, results, expected[expression])
    count = sum(each.count("?") for each in found.values())
    assert 0 < count <= _NOT_EVALUATED * len(found) * len(devices)
