"""Nominated cases: the filters of a whole scheduler over nodes that pending pods are nominated for.

`filter_failed` and `feasible` are the answer, in whatever way the engine is asked: afresh, of an empty cache, again of
the cache, and for an explanation. The other members of `expected` explain them, and are for people.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from core.diagnosis.diagnosis import Diagnosis
from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.framework.evaluation import FreshEvaluation
from core.framework.interface import Verdicts
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.pod import Pod
from core.profile import Profile, full_profile
from core.releases.release import Rules
from core.scheduling_cycle import filter_nodes
from tests.conformance.engine import add_volumes, decoded_pod, load
from tests.conformance.golden_files import Line, Members, other_rules
from tests.conformance.results import Difference, Results, differences

NAME: Final = "nominated pods"
WAYS: Final = ("fresh", "cold", "cached", "changed", "explained")


def run(lines: Iterable[Line], results: Results) -> None:
    """Ask the profile of a whole scheduler in all ways."""
    profile = full_profile()
    for line in lines:
        results.add(NAME, f"{line.content['name']} ({line.place})", _differences(profile, line))


def _differences(profile: Profile, line: Line) -> list[Difference]:
    case = line.content
    try:
        got = _response(profile, case, line.rules)
    except Exception as error:  # noqa: BLE001 - whatever the engine raises is its answer to this case, a wrong one
        return [Difference("answer", dict(case["expected"]), error)]
    return differences(_required(case["expected"]), got)


def _required(expected: Members) -> Members:
    failed = expected["filter_failed"]
    statuses = {name: (each["code"], each["reasons"]) for name, each in failed.items()}
    return {
        **{f"{way} failed": statuses for way in WAYS},
        **{f"{way} feasible": expected["feasible"] for way in WAYS},
        "plugin": {name: each["plugin"] for name, each in failed.items()},
    }


def _response(profile: Profile, case: Members, rules: Rules) -> Members:
    mirror, pod = _mirror(case, rules), decoded_pod(case["pod"])
    names = [node["metadata"]["name"] for node in case["nodes"]]
    batch = mirror.batch(names)
    cache = EquivalenceCache(mirror, profile.plugins, CacheOptions(mode="spec"))
    decision = Diagnosis(profile, mirror, pod, batch)
    stated = {
        "fresh": filter_nodes(profile, FreshEvaluation(mirror, pod), batch),
        "cold": filter_nodes(profile, cache.evaluation(pod), batch),
        "cached": filter_nodes(profile, cache.evaluation(pod), batch),
        "changed": _after_a_change(profile, cache, pod, mirror, batch),
        "explained": decision.verdicts,
    }
    plugins = ((name, decision.deciding_plugin(position)) for position, name in enumerate(names))
    return {
        **{f"{way} failed": dict(_failed(names, verdicts)) for way, verdicts in stated.items()},
        **{
            f"{way} feasible": [name for name, code in zip(names, verdicts.codes.tolist(), strict=True) if not code]
            for way, verdicts in stated.items()
        },
        "plugin": {name: plugin for name, plugin in plugins if plugin},
    }


def _after_a_change(
    profile: Profile, cache: EquivalenceCache, pod: Pod, mirror: ClusterMirror, batch: NodeBatch
) -> Verdicts:
    rules = mirror.rules
    mirror.change_rules(other_rules(rules))
    filter_nodes(profile, cache.evaluation(pod), batch)
    mirror.change_rules(rules)
    return filter_nodes(profile, cache.evaluation(pod), batch)


def _mirror(case: Members, rules: Rules) -> ClusterMirror:
    """Load a case; the incoming pod is not in the cluster."""
    mirror = load(case["namespaces"], case["nodes"], [*case["pods"], *case["nominated"]], rules=rules)
    add_volumes(mirror, case)
    return mirror


def _failed(names: Sequence[str], verdicts: Verdicts) -> Iterator[tuple[str, tuple[str, list[str]]]]:
    for name, code in zip(names, verdicts.codes.tolist(), strict=True):
        if code:
            status = verdicts.statuses[code]
            yield name, (status.code.label, list(status.reasons))
