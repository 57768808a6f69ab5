"""The arguments of a scheduler's profile change answers as upstream's plugins do, and what is not known is said."""

from typing import Any

import pytest

from app.scheduler_configuration.validation import UnreadableError
from app.settings.settings import Settings
from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.remedies.find_remedies import find_remedies
from core.explaining.owners import Way
from core.explaining.remedy import AddNode, RemovePod
from tests.app.explain.configured import configured, names, scheduler_profiles, with_args
from tests.builders import PodBuilder, expressed, make_node, make_pod, term
from tests.core.decoded import Builder, mirror_of, pod_of

ZONE = "topology.kubernetes.io/zone"
EMPTY = make_node("empty").label(ZONE, "a").allocatable(cpu=8, memory="16Gi", pods=10)
BUSY = make_node("busy").label(ZONE, "b").allocatable(cpu=8, memory="16Gi", pods=10)
NO_PREEMPTION = {"disabled": [{"name": "DefaultPreemption"}]}
GPUS = [{"name": "example.com/gpu"}]
NEXT = make_pod("next").label("app", "web").requests(cpu=4, memory="8Gi")


def decision(document: dict[str, Any], pod: PodBuilder, *objects: Builder) -> Diagnosis:
    requested, mirror = pod_of(pod), mirror_of(*objects)
    return Diagnosis(
        scheduler_profiles(document).of(requested), mirror, requested, mirror.batch(sorted(mirror.nodes.slots))
    )


def fitting(found: Diagnosis) -> list[str]:
    return [found.batch.names[position] for position in found.fitting.tolist()]


def raw(found: Diagnosis, plugin: str) -> dict[str, int]:
    """Return a plugin's raw score of each node that fits. Empty if it has nothing to say."""
    scores = found.raw_scores(next(each for each, _ in found.profile.scores if each.name == plugin))
    return {} if scores is None else dict(zip(fitting(found), scores.tolist(), strict=True))


# nodeaffinity/node_affinity.go: Filter matches addedNodeSelector before what the pod requires.
def test_the_affinity_that_a_profile_adds_is_required_of_all_pods() -> None:
    added = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [expressed(ZONE, "In", "a")]}}
    found = decision(with_args("NodeAffinity", addedAffinity=added), NEXT, EMPTY, BUSY)
    assert fitting(found) == ["empty"]
    assert dict(found.predicates(0))["NodeAffinity"].reasons == (
        "node(s) didn't match scheduler-enforced node affinity",
    )
    assert fitting(decision(configured({}), NEXT, EMPTY, BUSY)) == ["busy", "empty"]


def test_a_node_in_the_zone_that_a_profile_adds_helps() -> None:
    added = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [expressed(ZONE, "In", "b")]}}
    for pod, expected in (NEXT, ["b"]), (NEXT.node_selector({ZONE: "a"}), []):
        found = find_remedies(decision(with_args("NodeAffinity", addedAffinity=added), pod, EMPTY), 50)
        assert [step.zone for each in found for step in each.steps if isinstance(step, AddNode)] == expected


# noderesources/fit.go: fitsRequest skips ignored extended resources, by name or by the part before the slash.
@pytest.mark.parametrize(
    ("args", "fits"),
    [
        pytest.param({}, False, id="default"),
        pytest.param({"ignoredResources": ["example.com/gpu"]}, True, id="by-name"),
        pytest.param({"ignoredResources": ["example.com/npu"]}, False, id="another-name"),
        pytest.param({"ignoredResourceGroups": ["example.com"]}, True, id="by-group"),
    ],
)
def test_ignored_resources_keep_no_pod_off(args: dict[str, Any], fits: bool) -> None:  # noqa: FBT001  # a parameter
    pod = make_pod("p").requests(**{"example.com/gpu": 1})
    assert bool(fitting(decision(with_args("NodeResourcesFit", **args), pod, EMPTY))) is fits


# scheduler.go, buildExtenders: the list of extenders takes the place of the one that is written.
def test_resources_that_an_extender_manages_are_ignored_in_the_place_of_those_written() -> None:
    managed = [{"name": "example.com/gpu", "ignoredByScheduler": True}, {"name": "example.com/npu"}]
    document = {
        **with_args("NodeResourcesFit", ignoredResources=["example.com/npu"]),
        "extenders": [{"urlPrefix": "http://gpus", "managedResources": managed}],
    }
    assert fitting(decision(document, make_pod("p").requests(**{"example.com/gpu": 1}), EMPTY)) == ["empty"]
    assert fitting(decision(document, make_pod("p").requests(**{"example.com/npu": 1}), EMPTY)) == []


# interpodaffinity/scoring.go: processExistingPod adds the weight for each required term that the incoming pod matches.
def test_required_affinity_of_placed_pods_scores_by_the_weight_of_the_profile() -> None:
    web = term(ZONE, {"matchLabels": {"app": "web"}})
    friend = make_pod("friend").required_affinity(web).on("busy")
    found = decision(with_args("InterPodAffinity", hardPodAffinityWeight=30), NEXT, EMPTY, BUSY, friend)
    assert raw(found, "InterPodAffinity") == {"busy": 30, "empty": 0}
    assert raw(decision(configured({}), NEXT, EMPTY, BUSY, friend), "InterPodAffinity") == {"busy": 1, "empty": 0}


