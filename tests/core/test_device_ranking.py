"""Nodes are ranked by the score of devices: as the real plugin scores them, for whom it counts, and within a bound."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pytest

from app.objects.resources import RESOURCES
from core.device_ranking import DeviceRanking
from core.diagnosis import diagnosis
from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.explained_profile import every_rule
from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import ClusterEvent, Kind, Missing
from core.framework.evaluation import Evaluation, FreshEvaluation
from core.mirror.cluster import ClusterMirror
from core.objects.devices import DeviceTaintRule, ResourceClaim, ResourceSlice
from core.objects.pod import Pod
from core.plugins import DEVICES
from core.plugins.dynamicresources import matching
from core.plugins.dynamicresources.outcomes import TO_JUDGE, TO_SCORE
from core.plugins.dynamicresources.selectors import Selector
from core.plugins.dynamicresources.totals import DeviceTotals
from core.plugins.in_tree import EVERY_SCHEDULER, DeviceSchedulers
from core.plugins.noderesources.arguments import ResourceSpec, ScoringStrategy
from core.profile import Profile, full_profile
from core.releases.release import Release
from core.scheduling_cycle import choose_nodes
from tests.conformance.engine import decoded_pod
from tests.conformance.golden_files import Members, read
from tests.core.diagnosis.test_devices import NOT_EVALUATED, mirror_of_case
from tests.core.plugins.dynamicresources.world import V1, alternative, claim, device, in_use, slice_of, world

DATA: Final = Path(__file__).parents[1] / "conformance" / "data"
PROFILE: Final = full_profile()
FAST: Final = {"cel": {"expression": 'device.attributes["gpu.example.com"].model == "fast"'}}
PREFERS_FAST: Final = {"name": "r", "firstAvailable": [alternative("fast", selectors=[FAST]), alternative("any")]}
GPU: Final = "example.com/gpu"
LACKS_SLICES: Final[Mapping[Kind, Missing]] = {ResourceSlice: Missing("not synced")}


def models(*names: str) -> list[V1]:
    """Return a slice with one device of a model for each node."""
    return [
        slice_of(f"s{at}", [device("g0", {"model": {"string": name}})], f"pool{at}", nodeName=f"n{at}")
        for at, name in enumerate(names)
    ]


def case_of(release: str = "1.37", *others: V1, **fields: Any) -> V1:  # noqa: ANN401  # members of a case
    """Return a case whose pod prefers n1 by devices, and by nothing else."""
    mine = claim([PREFERS_FAST])
    return world(models("slow", "fast"), [mine, *others], nodes=2, release=release, **fields)


def best(  # noqa: PLR0913  # what a choice depends on
    mirror: ClusterMirror,
    pod: Pod,
    *,
    schedulers: DeviceSchedulers = EVERY_SCHEDULER,
    missing: Mapping[Kind, Missing] | None = None,
    evaluation: Evaluation | None = None,
    profile: Profile = PROFILE,
) -> list[str]:
    """Return the nodes to choose from."""
    ranking = DeviceRanking(profile, schedulers, lambda: missing or {})
    batch = mirror.batch(list(mirror.nodes.slots))
    profile, ranked = ranking.of(evaluation or FreshEvaluation(mirror, pod))
    positions, _ = choose_nodes(profile, ranked, batch)
    return [batch.names[position] for position in positions.tolist()]


@pytest.mark.parametrize(
    ("release", "expected"), [("1.34", ["n0", "n1"]), ("1.35", ["n1"]), ("1.36", ["n1"]), ("1.37", ["n1"])]
)
def test_the_better_alternative_is_preferred_since_1_35(release: str, expected: list[str]) -> None:
    case = case_of(release)
    assert best(mirror_of_case(case), decoded_pod(case["pod"])) == expected


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"schedulers": DeviceSchedulers(frozenset({"others"}), others=False)}, id="no-plugin"),
        pytest.param({"missing": LACKS_SLICES}, id="slices-unknown"),
    ],
)
def test_where_devices_are_not_known_nodes_are_equal(fields: dict[str, Any]) -> None:
    case = case_of()
    assert best(mirror_of_case(case), decoded_pod(case["pod"]), **fields) == ["n0", "n1"]


def test_rules_of_taints_are_not_needed() -> None:
    case = case_of()
    missing: Mapping[Kind, Missing] = {DeviceTaintRule: Missing("not served")}
    assert best(mirror_of_case(case), decoded_pod(case["pod"]), missing=missing) == ["n1"]


def test_other_gates_of_devices_leave_the_score_out() -> None:
    case = case_of("1.36")
    mirror = mirror_of_case(case, {"DRADeviceTaints": False})
    assert best(mirror, decoded_pod(case["pod"])) == ["n0", "n1"]


def test_a_node_whose_devices_are_not_judged_neither_gains_nor_loses() -> None:
    case = case_of()
    case["resourceslices"] += [slice_of("s2", [device("g0")], "pool2", nodeName="n2")]  # the attribute is missing
    case["nodes"] += [{"metadata": {"name": "n2"}}]
    second = alternative("x", selectors=NOT_EVALUATED)
    case["resourceclaims"] = [claim([PREFERS_FAST | {"firstAvailable": [PREFERS_FAST["firstAvailable"][0], second]}])]
    assert best(mirror_of_case(case), decoded_pod(case["pod"])) == ["n0", "n1", "n2"]


def test_a_node_without_a_device_for_the_pod_is_chosen_last_and_not_refused() -> None:
    case = case_of("1.37", claim([PREFERS_FAST], "other", in_use("g0", pool="pool1")))
    mirror, pod = mirror_of_case(case), decoded_pod(case["pod"])
    assert best(mirror, pod) == ["n0"]
    mirror.apply(ClusterEvent("Delete", stored(mirror, ResourceSlice)["s0"]))
    assert best(mirror, pod) == ["n0", "n1"]


def stored(mirror: ClusterMirror, kind: Kind) -> Mapping[str, Any]:
    return mirror.objects(kind)


@pytest.mark.parametrize("allocated", ["1.35", "1.37"])
def test_a_claim_that_is_allocated_already_prefers_no_node(allocated: str) -> None:
    case = case_of(allocated)
    results = [{"request": "r/fast", "driver": "gpu.example.com", "pool": "pool1", "device": "g0"}]
    case["resourceclaims"][0]["status"] = {"allocation": {"devices": {"results": results}}}
    assert best(mirror_of_case(case), decoded_pod(case["pod"])) == ["n0", "n1"]


def test_events_change_what_is_preferred_and_a_cached_evaluation_is_equal() -> None:
    case = case_of()
    mirror, pod = mirror_of_case(case), decoded_pod(case["pod"])
    cache = EquivalenceCache(mirror, PROFILE.plugins, CacheOptions(mode="spec"))
    taken = claim([PREFERS_FAST], "other", in_use("g0", pool="pool1"))
    decode = RESOURCES[ResourceClaim].decode
    for status, expected in ((taken["status"], ["n0"]), ({}, ["n1"]), (taken["status"], ["n0"])):
        mirror.apply(ClusterEvent("Update", decode(msgspec.json.encode(taken | {"status": status}))))
        for _ in range(3):
            assert best(mirror, pod, evaluation=cache.evaluation(pod)) == best(mirror, pod) == expected


def scored_cases() -> list[Members]:
    files = [DATA / folder / "devices_random.jsonl.gz" for folder in ("v1.36", "v1.37")]
    lines = [line.content for file in (*files, DATA / "v1.37" / "devices.jsonl.gz") for line in read(file)]
    return [each for each in lines if each["expected"]["plugins"]["DynamicResources"].get("raw_scores_feasible")]


def test_nodes_are_ranked_by_the_scores_of_the_real_plugin() -> None:
    """Compare the sum with and without devices, over the nodes that the real plugin has passed."""
    differing = 0
    for case in scored_cases():
        expected = case["expected"]["plugins"]["DynamicResources"]
        mirror, pod = mirror_of_case(dict(case)), decoded_pod(case["pod"])
        ranking = DeviceRanking(PROFILE, EVERY_SCHEDULER, dict)
        profile, ranked = ranking.of(FreshEvaluation(mirror, pod))
        names = case["expected"]["feasible"]
        scores = [each for each in profile.under(mirror.rules).scores if each not in PROFILE.scores]
        if not scores:
            assert len(set(expected["normalized_feasible"].values())) == 1, case["name"]  # no node is preferred
            continue
        ((plugin, weight),) = scores
        raw = ranked.raw_scores(plugin, mirror.batch(names))
        assert weight == 2
        assert raw is not None, case["name"]
        assert dict(zip(names, raw.tolist(), strict=True)) == expected["raw_scores_feasible"], case["name"]
        normalized = dict(zip(names, plugin.normalize(raw).tolist(), strict=True))
        assert normalized == expected["normalized_feasible"], case["name"]
        differing += len(np.unique(raw)) > 1
    assert differing >= 10


def many(nodes: int) -> V1:
    """Return a case whose nodes all have devices of their own, so that none is like another one."""
    slices = [
        slice_of(f"s{at}", [device("g0", {"model": {"string": f"m{at}"}})], f"pool{at}", nodeName=f"n{at}")
        for at in range(nodes)
    ]
    slices[-1]["spec"]["devices"][0]["attributes"]["model"]["string"] = "fast"
    return world(slices, [claim([PREFERS_FAST])], nodes=nodes)


def test_one_decision_searches_a_bounded_number_of_nodes_and_the_next_one_continues() -> None:
    nodes = 3 * TO_SCORE.steps // (TO_SCORE.of_a_node + TO_SCORE.of_a_read + TO_SCORE.of_a_search)
    case = many(nodes)
    mirror, pod = mirror_of_case(case), decoded_pod(case["pod"])
    decisions = 1
    while len(best(mirror, pod)) == nodes:
        decisions += 1
    assert 4 <= decisions <= 8
    assert best(mirror, pod) == [f"n{nodes - 1}"]


def test_nodes_that_are_alike_are_searched_once_and_the_look_at_each_is_bounded() -> None:
    nodes = 2 * TO_SCORE.steps // (TO_SCORE.of_a_node + TO_SCORE.of_a_read)
    case = world(models(*["slow"] * (nodes - 1), "fast"), [claim([PREFERS_FAST])], nodes=nodes)
    mirror, pod = mirror_of_case(case), decoded_pod(case["pod"])
    found = [len(best(mirror, pod)) for _ in range(4)]
    assert found == [nodes, nodes, 1, 1]


def test_an_endless_search_leaves_the_score_out() -> None:
    """32 requests with 8 alternatives each over 8 devices, of which a constraint allows two together."""
    requests = [
        {"name": f"r{at}", "firstAvailable": [alternative(f"a{which}") for which in range(8)]} for at in range(32)
    ]
    constraint = {"matchAttribute": "gpu.example.com/pair"}
    slices = [slice_of("s", [device(f"g{at}", {"pair": {"int": at // 2}}) for at in range(8)])]
    case = world(slices, [claim(requests, constraints=[constraint])], nodes=2)
    mirror, pod = mirror_of_case(case), decoded_pod(case["pod"])
    assert best(mirror, pod) == ["n0", "n1"]
    plugin, batch = DEVICES(), mirror.batch(["n0", "n1"])
    _, state = plugin.pre_score(mirror, pod, batch)
    assert state is not None
    plugin.score(state, batch)
    assert "n0" in plugin.undecided(state)
    assert TO_SCORE.steps < state.steps < 2 * TO_SCORE.steps


def test_of_two_claims_one_may_be_allocated_already() -> None:
    """Known nodes are not looked at again: the outcome does not depend on where the other claim is available."""
    done = claim([PREFERS_FAST], "c-done", in_use("g0", pool="elsewhere"))
    done["status"]["allocation"]["devices"]["results"][0]["request"] = "r/any"
    case = case_of("1.37", done)
    mirror, pod = mirror_of_case(case), decoded_pod(case["pod"])
    assert best(mirror, pod) == ["n1"]
    plugin, batch = DEVICES(), mirror.batch(["n0", "n1"])
    _, state = plugin.pre_score(mirror, pod, batch)
    assert state is not None
    assert plugin.score(state, batch).tolist() == [7 + 7, 8 + 7]
    assert state.steps == 0


def by_resources(strategy: str) -> Profile:
    """Return the default plugins with arguments that name a resource of devices."""
    resources = (ResourceSpec("cpu", 1), ResourceSpec(GPU, 3))
    arguments: dict[str, dict[str, Any]] = {
        "NodeResourcesFit": {"scoring_strategy": ScoringStrategy(type=strategy, resources=resources)},
        "NodeResourcesBalancedAllocation": {"resources": [ResourceSpec("cpu", 1), ResourceSpec(GPU, 1)]},
    }
    return full_profile(arguments)


def gpu_case(release: str = "1.37") -> V1:
    """Return a case of a pod that requests a device: 2 of 4 are in use on n0, and 1 of 4 on n1."""
    four = [device(f"d{at}") for at in range(4)]
    slices = [slice_of(f"s{at}", four, f"pool{at}", nodeName=f"n{at}") for at in range(2)]
    claims = [claim([], "a", in_use("d0", "d1", pool="pool0")), claim([], "b", in_use("d0", pool="pool1"))]
    of_class = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPU}}
    case = world(slices, claims, nodes=2, release=release, deviceclasses=[of_class])
    container = {"name": "c", "resources": {"requests": {GPU: "1"}, "limits": {GPU: "1"}}}
    case["pod"]["spec"]["containers"] = [container]
    return case


@pytest.mark.parametrize(
    ("strategy", "release", "expected"),
    [
        ("LeastAllocated", "1.37", ["n1"]),
        ("LeastAllocated", "1.36", ["n1"]),
        ("MostAllocated", "1.37", ["n0"]),
        ("MostAllocated", "1.35", ["n0", "n1"]),
    ],
)
def test_scores_by_resources_count_the_devices_of_extended_resources_since_1_36(
    strategy: str, release: str, expected: list[str]
) -> None:
    case, profile = gpu_case(release), by_resources(strategy)
    mirror, pod = mirror_of_case(case, {}), decoded_pod(case["pod"])
    found = expected if release != "1.35" else []  # without the feature gate, no node offers the resource
    assert best(mirror, pod, profile=profile) == found
    others = DeviceSchedulers(frozenset({"others"}), others=False)
    if found:
        assert best(mirror, pod, profile=profile, schedulers=others) == ["n0", "n1"]
        assert best(mirror, pod, profile=profile, missing=LACKS_SLICES) == ["n0", "n1"]
        assert best(mirror, pod) == ["n0", "n1"]


def test_the_amounts_of_a_device_plugin_come_before_devices() -> None:
    case = gpu_case()
    case["nodes"][0]["status"] = {"allocatable": {"pods": "9", "cpu": "1", GPU: "100"}}
    mirror, pod = mirror_of_case(case), decoded_pod(case["pod"])
    assert best(mirror, pod, profile=by_resources("LeastAllocated")) == ["n0"]


def test_scores_that_count_devices_are_those_of_upstream_s_formulas() -> None:
    """LeastAllocated of the resource alone: (4 - 3) / 4 and (4 - 2) / 4, because no node has cpu."""
    case, profile = gpu_case(), by_resources("LeastAllocated")
    mirror, pod = mirror_of_case(case), decoded_pod(case["pod"])
    batch = mirror.batch(["n0", "n1"])
    _, ranked = DeviceRanking(profile, EVERY_SCHEDULER, dict).of(FreshEvaluation(mirror, pod))
    raw = {plugin.name: ranked.raw_scores(plugin, batch) for plugin, _ in profile.scores}
    of_fit, of_balance = raw["NodeResourcesFit"], raw["NodeResourcesBalancedAllocation"]
    assert of_fit is not None
    assert of_balance is not None
    assert of_fit.tolist() == [25, 50]
    assert of_balance.tolist() == [75, 75]  # of one resource there is no balance to gain
    found = Diagnosis(every_rule(profile, ranked=frozenset({pod.scheduler_name})), mirror, pod, batch)
    parts = [found.score(at) for at in range(2)]
    assert [each.raw for part in parts if part for each in part[1] if each.plugin == "NodeResourcesFit"] == [25, 50]
    served = Diagnosis(every_rule(profile), mirror, pod, batch)  # as `prioritize`
    parts = [served.score(at) for at in range(2)]
    assert [each.raw for part in parts if part for each in part[1] if each.plugin == "NodeResourcesFit"] == [0, 0]


def test_an_explanation_counts_devices_once_for_all_scores_as_a_decision_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a bound for each score it would show scores that no decision has."""
    made: list[object] = []

    def counting(mirror: ClusterMirror) -> DeviceTotals:
        made.append(mirror)
        return DeviceTotals(mirror)

    monkeypatch.setattr(diagnosis, "DEVICE_TOTALS", counting)
    case, profile = gpu_case(), by_resources("LeastAllocated")
    mirror, pod = mirror_of_case(case), decoded_pod(case["pod"])
    explained = every_rule(profile, ranked=frozenset({pod.scheduler_name}))
    Diagnosis(explained, mirror, pod, mirror.batch(["n0", "n1"]))
    assert len(made) == 1


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the lengths of the selectors that are compiled from now on."""
    found: list[int] = []

    def compile_selector(expression: str, release: Release) -> Selector:
        found.append(len(expression))
        return Selector(expression, release)

    monkeypatch.setattr(matching, "compile_selector", compile_selector)
    return found


def long_selector(length: int, name: str = "a") -> V1:
    """Return a selector of up to a length that selects all devices."""
    part = f'device.driver != "{name}" && '
    return {"cel": {"expression": part * ((length - 4) // len(part)) + "true"}}


@pytest.mark.parametrize(("number", "length"), [(32, 10_000), (32, 200), (1, TO_SCORE.compiled + 50)])
def test_a_class_with_long_selectors_is_not_counted_and_nothing_of_it_compiled(
    number: int, length: int, compiled: list[int]
) -> None:
    """32 selectors of 10 KB took every decision seconds."""
    case, profile = gpu_case(), by_resources("LeastAllocated")
    case["deviceclasses"][0]["spec"]["selectors"] = [long_selector(length, f"a{at}") for at in range(number)]
    mirror, pod = mirror_of_case(case), decoded_pod(case["pod"])
    for _ in range(3):
        assert best(mirror, pod, profile=profile) == ["n0", "n1"]
    assert compiled == []


def test_a_class_whose_selectors_are_not_as_long_is_counted_at_once(compiled: list[int]) -> None:
    case, profile = gpu_case(), by_resources("LeastAllocated")
    case["deviceclasses"][0]["spec"]["selectors"] = [long_selector(TO_SCORE.compiled // 2, each) for each in "ab"]
    mirror, pod = mirror_of_case(case), decoded_pod(case["pod"])
    assert best(mirror, pod, profile=profile) == ["n1"]
    assert len(compiled) == 2


def test_one_decision_compiles_few_of_a_claim_s_selectors_and_the_next_one_continues(compiled: list[int]) -> None:
    case = case_of()
    longer = [long_selector(TO_SCORE.compiled // 2, f"a{at}") for at in range(4)]
    alternatives = [alternative("fast", selectors=[FAST, *longer]), alternative("any")]
    case["resourceclaims"] = [claim([{"name": "r", "firstAvailable": alternatives}])]
    mirror, pod = mirror_of_case(case), decoded_pod(case["pod"])
    found = []
    while ["n1"] not in found:
        del compiled[:]
        found.append(best(mirror, pod))
        assert 0 < sum(compiled) <= TO_SCORE.compiled
    assert found == [["n0", "n1"], ["n0", "n1"], ["n1"]]


def test_a_selector_too_long_for_a_decision_counts_after_an_explanation(compiled: list[int]) -> None:
    case = case_of()
    alternatives = [alternative("fast", selectors=[FAST, long_selector(9_000)]), alternative("any")]
    case["resourceclaims"] = [claim([{"name": "r", "firstAvailable": alternatives}])]
    mirror, pod = mirror_of_case(case), decoded_pod(case["pod"])
    assert [best(mirror, pod) for _ in range(2)] == [["n0", "n1"]] * 2
    assert sum(compiled) < TO_SCORE.compiled
    Diagnosis(every_rule(PROFILE), mirror, pod, mirror.all_nodes())
    assert TO_SCORE.compiled < sum(compiled) <= TO_JUDGE.compiled
    assert best(mirror, pod) == ["n1"]
