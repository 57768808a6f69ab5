"""Plugin cases: each plugin with a runner is held against its part of a case, the others are left out by name."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from core.mirror.cluster import ClusterMirror
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from tests.conformance.engine import ask, load
from tests.conformance.golden_files import Line, Members
from tests.conformance.results import Difference, Results, differences
from tests.reference.answer import Answer


@dataclass(frozen=True, slots=True)
class Runner:
    """How one plugin is run: what the case expects of it, and what the engine answers, member by member."""

    expected: Callable[[Members], Members]
    answer: Callable[[ClusterMirror, Members], Members]


def _interpodaffinity_expected(case: Members) -> Members:
    return Answer.from_golden(case["expected"]).members()


def _interpodaffinity_answer(mirror: ClusterMirror, case: Members) -> Members:
    args = case.get("args") or {}
    plugin = InterPodAffinity(
        hard_pod_affinity_weight=args.get("hardPodAffinityWeight", 1),
        ignore_preferred_terms_of_existing_pods=args.get("ignorePreferredTermsOfExistingPods", False),
    )
    return ask(plugin, mirror, case["pod"], [node["metadata"]["name"] for node in case["nodes"]]).members()


RUNNERS: Final[Mapping[str, Runner]] = {
    "InterPodAffinity": Runner(_interpodaffinity_expected, _interpodaffinity_answer),
}


def run(lines: Iterable[Line], results: Results) -> None:
    """Run every plugin that the cases speak of."""
    for line in lines:
        case = line.content
        for name in ("InterPodAffinity", *case["expected"].get("plugins", {})):
            if name in RUNNERS:
                results.add(name, f"{case['name']} ({line.place})", _differences(RUNNERS[name], case))
            else:
                results.left_out[f"{name} (no runner)"] += 1
        if "combined" in case["expected"]:
            results.left_out["combined (feasible nodes and totals of all plugins together; no runner)"] += 1


def _differences(runner: Runner, case: Members) -> list[Difference]:
    expected = runner.expected(case)
    try:
        mirror = load(case["namespaces"], case["nodes"], case["pods"])
        got = runner.answer(mirror, case)
    except Exception as error:  # noqa: BLE001 - whatever the engine raises is its answer to this case, a wrong one
        return [Difference("answer", dict(expected), error)]
    return differences(expected, got)
