"""All plugins of a case together: which nodes pass every one, and the weighted mean of their normalised scores."""

from typing import Any, Final

import msgspec

from app.objects.plugin_args import decode_plugin_args
from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.framework.evaluation import Evaluation, FreshEvaluation
from core.mirror.cluster import ClusterMirror
from core.plugins import PLUGINS
from core.profile import Arguments, Profile
from core.scheduling_cycle import filter_nodes, score_nodes
from tests.conformance.engine import decoded_pod
from tests.conformance.golden_files import Members, other_rules

_FILTERS: Final = (
    *("NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit"),
    *("PodTopologySpread", "InterPodAffinity", "NodeDeclaredFeatures"),
)
_WEIGHTS: Final = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
}


WAYS: Final = ("fresh", "cold", "cached", "changed")
"""Afresh, of an empty cache, again of the cache, and of the cache after other rules held in between."""


def arguments_of(case: Members) -> Arguments:
    """Return the arguments of a case, by plugin. Without `pluginConfig`, there are no default constraints of spread.

    Raises DecodeError for a `pluginConfig` that the product refuses.
    """
    args: Members = case.get("args") or {}
    affinity = {
        "hard_pod_affinity_weight": args.get("hardPodAffinityWeight", 1),
        "ignore_preferred_terms_of_existing_pods": args.get("ignorePreferredTermsOfExistingPods", False),
    }
    if "pluginConfig" not in case:
        return {"PodTopologySpread": {"defaulting_type": "List"}, "InterPodAffinity": affinity}
    config = {each["name"]: each.get("args") or {} for each in case["pluginConfig"]}
    return decode_plugin_args(msgspec.json.encode(config).decode())


def combined_profile(case: Members) -> Profile:
    """Return all plugins of a case, with their weights."""
    names, arguments = dict.fromkeys((*_FILTERS, *_WEIGHTS)), arguments_of(case)
    made: dict[str, Any] = {name: PLUGINS[name](**arguments.get(name, {})) for name in names}
    return Profile(
        filters=tuple(made[name] for name in _FILTERS),
        scores=tuple((made[name], weight) for name, weight in _WEIGHTS.items()),
    )


def combined_expected(case: Members) -> Members:
    """Return what the scheduler finds, its totals as the mean that `prioritize` answers, for each way of asking."""
    combined = case["expected"]["combined"]
    weights = sum(_WEIGHTS.values())
    response = {
        "feasible": list(combined["feasible"]),
        "mean": {node: total // weights for node, total in (combined["total"] or {}).items()},
    }
    return {f"{way} {member}": value for way in WAYS for member, value in response.items()}


def combined_response(mirror: ClusterMirror, case: Members) -> Members:
    """Ask in all ways. The rules of the mirror are the same afterwards."""
    profile = combined_profile(case)
    pod = decoded_pod(case["pod"])
    names = [node["metadata"]["name"] for node in case["nodes"]]
    cache = EquivalenceCache(mirror, profile.plugins, CacheOptions(mode="spec"))
    responses: dict[str, object] = {}
    for way in WAYS:
        if way == "changed":
            rules = mirror.rules
            mirror.change_rules(other_rules(rules))
            score_nodes(profile, cache.evaluation(pod), mirror.batch(names))
            mirror.change_rules(rules)
        evaluation: Evaluation = FreshEvaluation(mirror, pod) if way == "fresh" else cache.evaluation(pod)
        verdicts = filter_nodes(profile, evaluation, mirror.batch(names))
        feasible = [name for name, code in zip(names, verdicts.codes.tolist(), strict=True) if not code]
        scores = score_nodes(profile, evaluation, mirror.batch(feasible)).tolist()
        responses[f"{way} feasible"] = feasible
        responses[f"{way} mean"] = dict(zip(feasible, scores, strict=True))
    return responses
