"""Pods that take more work than allowed: refused with the field, and remembered by class. Others are not refused."""

import json
from typing import Any, Final

import pytest

from app.verbs.effects import RejectedNodes
from app.verbs.filter import NOBODY, Extender
from app.verbs.preempt import PreemptVerb
from app.verbs.request import Request, VerbOutcome, VerbResponse
from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import ClusterEvent
from core.mirror.affinity_counts import MatchCounters
from core.mirror.cluster import ClusterMirror
from core.mirror.work import WorkLimitError
from core.preemption import dry_run
from core.profile import full_profile
from tests.app.questions import ZONE, by_name, decoded, mirror_of, scores, shop
from tests.builders import PodBuilder, expressed, labelled, make_node, make_pod, term
from tests.core.decoded import pod_of
from tests.core.mirror.audit import match_counts
from tests.core.profile_parts import affinity_profile

NODES: Final = ("a1", "b1")
LIMIT: Final = 1_000_000
REASON: Final = "Pod.spec.affinity: too much work: 40 entries, "
FORTY: Final = [term(ZONE, expressed("app", "NotIn", f"other-{number}")) for number in range(40)]


def heavy(name: str = "heavy") -> PodBuilder:
    pod = make_pod(name).uid(name)
    for each in FORTY:
        pod = pod.required_anti_affinity(each)
    return pod


def heavy_to_score() -> PodBuilder:
    pod = make_pod("drawn").uid("drawn")
    for each in FORTY:
        pod = pod.preferred_affinity(1, each)
    return pod


