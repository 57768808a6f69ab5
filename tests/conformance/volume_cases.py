"""Volume cases: each plugin that reads volumes is held against its part of a case, and all of them together."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Final, TypeAlias

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.framework.evaluation import Evaluation, FreshEvaluation, everywhere
from core.framework.interface import AnyFilter, Code
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from core.plugins.dynamicresources.plugin import DynamicResources
from core.plugins.nodevolumelimits.plugin import NodeVolumeLimits
from core.plugins.volumebinding.plugin import VolumeBinding
from core.plugins.volumerestrictions import VolumeRestrictions
from core.plugins.volumezone import VolumeZone
from core.profile import Profile
from core.scheduling_cycle import filter_nodes
from tests.conformance import device_cases
from tests.conformance.combined_cases import WAYS
from tests.conformance.engine import add_volumes, decoded_pod, load
from tests.conformance.golden_files import Line, Members, other_rules
from tests.conformance.results import Difference, Results, differences

PluginFactory: TypeAlias = Callable[[], AnyFilter]

VOLUME_PLUGINS: Final[Mapping[str, PluginFactory]] = {
    "NodeVolumeLimits": NodeVolumeLimits,
    "VolumeBinding": VolumeBinding,
    "VolumeRestrictions": VolumeRestrictions,
    "VolumeZone": VolumeZone,
}
"""How each plugin is made; what a case says of the others is left out."""

_PASSING: Final = frozenset({Code.SUCCESS, Code.SKIP})


def run(lines: Iterable[Line], results: Results) -> None:
    """Run every plugin that the cases speak of, and compare the nodes that pass all of them."""
    for line in lines:
        case, place = line.content, f"{line.content['name']} ({line.place})"
        expected: Mapping[str, Members] = case["expected"]["plugins"]
        loaded = cache(partial(_mirror, line))  # once for all plugins
        responses: list[Members] = []
        for name, members in expected.items():
            if name in VOLUME_PLUGINS:
                responses.append(_response(VOLUME_PLUGINS[name], line, loaded))
                results.add(name, place, _differences(members, responses[-1], line))
            elif name == DynamicResources.name:
                device_cases.run(line, members, results, place)
            else:
                results.left_out[f"{name} (no runner)"] += 1
        if len(responses) == len(expected):
            required = {**dict.fromkeys(("alone", *WAYS), case["expected"]["feasible"])}
            results.add("all volume plugins", place, differences(required, _passing_all(case, responses, loaded)))


def _response(make: PluginFactory, line: Line, loaded: Callable[[], ClusterMirror]) -> Members:
    """Run PreFilter and Filter over all nodes, and what scores there are over all and over those that fit."""
    case = line.content
    try:
        plugin, mirror, names = make(), loaded(), _names(case)
        batch = mirror.batch(names)
        status, state = plugin.pre_filter(mirror, decoded_pod(case["pod"]))
        verdicts = everywhere(status, batch) if state is None else plugin.filter(state, batch)
        scores = {} if state is None else _scores(plugin, mirror, case)
    except Exception as error:  # noqa: BLE001 - whatever the engine raises is its answer to this case, a wrong one
        return {"raised": error}
    statuses = [] if verdicts is None else [verdicts.status(position) for position in range(len(names))]
    return {
        "prefilter": "Success" if status.code in _PASSING else status.code.label,
        "prefilter_reasons": list(status.reasons),
        "filter_failed": {
            name: {"code": each.code.label, "reasons": list(each.reasons)}
            for name, each in zip(names, statuses, strict=False)
            if each.code is not Code.SUCCESS
        },
        **scores,
    }


def _scores(plugin: AnyFilter, mirror: ClusterMirror, case: Members) -> Members:
    """Return the raw scores in all ways. Nothing for a plugin that has none under the rules."""
    if not isinstance(plugin, VolumeBinding) or not mirror.rules.storage_capacity_scored:
        return {}
    pod, found = decoded_pod(case["pod"]), {}
    cached = EquivalenceCache(mirror, [plugin], CacheOptions(mode="spec"))
    for over, names in (("all", _names(case)), ("feasible", case["expected"]["feasible"])):
        if not names:
            continue
        for way in WAYS:
            raw = _evaluation(way, mirror, cached, pod).raw_scores(plugin, mirror.batch(names))
            found[f"raw_scores_{over} {way}"] = None if raw is None else dict(zip(names, raw.tolist(), strict=True))
    return found


def _evaluation(way: str, mirror: ClusterMirror, cached: EquivalenceCache, pod: Pod) -> Evaluation:
    """Return what is asked in a way; for `changed`, after other rules held in between."""
    if way == "changed":
        rules = mirror.rules
        mirror.change_rules(other_rules(rules))
        mirror.change_rules(rules)
    return FreshEvaluation(mirror, pod) if way == "fresh" else cached.evaluation(pod)


def _mirror(line: Line) -> ClusterMirror:
    """Load a case while other rules hold, and change them then: the answers do not depend on what held before."""
    case = line.content
    mirror = load(case["namespaces"], case["nodes"], case["pods"], rules=other_rules(line.rules))
    add_volumes(mirror, case)
    mirror.change_rules(line.rules)
    return mirror


def _differences(members: Members, response: Members, line: Line) -> list[Difference]:
    expected = {
        # Skip and Success are the same to the nodes, and which of them it is depends on what PreFilter looks at.
        "prefilter": "Success" if members["prefilter"] == "Skip" else members["prefilter"],
        "prefilter_reasons": members.get("prefilter_reasons", []),
        "filter_failed": members.get("filter_failed", {}),
        **{
            f"{member} {way}": members[member]
            for member in ("raw_scores_all", "raw_scores_feasible")
            if member in members
            for way in WAYS
        },
    }
    for over in ("all", "feasible"):
        assert members.get(f"normalized_{over}") == members.get(f"raw_scores_{over}"), line.place  # no NormalizeScore
    return differences(expected, response)


def _passing_all(case: Members, responses: Iterable[Members], loaded: Callable[[], ClusterMirror]) -> Members:
    """Return the nodes that pass each plugin alone, and those that pass all in a profile, in all ways."""
    failed = {name for response in responses for name in response.get("filter_failed", ())}
    found = {"alone": [name for name in _names(case) if name not in failed]}
    try:
        mirror, names, pod = loaded(), _names(case), decoded_pod(case["pod"])
        profile = Profile(tuple(make() for make in VOLUME_PLUGINS.values()), ())
        cached = EquivalenceCache(mirror, profile.plugins, CacheOptions(mode="spec"))
        for way in WAYS:
            verdicts = filter_nodes(profile, _evaluation(way, mirror, cached, pod), mirror.batch(names))
            found[way] = [name for name, code in zip(names, verdicts.codes.tolist(), strict=True) if not code]
    except Exception as error:  # noqa: BLE001 - whatever the engine raises is its answer to this case, a wrong one
        return {**found, "raised": error}
    return found


def _names(case: Members) -> list[str]:
    return [node["metadata"]["name"] for node in case["nodes"]]
