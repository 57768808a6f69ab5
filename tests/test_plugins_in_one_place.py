"""A plugin is one place: no module outside core/plugins names one, and no part of a plugin is forgotten."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from core.diagnosis.wakes import events_of
from core.explaining.explained import Explained
from core.explaining.obstacles import Turn
from core.framework.interface import FilterPlugin, Plugin
from core.plugins import PLUGINS
from core.plugins.amounts import ClusterAmounts, NodeAmounts
from core.profile import full_profile
from core.releases.differences import rules_of
from core.releases.release import RELEASES, Release

ROOT: Final = Path(__file__).parents[1]
MAY: Final = {
    "core/profile.py": "the built-in profiles",
    "core/releases/differences.py": "the table of differences between releases, whose column names plugins",
}
"""Modules that may name plugins, with the reason."""
GATES: Final = frozenset({"NodeDeclaredFeatures"})
"""A feature gate has the name of a plugin."""
TYPES: Final = {"app/explain/valid_pod.py": frozenset({"NodeAffinity"})}
"""Module -> types of the API in it that have the name of a plugin."""
OPEN: Final = ("core.plugins", "core.plugins.amounts", "core.plugins.in_tree")
"""Modules for all plugins, which everybody may import."""


def _names(tree: ast.Module) -> Iterator[str]:
    """Yield the plugins that a module names in its code, or whose module it imports. Docstrings may name them."""
    told = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    known = re.compile(rf"\b(?:{'|'.join(PLUGINS)})\b")
    for each in ast.walk(tree):
        if isinstance(each, ast.ImportFrom) and each.module and each.module.startswith("core.plugins"):
            if each.module not in OPEN:
                yield each.module
        elif isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in told:
            yield from known.findall(each.value)


def test_no_module_outside_of_the_plugins_names_one() -> None:
    found = {}
    for path in sorted((*(ROOT / "app").rglob("*.py"), *(ROOT / "core").rglob("*.py"))):
        name = str(path.relative_to(ROOT))
        if not name.startswith("core/plugins/") and (
            names := {*_names(ast.parse(path.read_text("utf-8")))} - GATES - TYPES.get(name, GATES)
        ):
            found[name] = names
    assert {name: names for name, names in found.items() if name not in MAY} == {}
    assert found.keys() == MAY.keys()


FILTERS: Final = [each for each in PLUGINS.values() if issubclass(each, FilterPlugin)]
REASON_ALONE: Final = frozenset({
    "ServiceAffinity", "CheckNodeCondition", "CheckNodeMemoryPressure", "CheckNodeDiskPressure", "CheckNodePIDPressure",
})  # fmt: skip
"""Filters of policies that no release has: their reason names the condition or the label, so nothing is measured."""


def test_every_filter_measures_what_it_rejects_by() -> None:
    measuring = {
        each.name
        for each in FILTERS
        if issubclass(each, Explained) and (each.measured != Explained.measured or each.terms is not Explained.terms)
    }
    assert {each.name for each in FILTERS} - measuring == REASON_ALONE


def test_every_field_of_the_amounts_is_measured_by_a_plugin() -> None:
    plugins = [each for each in map(_made, PLUGINS) if isinstance(each, Explained)]
    for amounts, measured in (
        (NodeAmounts, {name for each in plugins for name in each.measured.on_node}),
        (ClusterAmounts, {name for each in plugins for name in each.measured.in_cluster}),
    ):
        assert measured == {*amounts.__struct_fields__} - {"exclusion"}


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_every_filter_of_a_release_registers_the_events_that_wake_a_pod(release: Release) -> None:
    rules = rules_of(release)
    for each in full_profile().under(rules).filters:
        events = events_of(each, rules)
        assert events, each.name
        assert all(event.actions for event in events)


def test_every_remedy_is_searched_in_one_turn_of_its_own() -> None:
    turns = [
        search.turn for each in map(_made, PLUGINS) if isinstance(each, Explained) for search in each.remedies.searches
    ]
    assert {*turns} == {*Turn} - {Turn.WAIT}


def test_every_plugin_of_kube_scheduler_says_where_it_runs_and_keeps_its_former_names() -> None:
    for each in full_profile().plugins:
        assert each.points, each.name
    former = [
        name for each in PLUGINS.values() for name in (*each.former_filters, *(name for name, _ in each.former_scores))
    ]
    assert len(former) == len({*former})
    assert not {*former} & PLUGINS.keys()


def test_every_plugin_depends_on_the_kinds_whose_events_invalidate_its_results() -> None:
    for each in map(_made, PLUGINS):
        assert {rule.kind for rule in each.invalidated_by} <= {*each.kinds}, each.name


def _made(name: str) -> Plugin:
    arguments: dict[str, object] = {"affinity_labels": ("zone",)} if name == "ServiceAffinity" else {}
    return PLUGINS[name](**arguments)
