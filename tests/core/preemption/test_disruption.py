"""Whose eviction violates a budget (upstream default_preemption.go, filterPodsWithPDBViolation)."""

import pytest
from msgspec.structs import replace

from core.objects.kinds import PodDisruptionBudget
from core.objects.labels import EVERYTHING, NOTHING, parse_selector
from core.preemption import split_by_violation
from tests.builders import make_pod
from tests.core.decoded import pod_of

WEB = PodDisruptionBudget("default", "web", parse_selector({"app": "web"}, ()))
TIER = PodDisruptionBudget("default", "tier", parse_selector({"tier": "1"}, ()), disruptions_allowed=1)
PODS = [pod_of(make_pod(name).label("app", "web")) for name in ("a", "b", "c")]


def violating(*budgets: PodDisruptionBudget) -> list[str]:
    first, others = split_by_violation(PODS, budgets, stop_at_violation=False)
    assert sorted([*first, *others], key=PODS.index) == PODS
    return [pod.name for pod in first]


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        pytest.param(WEB, ["a", "b", "c"], id="nothing-allowed"),
        pytest.param(replace(WEB, disruptions_allowed=1), ["b", "c"], id="the-first-ones-use-it-up"),
        pytest.param(replace(WEB, disruptions_allowed=3), [], id="enough-allowed"),
        pytest.param(replace(WEB, disrupted_pods=frozenset({"b"})), ["a", "c"], id="disrupted-already"),
        pytest.param(
            replace(WEB, disruptions_allowed=1, disrupted_pods=frozenset({"a"})), ["c"], id="and-does-not-use-it-up"
        ),
        pytest.param(replace(WEB, namespace="other"), [], id="other-namespace"),
        pytest.param(replace(WEB, selector=EVERYTHING), [], id="empty-selector"),
        pytest.param(replace(WEB, selector=NOTHING), [], id="no-selector"),
        pytest.param(replace(WEB, selector=parse_selector({"app": "db"}, ())), [], id="other-labels"),
    ],
)
def test_a_pod_violates_a_budget_that_covers_it_and_is_used_up(
    budget: PodDisruptionBudget, expected: list[str]
) -> None:
    assert violating(budget) == expected


def test_a_pod_without_labels_is_covered_by_no_budget() -> None:
    without_app = parse_selector({}, [("app", "DoesNotExist", ())])
    bare, other = pod_of(make_pod("bare")), pod_of(make_pod("other").label("tier", "1"))
    assert split_by_violation([bare, other], [replace(WEB, selector=without_app)], stop_at_violation=False) == (
        [other],
        [bare],
    )


def test_a_pod_takes_from_every_budget_and_violates_if_any_is_used_up() -> None:
    tiered = [pod_of(make_pod(name).label("app", "web").label("tier", "1")) for name in ("x", "y")]
    roomy = replace(WEB, disruptions_allowed=9)
    first, others = split_by_violation([tiered[0], PODS[0], tiered[1]], [roomy, TIER], stop_at_violation=False)
    assert (first, others) == ([tiered[1]], [tiered[0], PODS[0]])


def test_since_1_37_a_pod_takes_nothing_from_the_budgets_after_the_one_that_it_violates() -> None:
    both = pod_of(make_pod("both").label("app", "web").label("tier", "1"))
    tier_only = pod_of(make_pod("tier").label("tier", "1"))
    pods, budgets = [both, tier_only], [WEB, TIER]
    assert split_by_violation(pods, budgets, stop_at_violation=False) == ([both, tier_only], [])
    assert split_by_violation(pods, budgets, stop_at_violation=True) == ([both], [tier_only])
    assert split_by_violation(pods, budgets[::-1], stop_at_violation=True) == ([both, tier_only], [])


def test_budgets_of_one_name_in_two_namespaces_are_two() -> None:
    elsewhere = replace(WEB, namespace="other", disruptions_allowed=2)
    assert violating(elsewhere, WEB) == ["a", "b", "c"]