@pytest.mark.parametrize(
    ("args", "stated"),
    [
        pytest.param({"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}, True, id="shape"),
        pytest.param(
            {"shape": [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]}, False, id="default"
        ),
        pytest.param({"shape": [], "bindTimeoutSeconds": 60}, False, id="time-to-bind"),
    ],
)
def test_the_shape_of_storage_scores_is_not_judged_and_said(args: dict[str, Any], stated: bool) -> None:  # noqa: FBT001  # a parameter
    found = decision(with_args("VolumeBinding", **args), NEXT, EMPTY).scheduler
    assert found is not None
    assert names(found.not_scored) == (["VolumeBinding"] if stated else [])


# default_preemption.go: PostFilter alone makes room, so there is none where a profile does not run it.
@pytest.mark.parametrize(
    ("plugins", "filters", "kindred", "preempts"),
    [
        pytest.param({}, True, None, True, id="default"),
        pytest.param({"postFilter": NO_PREEMPTION}, True, None, False, id="off"),
        pytest.param({"multiPoint": NO_PREEMPTION}, True, None, False, id="off-everywhere"),
        pytest.param({"postFilter": NO_PREEMPTION}, True, {}, True, id="kindred"),
        pytest.param({"postFilter": NO_PREEMPTION}, True, {"filterVerb": ""}, False, id="kindred-filters-none"),
        pytest.param({"postFilter": NO_PREEMPTION}, True, {"managedResources": GPUS}, False, id="kindred-not-asked"),
        pytest.param({"filter": {"disabled": [{"name": "*"}]}}, False, None, False, id="without-filters"),
    ],
)
def test_nobody_preempts_where_the_profile_does_not(
    plugins: dict[str, Any], kindred: dict[str, Any] | None, *, filters: bool, preempts: bool
) -> None:
    extender = {"urlPrefix": "http://kindred:1", "filterVerb": "filter", "prioritizeVerb": "p", "weight": 1}
    evicting = {"extenders": [extender | kindred]} if kindred is not None else {}
    document, pod = configured({"plugins": plugins}, **evicting), pod_of(make_pod("p").requests(cpu=6).priority(9))
    mirror = mirror_of(EMPTY, make_pod("low").requests(cpu=6).on("empty"))
    rules = scheduler_profiles(document, settings=Settings(preempt="evict" if evicting else "off")).of(pod)
    assert rules.preempts is preempts
    helping = find_remedies(Diagnosis(rules, mirror, pod, mirror.batch(["empty"])), 50)
    ways = [step.way for remedy in helping for step in remedy.steps if isinstance(step, RemovePod)]
    assert (Way.PREEMPTED in ways) is (preempts and filters)


def test_plugins_that_are_not_in_tree_are_not_judged() -> None:
    mine, scores = {"name": "Mine"}, {"name": "Scores"}
    plugins = {
        "multiPoint": {"enabled": [mine]},
        "score": {"enabled": [scores]},
        "postBind": {"enabled": [{"name": "X"}]},
    }
    found = decision(configured({"plugins": plugins}), NEXT, EMPTY)
    assert found.scheduler is not None
    assert names(found.not_judged) == ["Mine"]
    assert "multiPoint" in found.not_judged[0].why
    assert names(found.scheduler.not_scored) == ["Mine", "Scores"]


def test_arguments_of_plugins_that_kindred_does_not_have_change_nothing() -> None:
    assert not decision(with_args("DefaultPreemption", minCandidateNodesAbsolute=3), NEXT, EMPTY).not_judged


@pytest.mark.parametrize(
    ("plugins", "plugin", "why"),
    [
        pytest.param(
            {"preFilter": {"disabled": [{"name": "InterPodAffinity"}]}},
            "InterPodAffinity",
            "preFilter is off",
            id="no-state",
        ),
        pytest.param(
            {"preScore": {"disabled": [{"name": "TaintToleration"}]}},
            "TaintToleration",
            "preScore is off",
            id="no-score-state",
        ),
        pytest.param(
            {"filter": {"disabled": [{"name": "VolumeZone"}]}}, "VolumeZone", "preFilter is on", id="pre-filter-alone"
        ),
    ],
)
def test_half_of_a_plugin_is_not_judged(plugins: dict[str, Any], plugin: str, why: str) -> None:
    found = decision(configured({"plugins": plugins}), NEXT, EMPTY)
    assert names(found.not_judged) == [plugin]
    assert why in found.not_judged[0].why


@pytest.mark.parametrize(
    ("plugin", "args", "problem"),
    [
        pytest.param("NodeResourcesFit", {"ignored": []}, "NodeResourcesFit", id="unknown-field"),
        pytest.param("InterPodAffinity", {"hardPodAffinityWeight": 101}, "hardPodAffinityWeight", id="range"),
        pytest.param("NodeAffinity", {"addedAffinity": {"requiredDuring": 1}}, "addedAffinity", id="deep-inside"),
        pytest.param("VolumeBinding", {"wait": 1}, "VolumeBinding", id="volumes"),
    ],
)
def test_wrong_arguments_are_named(plugin: str, args: dict[str, Any], problem: str) -> None:
    with pytest.raises(UnreadableError, match=r"profiles\[0\]\.pluginConfig\[0\]\.args: ") as error:
        scheduler_profiles(with_args(plugin, **args))
    assert problem in str(error.value)