class Setting:
    """An extender over the shop, with a limit that forty terms exceed, and how often counters were asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, mirror: ClusterMirror) -> None:
        self.mirror = mirror
        mirror.work.limit = LIMIT
        profile = affinity_profile()
        self.cache = EquivalenceCache(mirror, profile.plugins, CacheOptions(mode="spec"))
        self.extender = Extender(profile, mirror, self.cache)
        self.requested = 0
        plain = MatchCounters.of

        def counted(counters: MatchCounters, *args: Any) -> Any:  # noqa: ANN401 - whatever it is given, and gives
            self.requested += 1
            return plain(counters, *args)

        monkeypatch.setattr(MatchCounters, "of", counted)

    def filter(self, pod: PodBuilder, *, cached: bool = True) -> VerbResponse:
        return self.extender.filter(Request(by_name(pod, *NODES), cached=cached))


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Setting:
    return Setting(monkeypatch, shop())


@pytest.mark.parametrize("cached", [True, False])
def test_a_heavy_pod_is_refused_by_filter_with_the_field_and_the_numbers(setting: Setting, *, cached: bool) -> None:
    response = setting.filter(heavy(), cached=cached)
    assert response.outcome is VerbOutcome.TOO_MUCH_WORK
    assert decoded(response.body)["Error"] == response.error
    assert response.error.startswith(REASON)
    assert response.error.endswith(f" of {LIMIT} units")
    assert response.pod == "default/heavy"


def test_a_heavy_pod_leaves_no_counter_behind(setting: Setting) -> None:
    setting.filter(heavy())
    assert match_counts(setting.mirror) == {}


def test_a_pod_of_a_class_that_was_refused_costs_nothing(setting: Setting) -> None:
    first = setting.filter(heavy())
    requested = setting.requested
    again = setting.filter(heavy("twin"))
    assert (again.body, again.outcome) == (first.body, VerbOutcome.TOO_MUCH_WORK)
    assert requested == setting.requested


def test_other_pods_are_answered_as_before(setting: Setting) -> None:
    plain = make_pod("plain").uid("plain")
    before = setting.filter(plain).body
    setting.filter(heavy())
    assert before == setting.filter(plain).body


def test_a_refused_class_is_judged_again_when_the_cluster_has_shrunk(setting: Setting) -> None:
    setting.filter(heavy())
    setting.mirror.work.limit = None
    assert setting.filter(heavy()).outcome is VerbOutcome.TOO_MUCH_WORK
    gone = setting.mirror.get_pod(next(iter(setting.mirror.pods.rows)))
    assert gone is not None
    setting.mirror.apply(ClusterEvent("Delete", gone))
    assert setting.filter(heavy()).outcome is not VerbOutcome.TOO_MUCH_WORK


def test_a_pod_that_is_heavy_to_score_is_scored_as_neutral_and_filtered_as_ever(setting: Setting) -> None:
    assert setting.filter(heavy_to_score()).outcome is VerbOutcome.FIT
    for _ in range(2):
        response = setting.extender.prioritize(Request(by_name(heavy_to_score(), *NODES)))
        assert (scores(response.body), response.outcome) == ({"a1": 0, "b1": 0}, VerbOutcome.TOO_MUCH_WORK)
    assert setting.filter(heavy_to_score()).outcome is VerbOutcome.FIT


def test_preempt_offers_no_node_for_a_heavy_pod() -> None:
    mirror = mirror_of(make_node("n1").label(ZONE, "a"), make_pod("web").uid("u-web").label("app", "web").on("n1"))
    mirror.work.limit = LIMIT
    preempter = PreemptVerb(
        affinity_profile(),
        mirror,
        RejectedNodes(mirror, lambda: 0.0),
        offset=lambda _: 0,
        bypass=NOBODY,
    )
    victims = {"n1": {"Pods": [{"UID": "u-web"}], "NumPDBViolations": 0}}
    body = {"Pod": heavy().priority(10).obj(), "NodeNameToMetaVictims": victims}
    response = preempter.preempt(Request(json.dumps(body).encode()), None)
    assert (response.outcome, decoded(response.body)["NodeNameToMetaVictims"]) == (VerbOutcome.TOO_MUCH_WORK, {})
    assert response.error.startswith(REASON)


def test_the_shadow_check_charges_an_evaluation_once(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = Setting(monkeypatch, shop())
    setting.mirror.work.limit = None
    setting.filter(heavy(), cached=False)
    once = setting.mirror.work.spent
    profile = affinity_profile()
    fresh = Setting(monkeypatch, shop())
    fresh.mirror.work.limit = once
    options = CacheOptions(mode="spec", shadow_share=1.0)
    shadowed = Extender(profile, fresh.mirror, EquivalenceCache(fresh.mirror, profile.plugins, options))
    assert shadowed.filter(Request(by_name(heavy(), *NODES))).outcome is VerbOutcome.NO_FIT
    fresh.mirror.work.limit = once - 1
    other = heavy("other").label("another", "class")
    assert shadowed.filter(Request(by_name(other, *NODES))).outcome is VerbOutcome.NO_FIT, (
        "its counters are known by now"
    )


def test_a_dry_run_of_preemption_ends_at_ten_times_the_work_of_an_evaluation() -> None:
    victims = [make_pod(f"v{number}").uid(f"v{number}").label("app", "web").on("n1") for number in range(60)]
    mirror = mirror_of(make_node("n1").label(ZONE, "a"), *victims)
    pod = pod_of(heavy().priority(10))
    dry_run(mirror, affinity_profile().filters, pod, ["n1"])
    mirror.work.limit = LIMIT
    with pytest.raises(WorkLimitError, match=rf"^Pod.spec: too much work: 40 entries, \d+ of {10 * LIMIT} units"):
        dry_run(mirror, affinity_profile().filters, pod, ["n1"])
    few = pod_of(make_pod("few").priority(10).required_anti_affinity(FORTY[0]))
    assert len(dry_run(mirror, affinity_profile().filters, few, ["n1"])) == 1


def spread(number: int) -> PodBuilder:
    pod = make_pod("spread").uid("spread").label("app", "web")
    for each in range(number):
        pod = pod.spread(ZONE, labelled(app="web"), max_skew=1 + each)
    return pod


def selecting_nodes(number: int) -> PodBuilder:
    return make_pod("picky").uid("picky").node_selector({f"key-{each}": "x" for each in range(number)})


@pytest.mark.parametrize(
    ("pod", "field"),
    [
        pytest.param(spread(200), "Pod.spec.topologySpreadConstraints", id="spread"),
        pytest.param(selecting_nodes(200), "Pod.spec.affinity.nodeAffinity", id="node-selector"),
    ],
)
def test_every_plugin_that_a_pod_can_burden_charges_for_it(pod: PodBuilder, field: str) -> None:
    mirror = shop()
    mirror.work.limit = LIMIT
    response = Extender(full_profile(), mirror).filter(Request(by_name(pod, *NODES)))
    assert (response.outcome, response.error.partition(":")[0]) == (VerbOutcome.TOO_MUCH_WORK, field)
    mirror.work.limit = None
    assert (
        Extender(full_profile(), mirror).filter(Request(by_name(pod, *NODES))).outcome is not VerbOutcome.TOO_MUCH_WORK
    )


@pytest.mark.parametrize("pod", [spread(5), selecting_nodes(20)], ids=["spread", "node-selector"])
def test_ordinary_pods_are_not_charged_for_what_is_never_too_much(pod: PodBuilder) -> None:
    mirror = shop()
    mirror.work.limit = 1
    assert (
        Extender(full_profile(), mirror).filter(Request(by_name(pod, *NODES))).outcome is not VerbOutcome.TOO_MUCH_WORK
    )
