"""Explanations of all golden cases: verdicts and scores are the scheduler's, and the named pods make the counts."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.explained_profile import Judge, every_rule
from core.diagnosis.node_detail import NodeDetail, NodeTerm, node_detail
from core.diagnosis.summary import summary
from core.explaining.counted_terms import CountedPod, Direction, Effect, Rule
from core.framework.evaluation import FreshEvaluation
from core.mirror.cluster import ClusterMirror
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from core.profile import Profile
from core.scheduling_cycle import filter_nodes, score_nodes
from tests.conformance.combined_cases import combined_profile
from tests.conformance.engine import decoded_pod, load
from tests.conformance.golden_files import Members, read
from tests.depth import tries

CASES: Final = Path(__file__).parents[2] / "conformance" / "data" / "cases.jsonl.gz"
EVERY: Final = 10_000
"""More pods than any case has."""


@cache
def golden() -> list[Members]:
    return [line.content for line in read(CASES)]


PARTS: Final = 12
some_parts = pytest.mark.parametrize("number", range(min(PARTS, tries(default=2, full=PARTS))))


def part(number: int) -> Iterator[Members]:
    """Yield every twelfth case, so that a failure is found without all others."""
    yield from golden()[number::PARTS]


def affinity_of(case: Members) -> Profile:
    args = case.get("args") or {}
    plugin = InterPodAffinity(
        hard_pod_affinity_weight=args.get("hardPodAffinityWeight", 1),
        ignore_preferred_terms_of_existing_pods=args.get("ignorePreferredTermsOfExistingPods", False),
    )
    return Profile(filters=(plugin,), scores=((plugin, 1),))


def mirror_of(case: Members) -> ClusterMirror:
    return load(case["namespaces"], case["nodes"], case["pods"])


def names_of(case: Members) -> list[str]:
    return [node["metadata"]["name"] for node in case["nodes"]]


def explained(case: Members, mirror: ClusterMirror, *, score_all: bool = False) -> tuple[Diagnosis, list[NodeDetail]]:
    names = names_of(case)
    decision = Diagnosis(affinity_of(case), mirror, decoded_pod(case["pod"]), mirror.batch(names), score_all=score_all)
    return decision, [node_detail(decision, position, EVERY) for position in range(len(names))]


@some_parts
def test_verdicts_and_scores_are_the_schedulers(number: int) -> None:
    for case in part(number):
        expected = case["expected"]
        mirror = mirror_of(case)
        for way in ("feasible", "all"):
            _, details = explained(case, mirror, score_all=way == "all")
            reported = {each.node: {"code": each.code, "reasons": list(each.reasons)} for each in details}
            required = {
                node: {"code": verdict["code"], "reasons": list(verdict.get("reasons") or ())}
                for node, verdict in expected["filter"].items()
            }
            assert reported == required, case["name"]
            if expected[f"prescore_{way}"] != "Success":
                continue
            raw = {each.node: each.score_parts[0].raw for each in details if each.score_parts}
            assert raw == expected[f"raw_scores_{way}"], case["name"]
            assert {each.node: each.score for each in details if each.score is not None} == expected[
                f"normalized_{way}"
            ], case["name"]


@some_parts
def test_with_all_plugins_an_explanation_is_of_what_filter_and_prioritize_answer(number: int) -> None:
    for case in part(number):
        mirror, names, pod = mirror_of(case), names_of(case), decoded_pod(case["pod"])
        profile = combined_profile(case)
        decision = Diagnosis(profile, mirror, pod, mirror.batch(names))
        details = [node_detail(decision, position, 0) for position in range(len(names))]
        evaluation = FreshEvaluation(mirror, pod)
        verdicts = filter_nodes(profile, evaluation, mirror.batch(names))
        assert [(each.code, each.reasons) for each in details] == [
            (status.code.label, status.reasons) for status in map(verdicts.status, range(len(names)))
        ]
        feasible = [each.node for each in details if each.fits]
        assert feasible == list(case["expected"]["combined"]["feasible"]), case["name"]
        scores = score_nodes(profile, evaluation, mirror.batch(feasible)).tolist()
        assert [each.score for each in details if each.fits] == scores
        weights = sum(weight for _, weight in profile.scores)
        for each in details:
            if each.fits:
                assert each.score == sum(one.weight * one.normalized for one in each.score_parts) // weights
            first = next((one for one in each.predicates if one.code != "Success"), None)
            assert (each.plugin, each.code) == ((first.plugin, first.code) if first else ("", "Success"))


@some_parts
def test_a_service_that_serves_affinity_explains_every_plugins_verdict_on_every_node(number: int) -> None:
    judges = 0
    for case in part(number):
        mirror, names = mirror_of(case), names_of(case)
        decision = Diagnosis(every_rule(affinity_of(case)), mirror, decoded_pod(case["pod"]), mirror.batch(names))
        for position, name in enumerate(names):
            detail = node_detail(decision, position, 0)
            reported = {each.plugin: each for each in detail.predicates}
            for plugin, expected in case["expected"]["plugins"].items():
                if plugin not in reported:  # it only scores
                    continue
                assert (reported[plugin].code, reported[plugin].reasons) == _verdict_of(expected, name), (
                    case["name"],
                    plugin,
                )
                assert reported[plugin].judged_by is Judge.SCHEDULER
                judges += reported[plugin].code != "Success"
            assert reported["InterPodAffinity"].judged_by is Judge.KINDRED
            assert detail.fits is (name in case["expected"]["combined"]["feasible"])
            assert detail.answered is (case["expected"]["filter"][name]["code"] == "Success")
    assert judges > 10


def _verdict_of(expected: Members, node: str) -> tuple[str, tuple[str, ...]]:
    """Return what a plugin says of a node."""
    failed = expected.get("filter_failed", {}).get(node, {"code": "Success"})
    return failed["code"], tuple(failed.get("reasons") or ())


@some_parts
def test_the_terms_of_a_node_add_up_to_its_verdict_and_its_score(number: int) -> None:
    for case in part(number):
        if case["expected"]["prefilter"] not in {"Success", "Skip"}:
            continue
        decision, details = explained(case, mirror_of(case), score_all=True)
        for each in details:
            assert each.fits is not any(term.effect is Effect.BLOCKS for term in each.terms), case["name"]
            if each.score_parts[0].raw is not None:
                assert sum(term.adds for term in each.terms) == each.score_parts[0].raw, case["name"]
            for term in each.terms:
                assert len(term.named) == term.pods == len({pod.uid for pod in term.named})
        reported = summary(decision, EVERY)
        assert sum(each.nodes for each in reported.reasons) == len(details) - reported.fit
        for counted in reported.terms:
            assert counted.pods == sum(domain.pods for domain in counted.shown)


def blockers(detail: NodeDetail) -> list[CountedPod]:
    """Return the pods but for which the node would not be refused by anti-affinity."""
    return [pod for term in detail.terms if term.effect is Effect.BLOCKS for pod in term.named]


def wants(term: NodeTerm) -> bool:
    return (term.direction, term.rule) == (Direction.INCOMING, Rule.REQUIRED_AFFINITY)


@some_parts
def test_without_the_named_blockers_anti_affinity_refuses_no_node(number: int) -> None:
    looked_at = 0
    for case in part(number):
        mirror = mirror_of(case)
        _, details = explained(case, mirror)
        for position, each in enumerate(details):
            if any(term.effect is Effect.BLOCKS and wants(term) for term in each.terms):
                continue  # pods are missing there, none is too many
            doomed = {pod.uid: pod for pod in blockers(each)}
            with mirror.fork() as gone:
                for uid in doomed:
                    pod = mirror.get_pod(uid)
                    assert pod is not None
                    gone.remove(pod)
                _, then = explained(case, mirror)
                # A pod that is gone may have been what another term wanted; but nothing repels any more.
                assert not blockers(then[position]), case["name"]
                if doomed:
                    assert not any(term.effect is Effect.BLOCKS and not wants(term) for term in then[position].terms)
            looked_at += bool(doomed)
        assert [each.code for each in explained(case, mirror)[1]] == [each.code for each in details]
    assert looked_at > 10
