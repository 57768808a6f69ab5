"""A plugin is one place: no module outside core/plugins names one, and no part of a plugin is forgotten."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from core.diagnosis.wakes import REGISTERING, events_of
from core.explaining.explained import Explained
from core.explaining.obstacles import Turn
from core.framework.interface import FilterPlugin, Plugin, ScorePlugin
from core.plugins import DEFAULTS, EXPLAINED, PLUGINS
from core.plugins.amounts import ClusterAmounts, NodeAmounts
from core.plugins.dynamicresources.plugin import DynamicResources
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
    reported = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    known = re.compile(rf"\b(?:{'|'.join(EXPLAINED)})\b")
    for each in ast.walk(tree):
        if isinstance(each, ast.ImportFrom) and each.module and each.module.startswith("core.plugins"):
            if each.module not in OPEN:
                yield each.module
        elif isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in reported:
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
        assert measured | {"facts", "counts"} == {*amounts.__struct_fields__} - {"exclusion"}


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_every_filter_of_a_release_registers_the_events_that_wake_a_pod(release: Release) -> None:
    rules = rules_of(release)
    for each in full_profile().under(rules).filters:
        events = events_of(each, rules)
        assert events, each.name
        assert all(event.actions for event in events)


def test_every_remedy_is_searched_in_one_turn_of_its_own() -> None:
    turns = [
        search.turn
        for each in (*map(_made, PLUGINS), DynamicResources())
        if isinstance(each, Explained)
        for search in each.remedies.searches
    ]
    assert {*turns} == {*Turn} - {Turn.WAIT}


@pytest.mark.parametrize("amounts", [NodeAmounts, ClusterAmounts])
def test_every_field_of_the_amounts_is_said_in_the_text_on_the_page_and_in_the_docs(
    amounts: type[NodeAmounts | ClusterAmounts],
) -> None:
    lines, page = inspect.getsource(amounts.lines), (ROOT / "app/admin/web/measured.js").read_text("utf-8")
    table = (ROOT / "docs/explain.md").read_text("utf-8").partition("\n### Amounts\n")[2].partition("\n### ")[0]
    for name in {*amounts.__struct_fields__} - {"node_is_known", "counts"}:  # parts of what node_name and facts say
        assert f"self.{name}" in lines
        assert re.search(rf"\bamounts\.{name}\b|const \{{[^}}]*\b{name}\b[^}}]*\}} = amounts;", page), name
        assert f"`{name}`" in table


WITHOUT_EVENTS: Final = REASON_ALONE | {"LoadAware"}
"""Filters that no release of kube-scheduler has: it registers no events for them."""
NEVER_RENAMED: Final = frozenset({
    "NodeDeclaredFeatures", "CheckNodeCondition", "CheckNodeMemoryPressure", "CheckNodeDiskPressure",
    "CheckNodePIDPressure", "TargetLoadPacking", "LoadVariationRiskBalancing", "LoadAware",
})  # fmt: skip
"""Plugins that have had one name only."""


def test_every_filter_of_kube_scheduler_registers_events() -> None:
    assert {each.name for each in FILTERS} - REGISTERING == WITHOUT_EVENTS


def test_every_plugin_of_kube_scheduler_has_the_points_of_its_sides() -> None:
    for each in PLUGINS.values():
        if each.name in DEFAULTS:
            sides = {"filter": issubclass(each, FilterPlugin), "score": issubclass(each, ScorePlugin)}
            assert {side for side, has in sides.items() if has} == sides.keys() & {*each.points}, each.name
            assert {*each.needs_pre} <= {*each.points}, each.name


def test_every_plugin_keeps_its_former_names() -> None:
    former = [
        name for each in PLUGINS.values() for name in (*each.former_filters, *(name for name, _ in each.former_scores))
    ]
    assert len(former) == len({*former})
    assert not {*former} & PLUGINS.keys()
    assert {each.name for each in PLUGINS.values() if not (each.former_filters or each.former_scores)} == NEVER_RENAMED


def test_every_plugin_reads_the_kinds_that_change_its_results() -> None:
    for each in map(_made, PLUGINS):
        assert {rule.kind for rule in each.invalidated_by} <= {*each.kinds}, each.name


def test_the_arguments_of_one_side_are_arguments_of_the_constructor() -> None:
    for each in PLUGINS.values():
        assert {*each.of_scores, *each.of_verdicts} <= {*inspect.signature(each).parameters}, each.name
        assert not {*each.of_scores} & {*each.of_verdicts}, each.name


def _made(name: str) -> Plugin:
    arguments: dict[str, object] = {"affinity_labels": ("zone",)} if name == "ServiceAffinity" else {}
    return PLUGINS[name](**arguments)
