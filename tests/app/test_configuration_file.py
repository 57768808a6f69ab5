"""The head of a file of settings, its keys and their types; what is wrong is named by its path."""

from collections.abc import Mapping
from typing import Any

import pytest

from app.settings.configuration import API_VERSION, HEAD, KIND, parse
from app.settings.settings import SettingsError
from tests.app.yaml_bomb import BOMB, REJECTION

TOP = "".join(f"{key}: {value}\n" for key, value in HEAD.items())


def values(text: str) -> Mapping[str, Any]:
    return parse(text, "k.yaml")


def problems(text: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        parse(text, "k.yaml")
    found = str(caught.value).split("; k.yaml: ")
    assert found[0].startswith("k.yaml: ")
    return [found[0].removeprefix("k.yaml: "), *found[1:]]


@pytest.mark.parametrize("text", ["", "# a comment\n", "---\n"], ids=["empty", "comment", "null"])
def test_a_file_without_keys_needs_no_head(text: str) -> None:
    assert values(text) == {}


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        pytest.param(
            f"apiVersion: kindred.dev/v1\nkind: {KIND}",
            [f"apiVersion='kindred.dev/v1': unknown; this version of Kindred reads {API_VERSION}"],
            id="another-version",
        ),
        pytest.param(
            f"apiVersion: {API_VERSION}\nkind: KubeSchedulerConfiguration",
            [f"kind='KubeSchedulerConfiguration': unknown; this version of Kindred reads {KIND}"],
            id="another-kind",
        ),
        pytest.param(f"kind: {KIND}", [f"apiVersion: missing; expected {API_VERSION}"], id="no-version"),
        pytest.param(f"apiVersion: {API_VERSION}", [f"kind: missing; expected {KIND}"], id="no-kind"),
        pytest.param(
            "apiVersion: v1\nkind: 7",
            [
                f"apiVersion='v1': unknown; this version of Kindred reads {API_VERSION}",
                f"kind=7: unknown; this version of Kindred reads {KIND}",
            ],
            id="both",
        ),
        pytest.param(
            "apiversion: v1",
            [
                f"apiVersion: missing; expected {API_VERSION}",
                f"kind: missing; expected {KIND}",
                "apiversion: unknown key; did you mean apiVersion?",
            ],
            id="case",
        ),
    ],
)
def test_another_head_is_an_error_that_names_it_and_what_is_known(head: str, expected: list[str]) -> None:
    assert problems(f"{head}\n") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("maxScroe: 1", "maxScroe: unknown key; did you mean maxScore?", id="unknown"),
        pytest.param("partition: 1\nmaxScore: 2\npartition: 3", "partition: duplicate key (lines 3 and 5)", id="twice"),
        pytest.param(
            "pluginArgs:\n  NodeName: {}\n  NodeName: {}",
            "pluginArgs.NodeName: duplicate key (lines 4 and 5)",
            id="twice-within",
        ),
        pytest.param(
            "pluginArgs: {A: {resources: [{name: a}, {name: b,\nname: c}]}}",
            "pluginArgs.A.resources[1].name: duplicate key (lines 3 and 4)",
            id="twice-in-a-list",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_by_its_path(text: str, expected: str) -> None:
    assert problems(TOP + text) == [expected]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("- a", "expected keys with values, found list", id="list"),
        pytest.param("a: [", "no YAML: line 1: ", id="broken"),
        pytest.param(f"{TOP}---\nmaxScore: 1", "no YAML: line 3: but found another document", id="documents"),
        pytest.param("a: 2026-13-40", "no YAML: a value does not fit its type", id="date"),
        pytest.param("a: !!int ''", "no YAML: a value does not fit its type", id="no-number"),
        pytest.param(f"{TOP}a: &a [*a]", "a: unknown key", id="itself"),
        pytest.param(f"apiVersion: {BOMB}", f"no YAML: {REJECTION}", id="bomb"),
        pytest.param(f"maxScore: 1{':1' * 200}", "no YAML: a base-60 number", id="quadratic"),
        pytest.param(f"maxScore: 1{':1' * 200}.5", "no YAML: a base-60 number", id="quadratic-float"),
    ],
)
def test_what_is_no_mapping_is_an_error(text: str, problem: str) -> None:
    (found,) = problems(text)
    assert found.startswith(problem)
    assert "\n" not in found


def test_off_and_no_are_text() -> None:
    assert values(f"{TOP}preempt: off\nbypassNamespaces: [no, on]") == {
        "preempt": "off",
        "bypass_namespaces": ["no", "on"],
    }


def test_a_number_without_a_fraction_stands_for_one_with() -> None:
    assert values(f"{TOP}httpTimeout: 4") == {"http_timeout": 4}
