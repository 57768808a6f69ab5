"""What is explained of a pod where the scheduler's configuration is known: what runs, who judges, and how it weighs."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from app.explain.scheduler_profiles import SchedulerProfiles
from app.scheduler_configuration.scheduler_config import load_scheduler_config
from app.settings.configuration import load_configuration
from app.settings.settings import Settings
from app.wiring.engine import create_profile, explained_profile
from core.diagnosis.explained_profile import ExplainProfile, Judge
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod, PodResourceClaim
from core.plugins.noderesources.fit import NodeResourcesFit
from core.profile import full_profile, with_devices
from tests.app.commands.doctor.registrations import DECIDE, FULL_OFFLOAD, NEXT_TO, SCORE_OFFLOAD
from tests.app.explain.configured import config_of, configured, names, with_args
from tests.builders import expressed

FIT, AFFINITY = "NodeResourcesFit", "InterPodAffinity"
OFF = {"multiPoint": {"disabled": [{"name": FIT}]}}
EVEN = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
SHAPE = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}


EMPTY = ClusterMirror()
CLAIMING = Pod(uid="u", namespace="default", name="p", resource_claims=(PodResourceClaim("gpu", "gpu"),))


def pod_of_scheduler(name: str = "") -> Pod:
    return Pod(uid="u", namespace="default", name="p", scheduler_name=name)


def pod_asking(resource: str) -> Pod:
    return Pod(uid="u", namespace="default", name="p", requests={resource: 1})


def explained(document: dict[str, Any], pod: Pod | None = None, **settings: Any) -> ExplainProfile:  # noqa: ANN401  # of any setting
    chosen = Settings(**settings)
    every = explained_profile(chosen, create_profile(chosen))
    pod = pod or pod_of_scheduler()
    return SchedulerProfiles(config_of(document), chosen, every).of(pod).of_pod(EMPTY, pod)


def judges(found: ExplainProfile) -> dict[str, Judge]:
    return {each.name: found.judge_of_filter(each.name) for each in found.profile.filters}


def weights(found: ExplainProfile) -> dict[str, int]:
    return {plugin.name: weight for plugin, weight in found.profile.scores}


def off(found: ExplainProfile) -> tuple[list[str], list[str]]:
    assert found.scheduler is not None
    return [each.name for each in found.scheduler.off.filters], [each.name for each, _ in found.scheduler.off.scores]


def test_a_configuration_of_defaults_runs_every_rule_with_its_weight_in_its_order() -> None:
    found = explained(configured({}))
    full = full_profile()
    assert [each.name for each in found.profile.filters] == [each.name for each in full.filters]
    assert weights(found) == {plugin.name: weight for plugin, weight in full.scores}
    assert found.profile.in_default_order
    assert set(judges(found).values()) == {Judge.SCHEDULER}
    assert off(found) == ([], [])
    assert found.scheduler is not None
    assert (found.scheduler.not_judged, found.scheduler.not_scored) == ((), ())


def test_a_plugin_that_nobody_runs_is_off() -> None:
    found = explained(configured({"plugins": OFF}), profile="full")
    assert off(found) == ([FIT], [FIT])
    assert FIT not in judges(found)
    assert FIT not in weights(found)


def test_full_offload_leaves_inter_pod_affinity_to_kindred() -> None:
    found = explained(FULL_OFFLOAD)
    assert {name for name, judge in judges(found).items() if judge is Judge.KINDRED} == {AFFINITY}
    assert [*judges(found)][-1] == AFFINITY  # extenders are asked last
    assert Judge.BOTH not in judges(found).values()
    assert off(found) == ([], [])


def test_beside_both_judge() -> None:
    found = explained(NEXT_TO)
    assert judges(found)[AFFINITY] is Judge.BOTH
    assert judges(found)[FIT] is Judge.SCHEDULER
    assert found.judge_of_score(AFFINITY) is Judge.BOTH


def test_an_extender_judges_by_the_verbs_that_it_is_registered_with() -> None:
    found = explained(SCORE_OFFLOAD)
    assert judges(found)[AFFINITY] is Judge.SCHEDULER
    assert found.judge_of_score(AFFINITY) is Judge.KINDRED
    unasked = {**SCORE_OFFLOAD, "extenders": [{**SCORE_OFFLOAD["extenders"][0], "prioritizeVerb": ""}]}
    assert off(explained(unasked)) == ([], [AFFINITY])


def test_a_composite_stands_for_its_parts() -> None:
    parts = ("NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity")
    document = {**FULL_OFFLOAD, "profiles": [{"plugins": {"filter": {"disabled": [{"name": each} for each in parts]}}}]}
    found = explained(document, profile="GeneralPredicates")
    assert judges(found)["GeneralPredicates"] is Judge.KINDRED
    assert not {*parts} & {*judges(found)}
    assert off(found) == ([], [])


@pytest.mark.parametrize(
    ("document", "settings", "expected"),
    [
        pytest.param(FULL_OFFLOAD, {"max_score": 20}, {AFFINITY: 2, "TaintToleration": 3}, id="as in-tree"),
        pytest.param(FULL_OFFLOAD, {}, {AFFINITY: 10, "TaintToleration": 3}, id="five times too strong"),
        pytest.param(NEXT_TO, {"max_score": 20}, {AFFINITY: 4, "TaintToleration": 3}, id="counted twice"),
        pytest.param(
            FULL_OFFLOAD, {"max_score": 25}, {AFFINITY: 5, "TaintToleration": 6}, id="a weight of two and a half"
        ),
        pytest.param(
            configured({"plugins": {"score": {"enabled": [{"name": AFFINITY, "weight": 7}]}}}),
            {},
            {AFFINITY: 7},
            id="own",
        ),
    ],
)
def test_scores_weigh_as_in_the_total_of_kube_scheduler(
    document: dict[str, Any], settings: dict[str, Any], expected: dict[str, int]
) -> None:
    assert expected.items() <= weights(explained(document, **settings)).items()


def test_where_only_kindred_scores_its_weights_are_shown() -> None:
    document = {**SCORE_OFFLOAD, "profiles": [{"plugins": {"score": {"disabled": [{"name": "*"}]}}}]}
    found = explained(document, profile="filter:NodeName,score:NodeAffinity=2,score:ImageLocality=1")
    assert weights(found) == {"NodeAffinity": 2, "ImageLocality": 1}


def test_devices_are_scored_unless_kindred_answers_with_one_node_and_no_scheduler_has_devices() -> None:
    for decide, claims, scored in (("off", "", True), ("any-node", "", False), ("any-node", "claims", True)):
        settings = Settings(profile="full", decide=decide, decide_claims_scheduler=claims)  # type: ignore[arg-type]  # one of its values
        found = explained_profile(settings, create_profile(settings))
        assert ("DynamicResources" in {plugin.name for plugin, _ in found.profile.scores}) is scored
        assert "DynamicResources" in {plugin.name for plugin in found.profile.filters}
        assert found.ranked == frozenset({claims} - {""})


def test_for_the_scheduler_of_claims_kindred_scores_devices_with_the_default_weight() -> None:
    document = {**DECIDE, "profiles": [*DECIDE["profiles"], {"schedulerName": "claims"}]}
    decides = {"profile": "full", "decide": "any-node", "decide_claims_scheduler": "claims"}
    pod = replace(CLAIMING, scheduler_name="claims")
    found = explained(document, pod, **decides)
    assert (weights(found)["DynamicResources"], found.judge_of_score("DynamicResources")) == (2, Judge.KINDRED)
    assert [*weights(found)] == [plugin.name for plugin, _ in with_devices(full_profile()).scores]
    assert off(found) == ([], [])
    disabled = {"multiPoint": {"disabled": [{"name": "DynamicResources"}]}}
    document["profiles"][-1]["plugins"] = disabled
    assert "DynamicResources" not in weights(explained(document, pod, **decides))


def test_where_kindred_decides_nothing_else_scores() -> None:
    name = DECIDE["profiles"][0]["schedulerName"]
    found = explained(DECIDE, pod_of_scheduler(name), profile="full", decide="any-node")
    assert weights(found) == {plugin.name: weight for plugin, weight in full_profile().scores}
    assert {found.judge_of_score(each) for each in weights(found)} == {Judge.KINDRED}
    assert found.scheduler is not None
    assert found.scheduler.percentage_of_nodes_to_score == 100


def test_kube_scheduler_s_own_plugin_leaves_resources_to_devices_whatever_kindred_s_does() -> None:
    document = {**DECIDE, "profiles": [*DECIDE["profiles"], {"schedulerName": "in-tree"}]}
    name = DECIDE["profiles"][0]["schedulerName"]
    decides = {"profile": "full", "decide": "listed-nodes"}
    for scheduler, has_devices in ((name, False), ("in-tree", True)):
        parts = explained(document, pod_of_scheduler(scheduler), **decides).profile.filter_parts
        (fit,) = (each for each in parts if isinstance(each, NodeResourcesFit))
        assert fit.device_schedulers.have(scheduler) is has_devices


@pytest.mark.parametrize("overlay", ["score-offload", "full-offload", "decide"])
def test_the_shipped_settings_and_registrations_leave_no_rule_without_a_judge(overlay: str) -> None:
    settings = load_configuration(Path("manifests/overlays", overlay, "kindred.yaml")).settings
    config = load_scheduler_config(Path("manifests/scheduler", f"{overlay}.yaml"))
    profiles = SchedulerProfiles(config, settings, explained_profile(settings, create_profile(settings)))
    for each in config.profiles:
        rules = profiles.of(pod_of_scheduler(each.name)).scheduler
        assert rules is not None
        assert (each.name, rules.has_profile, rules.not_judged, rules.not_scored) == (each.name, True, (), ())


def test_a_pod_of_a_scheduler_without_a_profile_is_judged_as_without_a_configuration() -> None:
    chosen = Settings()
    every = explained_profile(chosen, create_profile(chosen))
    profiles = SchedulerProfiles(config_of(configured({"plugins": OFF})), chosen, every)
    found = profiles.of(pod_of_scheduler("other"))
    assert found.profile is every.profile
    assert found.scheduler is not None
    assert (found.scheduler.name, found.scheduler.has_profile) == ("other", False)
    assert profiles.of(pod_of_scheduler("default-scheduler")) is profiles.of(pod_of_scheduler())


def test_each_profile_has_its_own_plugins_and_percentage() -> None:
    document = {
        **configured({}),
        "percentageOfNodesToScore": 40,
        "profiles": [
            {"schedulerName": "a", "plugins": OFF},
            {"schedulerName": "b", "percentageOfNodesToScore": 70},
        ],
    }
    first, second = (explained(document, pod_of_scheduler(name)) for name in ("a", "b"))
    assert (off(first)[0], off(second)[0]) == ([FIT], [])
    assert first.scheduler is not None
    assert second.scheduler is not None
    assert (first.scheduler.percentage_of_nodes_to_score, second.scheduler.percentage_of_nodes_to_score) == (40, 70)


GPUS = {
    "urlPrefix": "http://gpus:80",
    "filterVerb": "filter",
    "prioritizeVerb": "prioritize",
    "weight": 5,
    "managedResources": [{"name": "x/gpu", "ignoredByScheduler": True}],
}


def test_other_extenders_are_not_judged_for_the_pods_that_they_are_asked_about() -> None:
    document = {**FULL_OFFLOAD, "extenders": [{**FULL_OFFLOAD["extenders"][0], "urlPrefix": "http://kindred:1"}, GPUS]}
    asking, other = (explained(document, pod_asking(each)) for each in ("x/gpu", "cpu"))
    assert asking.scheduler is not None
    assert other.scheduler is not None
    assert [each.plugin for each in asking.scheduler.not_judged] == ["extender http://gpus:80"]
    assert [each.plugin for each in asking.scheduler.not_scored] == ["extender http://gpus:80"]
    assert (other.scheduler.not_judged, other.scheduler.not_scored) == ((), ())
    assert asking.scheduler.extender == "http://kindred:1"


def test_the_only_extender_is_not_kindred_if_it_is_there_for_a_resource() -> None:
    found = explained({**FULL_OFFLOAD, "extenders": [GPUS]}, pod_asking("x/gpu"))
    assert off(found) == ([AFFINITY], [AFFINITY])
    assert found.scheduler is not None
    assert found.scheduler.extender == ""
    assert [each.plugin for each in found.scheduler.not_judged] == ["extender http://gpus:80"]


def next_to_with(plugin: str, **args: Any) -> dict[str, Any]:  # noqa: ANN401  # any YAML
    return {**NEXT_TO, "profiles": with_args(plugin, **args)["profiles"]}


def test_other_arguments_of_what_both_judge_are_said() -> None:
    wants = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [expressed("zone", "In", "a")]}}
    affinity = explained(next_to_with("NodeAffinity", addedAffinity=wants), profile="full").scheduler
    fit = explained(next_to_with(FIT, scoringStrategy={"type": "MostAllocated"}), profile="full").scheduler
    ignoring = explained(next_to_with(FIT, ignoredResources=["x/gpu"]), profile="full").scheduler
    assert affinity is not None
    assert fit is not None
    assert ignoring is not None
    assert (names(affinity.not_judged), names(affinity.not_scored)) == (["NodeAffinity"], ["NodeAffinity"])
    assert (names(fit.not_judged), names(fit.not_scored)) == ([], [FIT])
    assert (names(ignoring.not_judged), names(ignoring.not_scored)) == ([FIT], [])


def test_a_plugin_with_the_same_arguments_is_asked_once() -> None:
    found = explained(
        next_to_with(AFFINITY, hardPodAffinityWeight=9),
        plugin_args='{"InterPodAffinity": {"hardPodAffinityWeight": 9}}',
    )
    assert found.scheduler is not None
    assert (found.scheduler.not_judged, found.scheduler.not_scored) == ((), ())
    assert found.served.filters[0] in found.profile.filters


@pytest.mark.parametrize(
    ("plugin", "arguments"),
    [
        (FIT, {"scoringStrategy": {"type": "LeastAllocated", "resources": EVEN}}),
        (FIT, {"scoringStrategy": {"type": "LeastAllocated", "resources": [{"name": "cpu"}, {"name": "memory"}]}}),
        (FIT, {"scoringStrategy": {"type": "LeastAllocated", "resources": EVEN, "requestedToCapacityRatio": SHAPE}}),
        ("NodeResourcesBalancedAllocation", {"resources": EVEN}),
        ("PodTopologySpread", {"defaultingType": "System"}),
        (AFFINITY, {"hardPodAffinityWeight": 1}),
    ],
)
def test_defaults_that_are_written_are_no_other_arguments(plugin: str, arguments: dict[str, Any]) -> None:
    found = explained(next_to_with(plugin, **arguments), profile="full").scheduler
    assert found is not None
    assert (found.not_judged, found.not_scored) == ((), ())


def test_the_order_of_ignored_resources_makes_no_other_arguments() -> None:
    ours = '{"NodeResourcesFit": {"ignoredResources": ["x/b", "x/a"]}}'
    for theirs, differ in (["x/a", "x/b"], []), (["x/a"], [FIT]):
        found = explained(next_to_with(FIT, ignoredResources=theirs), profile="full", plugin_args=ours).scheduler
        assert found is not None
        assert names(found.not_judged) == differ


def test_a_former_name_of_a_score_stands_for_its_strategy() -> None:
    found = explained(NEXT_TO, profile="filter:NodeName,MostRequestedPriority").scheduler
    assert found is not None
    assert names(found.not_scored) == [FIT]


def test_half_of_a_plugin_is_judged_where_kindred_is_asked_by_the_whole() -> None:
    document = {**FULL_OFFLOAD, "profiles": [{"plugins": {"filter": {"disabled": [{"name": "VolumeZone"}]}}}]}
    alone, whole = explained(document).scheduler, explained(document, profile="full").scheduler
    assert alone is not None
    assert whole is not None
    assert (names(alone.not_judged), names(whole.not_judged)) == (["VolumeZone"], [])


@pytest.mark.parametrize(("points", "expected"), [(("filter",), ["DynamicResources"]), (("preFilter", "filter"), [])])
def test_resource_claims_are_off_where_nothing_filters_by_them(points: tuple[str, ...], expected: list[str]) -> None:
    disabled = {point: {"disabled": [{"name": "DynamicResources"}]} for point in points}
    found = explained(configured({"plugins": disabled}), CLAIMING)
    assert found.scheduler is not None
    assert "DynamicResources" not in judges(found)
    assert off(found) == (["DynamicResources"], [])
    assert names(found.scheduler.not_judged) == expected
    plain = explained(configured({"plugins": disabled})).scheduler
    assert plain is not None
    assert (plain.off.filters, plain.not_judged) == ((), ())
