"""Which plugins a profile has where, as upstream merges its defaults with what is written."""

from typing import Any

import pytest
import yaml

from app.scheduler_configuration.scheduler_config import parse_scheduler_config
from app.scheduler_configuration.schema import API_VERSION, KIND, Profile
from core.framework.interface import FilterPlugin, ScorePlugin
from core.plugins import DEFAULTS
from core.profile import full_profile

AFFINITY = {"name": "InterPodAffinity"}
EVERY = {"name": "*"}


NEEDED = {"queueSort": {"enabled": [{"name": "PrioritySort"}]}, "bind": {"enabled": [{"name": "DefaultBinder"}]}}
"""Without a plugin at these points, kube-scheduler does not start."""


def profile(written: dict[str, Any]) -> Profile:
    document = {"apiVersion": API_VERSION, "kind": KIND, "profiles": [{"plugins": {**NEEDED, **written}}]}
    return parse_scheduler_config(yaml.safe_dump(document)).profiles[0]


@pytest.mark.parametrize(
    ("written", "filters", "scores"),
    [
        pytest.param({}, True, True, id="by default"),
        pytest.param({"multiPoint": {"disabled": [AFFINITY]}}, False, False, id="off at multiPoint"),
        pytest.param({"multiPoint": {"disabled": [EVERY]}}, False, False, id="all off at multiPoint"),
        pytest.param({"score": {"disabled": [AFFINITY]}}, True, False, id="off at score"),
        pytest.param({"filter": {"disabled": [EVERY]}}, False, True, id="all off at filter"),
        pytest.param(
            {"multiPoint": {"disabled": [AFFINITY]}, "score": {"enabled": [AFFINITY]}},
            False,
            True,
            id="off at multiPoint and on at score",
        ),
        pytest.param(
            {"multiPoint": {"disabled": [EVERY], "enabled": [AFFINITY]}}, True, True, id="on where all others are off"
        ),
        pytest.param(
            {"filter": {"disabled": [EVERY], "enabled": [AFFINITY]}}, True, True, id="on at a point without others"
        ),
        pytest.param(
            {"multiPoint": {"enabled": [AFFINITY]}, "filter": {"disabled": [EVERY]}},
            False,
            True,
            id="a point without any wins over multiPoint",
        ),
        pytest.param({"score": None, "filter": {"disabled": None}}, True, True, id="fields without a value"),
    ],
)
def test_a_plugin_runs_where_upstream_runs_it(written: dict[str, Any], filters: bool, scores: bool) -> None:  # noqa: FBT001  # parameters
    made = profile(written)
    assert (filters, scores) == (made.runs("InterPodAffinity", "filter"), made.runs("InterPodAffinity", "score"))
    assert (not filters, not scores) == (
        made.switched_off("InterPodAffinity", "filter"),
        made.switched_off("InterPodAffinity", "score"),
    )


@pytest.mark.parametrize("point", ["multiPoint", "filter"])
def test_a_former_name_disables_nothing(point: str) -> None:
    former = profile({point: {"disabled": [{"name": "EBSLimits"}]}})
    assert former.running("filter") == profile({}).running("filter")


def test_a_plugin_is_not_switched_off_where_it_has_nothing() -> None:
    assert not profile({"multiPoint": {"disabled": [EVERY]}}).switched_off("ImageLocality", "filter")


@pytest.mark.parametrize(
    ("written", "weight"),
    [
        pytest.param({}, 2, id="the default"),
        pytest.param({"multiPoint": {"enabled": [{**AFFINITY, "weight": 7}]}}, 7, id="at multiPoint"),
        pytest.param(
            {"multiPoint": {"enabled": [{**AFFINITY, "weight": 7}]}, "score": {"enabled": [{**AFFINITY, "weight": 9}]}},
            9,
            id="at score, which wins",
        ),
        pytest.param({"score": {"disabled": [AFFINITY]}}, 2, id="that it would have if it were on"),
    ],
)
def test_a_score_weighs_what_is_written_nearest(written: dict[str, Any], weight: int) -> None:
    assert weight == profile(written).weight("InterPodAffinity")


def test_each_side_of_a_plugin_is_one_of_its_points() -> None:
    for plugin in DEFAULTS.values():
        sides = {side for side, base in (("filter", FilterPlugin), ("score", ScorePlugin)) if issubclass(plugin, base)}
        assert sides <= {*plugin.points}, plugin.name


def test_a_plugin_needs_a_point_before_only_where_it_has_both() -> None:
    for plugin in DEFAULTS.values():
        needed = {point for each in plugin.needs_pre for point in (each, f"pre{each.capitalize()}")}
        assert needed <= {*plugin.points}, plugin.name


def test_a_weight_by_default() -> None:
    weights = {name: profile({}).weight(name) for name in ("TaintToleration", "DynamicResources", "VolumeBinding")}
    assert weights == {"TaintToleration": 3, "DynamicResources": 2, "VolumeBinding": 1}


def test_what_scores_is_known() -> None:
    default = {"TaintToleration", "NodeAffinity", "NodeResourcesFit", "PodTopologySpread", "InterPodAffinity",
               "NodeResourcesBalancedAllocation", "ImageLocality"}  # fmt: skip
    assert default == profile({}).scoring()
    assert {"Trimaran"} == profile({"score": {"disabled": [EVERY], "enabled": [{"name": "Trimaran"}]}}).scoring()


FIT = {"name": "NodeResourcesFit"}
TAINTS = {"name": "TaintToleration"}
OUTSIDE = {"name": "Trimaran"}


def test_filters_are_asked_in_the_order_of_the_defaults() -> None:
    expected = [plugin.name for plugin in full_profile().filters]
    assert [*expected[:-1], "DynamicResources", expected[-1]] == profile({}).order("filter")


@pytest.mark.parametrize(
    ("written", "first", "last"),
    [
        pytest.param(
            {"filter": {"enabled": [FIT, TAINTS]}}, ["NodeResourcesFit", "TaintToleration"], [], id="override"
        ),
        pytest.param(
            {"filter": {"enabled": [OUTSIDE, FIT]}}, ["NodeResourcesFit"], ["Trimaran"], id="others come last"
        ),
        pytest.param(
            {"filter": {"enabled": [FIT], "disabled": [FIT]}},
            [],
            ["NodeResourcesFit"],
            id="off by default, and on again",
        ),
        pytest.param(
            {"multiPoint": {"enabled": [FIT], "disabled": [FIT]}}, [], ["NodeResourcesFit"], id="the same at multiPoint"
        ),
        pytest.param({"multiPoint": {"enabled": [{**FIT, "weight": 3}]}}, ["NodeUnschedulable"], [], id="in its place"),
    ],
)
def test_what_is_written_changes_the_order(written: dict[str, Any], first: list[str], last: list[str]) -> None:
    """Source: the comment "Reorder plugins" in expandMultiPointPlugins."""
    order = profile(written).order("filter")
    assert first == order[: len(first)]
    assert last == order[len(order) - len(last) :]
    assert len(order) == len(set(order))
    assert set(profile({}).order("filter")) <= set(order)


@pytest.mark.parametrize("point", ["multiPoint", "score"])
def test_a_default_plugin_that_is_written_without_a_weight_weighs_1(point: str) -> None:
    """Source: mergePluginSet puts what is written in the place of the default; getValidScoreWeights makes 0 a 1."""
    assert profile({point: {"enabled": [TAINTS]}}).weight("TaintToleration") == 1
