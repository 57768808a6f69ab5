"""Plugin cases: each plugin with a runner is held against its part of a case, the others are left out by name."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Final

import msgspec

from app.objects.resources import RESOURCES
from core.events import ClusterEvent, Kind
from core.framework.evaluation import FreshEvaluation
from core.framework.interface import Code, Plugin, Status
from core.framework.scores import NOT_SCORED
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import DeviceClass, ReplicaSet, ReplicationController, Service, StatefulSet
from core.objects.pod import Pod
from core.plugins import PLUGINS
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from tests.conformance.combined_cases import arguments_of, combined_expected, combined_response
from tests.conformance.engine import ask, decoded_pod, load
from tests.conformance.golden_files import Line, Members
from tests.conformance.results import Difference, Results, differences
from tests.reference.answer import Response

_PASSED: Final = ("Success", "Skip")
_OTHERS: Final[Mapping[str, Kind]] = {
    "deviceclasses": DeviceClass,
    "services": Service,
    "replicationcontrollers": ReplicationController,
    "replicasets": ReplicaSet,
    "statefulsets": StatefulSet,
}
"""Member of a case -> kind of its objects."""


@dataclass(frozen=True, slots=True)
class Runner:
    """How one plugin is run: what the case expects of it, and what the engine answers, member by member."""

    expected: Callable[[Members], Members]
    response: Callable[[ClusterMirror, Members], Members]


def _interpodaffinity_expected(case: Members) -> Members:
    return Response.from_golden(case["expected"]).members()


def _interpodaffinity_response(mirror: ClusterMirror, case: Members) -> Members:
    plugin = InterPodAffinity(**arguments_of(case).get("InterPodAffinity", {}))
    return ask(plugin, mirror, case["pod"], [node["metadata"]["name"] for node in case["nodes"]]).members()


def plugin_runner(name: str) -> Runner:
    """Return the runner of any plugin with the arguments of the case, over `expected.plugins.NAME`."""

    def expected(case: Members) -> Members:
        members = case["expected"]["plugins"][name]
        failed = members.get("filter_failed", {})
        scores = ("raw_scores_all", "normalized_all", "raw_scores_feasible", "normalized_feasible")
        return {
            # Skip and Success differ in nothing that a scheduler could see.
            "prefilter": "Success" if members.get("prefilter", "Success") in _PASSED else members["prefilter"],
            "filter_failed": {node: (one["code"], tuple(one["reasons"])) for node, one in failed.items()},
            **{member: members.get(member, {}) for member in scores},
        }

    def response(mirror: ClusterMirror, case: Members) -> Members:
        return plugin_response(PLUGINS[name](**arguments_of(case).get(name, {})), mirror, case)

    return Runner(expected, response)


def plugin_response(plugin: Plugin, mirror: ClusterMirror, case: Members) -> Members:
    """Ask a plugin what the case asks: filter over all nodes, scores over all and over those that fit all plugins."""
    pod = decoded_pod(case["pod"])
    names = [node["metadata"]["name"] for node in case["nodes"]]
    prefilter, failed = _filtered(plugin, mirror, pod, names)
    passed = prefilter in _PASSED
    over_all = _scored(plugin, mirror, pod, names if passed else [])
    over_feasible = _scored(plugin, mirror, pod, case["expected"]["combined"]["feasible"] if passed else [])
    return {
        "prefilter": "Success" if passed else prefilter,
        "filter_failed": failed,
        "raw_scores_all": over_all[0],
        "normalized_all": over_all[1],
        "raw_scores_feasible": over_feasible[0],
        "normalized_feasible": over_feasible[1],
    }


def _filtered(
    plugin: Plugin, mirror: ClusterMirror, pod: Pod, names: Sequence[str]
) -> tuple[str, Mapping[str, tuple[str, tuple[str, ...]]]]:
    if not hasattr(plugin, "pre_filter"):
        return "Success", {}
    status: Status = plugin.pre_filter(mirror, pod)[0]
    batch = mirror.batch(names)
    verdicts = FreshEvaluation(mirror, pod).verdicts(plugin, batch)  # type: ignore[arg-type]  # it filters
    if verdicts is None:
        return status.code.label, {}
    found = {name: verdicts.status(position) for position, name in enumerate(names)}
    return status.code.label, {
        name: (one.code.label, one.reasons) for name, one in found.items() if one.code is not Code.SUCCESS
    }


def _scored(
    plugin: Plugin, mirror: ClusterMirror, pod: Pod, names: Sequence[str]
) -> tuple[Mapping[str, int], Mapping[str, int]]:
    if not hasattr(plugin, "pre_score") or not names:
        return {}, {}
    raw = FreshEvaluation(mirror, pod).raw_scores(plugin, mirror.batch(names))  # type: ignore[arg-type]  # it scores
    if raw is None:
        return {}, {}
    rendered = [0 if score == NOT_SCORED else score for score in raw.tolist()]
    normalized = plugin.normalize(raw).tolist()  # type: ignore[attr-defined]  # it scores
    return dict(zip(names, rendered, strict=True)), dict(zip(names, normalized, strict=True))


RUNNERS: Final[Mapping[str, Runner]] = {
    **{name: plugin_runner(name) for name in PLUGINS},
    "InterPodAffinity": Runner(_interpodaffinity_expected, _interpodaffinity_response),
}


_COMBINED: Final = Runner(combined_expected, combined_response)


def run(lines: Iterable[Line], results: Results) -> None:
    """Run every plugin that the cases speak of."""
    for line in lines:
        case = line.content
        loaded = cache(partial(_mirror, line))  # once for all plugins
        for name in ("InterPodAffinity", *case["expected"].get("plugins", {})):
            if name in RUNNERS:
                results.add(name, f"{case['name']} ({line.place})", _differences(RUNNERS[name], case, loaded))
            else:
                results.left_out[f"{name} (no runner)"] += 1
        if "combined" in case["expected"]:
            results.add("combined", f"{case['name']} ({line.place})", _differences(_COMBINED, case, loaded))


def _mirror(line: Line) -> ClusterMirror:
    case = line.content
    mirror = load(case["namespaces"], case["nodes"], case["pods"], rules=line.rules)
    for member, kind in _OTHERS.items():
        for each in case.get(member, ()):
            mirror.apply(ClusterEvent("Add", RESOURCES[kind].decode(msgspec.json.encode(each))))
    return mirror


def _differences(runner: Runner, case: Members, loaded: Callable[[], ClusterMirror]) -> list[Difference]:
    expected = runner.expected(case)
    try:
        got = runner.response(loaded(), case)
    except Exception as error:  # noqa: BLE001 - whatever the engine raises is its answer to this case, a wrong one
        return [Difference("answer", dict(expected), error)]
    return differences(expected, got)
