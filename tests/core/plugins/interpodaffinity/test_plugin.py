"""The plugin's arguments, and what its Pre extension points answer before any node is looked at."""

from collections.abc import Sequence
from typing import Final

import pytest

from core.events import ClusterEvent
from core.framework.status import SKIP, SUCCESS, Code, Status
from core.objects.namespace import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from tests.builders import Object, PodBuilder, expressed, labelled, make_namespace, make_node, make_pod, term
from tests.core.decoded import mirror_of, node_of, pod_of
from tests.core.plugins.cached_answers import assert_cached_verdicts_are_fresh

NODES: Final = [make_node("n1").label("zone", "a"), make_node("n2").label("zone", "b"), make_node("bare")]
WEB: Final = make_pod("web").label("app", "web")
PICKY: Final = make_pod("picky")
BY_ZONE: Final = term("zone", labelled(app="web"))
BY_RACK: Final = term("rack", labelled(app="web"))
ELSEWHERE: Final = term("zone", labelled(app="none"))


def pre_filter(pods: Sequence[PodBuilder], incoming: PodBuilder) -> Status:
    status, state = InterPodAffinity().pre_filter(mirror_of(*NODES, make_namespace("default"), *pods), pod_of(incoming))
    assert (state is not None) is (status == SUCCESS)
    return status


def pre_score(pods: Sequence[PodBuilder], incoming: PodBuilder, **args: int) -> Status:
    plugin = InterPodAffinity(
        hard_pod_affinity_weight=args.get("hard", 1), ignore_preferred_terms_of_existing_pods=bool(args.get("ignore"))
    )
    status, state = plugin.pre_score(mirror := mirror_of(*NODES, *pods), pod_of(incoming), mirror.batch([]))
    assert (state is not None) is (status == SUCCESS)
    return status


def test_the_plugin_has_upstream_s_name() -> None:
    assert InterPodAffinity().name == "InterPodAffinity"


def test_the_plugin_reads_nodes_pods_and_namespaces() -> None:
    assert InterPodAffinity().kinds == (Node, Pod, Namespace)


def test_a_plugin_without_arguments_has_the_defaults_of_upstream() -> None:
    mirror = mirror_of(
        *NODES, PICKY.required_affinity(BY_ZONE).on("n1"), PICKY.preferred_affinity(7, BY_ZONE).uid("2").on("n2")
    )
    plugin = InterPodAffinity()
    _, state = plugin.pre_score(mirror, pod_of(WEB), mirror.batch([]))
    assert state is not None
    assert plugin.score(state, mirror.batch(["n1", "n2"])).tolist() == [1, 7]


@pytest.mark.parametrize("weight", [0, 1, 100])
def test_a_hard_weight_in_range_is_accepted(weight: int) -> None:
    InterPodAffinity(hard_pod_affinity_weight=weight)


@pytest.mark.parametrize("weight", [-1, 101])
def test_a_hard_weight_out_of_range_is_refused_by_its_upstream_name(weight: int) -> None:
    with pytest.raises(ValueError, match=rf"^hardPodAffinityWeight: must be 0\.\.100, got {weight}$"):
        InterPodAffinity(hard_pod_affinity_weight=weight)


@pytest.mark.parametrize(
    ("pods", "incoming", "expected"),
    [
        pytest.param([], WEB, SKIP, id="no-rules-at-all"),
        pytest.param([], WEB.required_affinity(BY_ZONE), SUCCESS, id="own-affinity"),
        pytest.param([], WEB.required_anti_affinity(BY_ZONE), SUCCESS, id="own-anti-affinity-though-it-meets-no-pod"),
        pytest.param([], WEB.preferred_affinity(1, BY_ZONE), SKIP, id="own-preferences-are-no-rules"),
        pytest.param(
            [PICKY.required_anti_affinity(BY_ZONE).on("n1")], WEB, SUCCESS, id="anti-affinity-of-an-existing-pod"
        ),
        pytest.param([PICKY.required_anti_affinity(ELSEWHERE).on("n1")], WEB, SKIP, id="that-does-not-match"),
        pytest.param([PICKY.required_anti_affinity(BY_RACK).on("n1")], WEB, SKIP, id="that-is-in-no-domain"),
        pytest.param(
            [PICKY.required_anti_affinity(BY_ZONE).on("bare")], WEB, SKIP, id="that-is-on-a-node-without-labels"
        ),
        pytest.param([PICKY.required_anti_affinity(BY_ZONE).on("unknown")], WEB, SKIP, id="that-is-on-an-unknown-node"),
        pytest.param([PICKY.required_anti_affinity(BY_ZONE).on("n1").phase("Failed")], WEB, SKIP, id="that-has-ended"),
        pytest.param([PICKY.required_affinity(BY_ZONE).on("n1")], WEB, SKIP, id="affinity-of-an-existing-pod"),
    ],
)
def test_the_filter_is_skipped_where_no_rule_applies(
    pods: Sequence[PodBuilder], incoming: PodBuilder, expected: Status
) -> None:
    assert expected == pre_filter(pods, incoming)


@pytest.mark.parametrize(
    ("pods", "incoming", "expected"),
    [
        pytest.param([WEB.on("n1")], WEB, SKIP, id="no-preferences-at-all"),
        pytest.param([WEB.on("n1")], PICKY.preferred_affinity(1, BY_ZONE), SUCCESS, id="own-preference"),
        pytest.param([], PICKY.preferred_affinity(1, BY_ZONE), SKIP, id="own-preference-that-meets-no-pod"),
        pytest.param([WEB.on("n1")], PICKY.preferred_affinity(1, BY_RACK), SKIP, id="own-preference-in-no-domain"),
        pytest.param([WEB.on("n1")], PICKY.preferred_affinity(0, BY_ZONE), SUCCESS, id="own-preference-of-weight-zero"),
        pytest.param(
            [WEB.on("n1")],
            PICKY.preferred_affinity(9, BY_ZONE).preferred_anti_affinity(9, BY_ZONE),
            SUCCESS,
            id="own-preferences-that-cancel",
        ),
        pytest.param([PICKY.preferred_affinity(1, BY_ZONE).on("n1")], WEB, SUCCESS, id="preference-of-an-existing-pod"),
        pytest.param(
            [PICKY.required_affinity(BY_ZONE).on("n1")], WEB, SUCCESS, id="required-affinity-of-an-existing-pod"
        ),
        pytest.param(
            [PICKY.required_anti_affinity(BY_ZONE).on("n1")], WEB, SKIP, id="anti-affinity-of-an-existing-pod"
        ),
        pytest.param([PICKY.preferred_affinity(1, ELSEWHERE).on("n1")], WEB, SKIP, id="preference-that-does-not-match"),
    ],
)
def test_scoring_is_skipped_where_nothing_was_counted(
    pods: Sequence[PodBuilder], incoming: PodBuilder, expected: Status
) -> None:
    assert expected == pre_score(pods, incoming)


def test_a_hard_weight_of_zero_skips_required_affinity_of_existing_pods() -> None:
    pods = [PICKY.required_affinity(BY_ZONE).on("n1")]
    assert (pre_score(pods, WEB, hard=100), pre_score(pods, WEB, hard=0)) == (SUCCESS, SKIP)


@pytest.mark.parametrize(
    ("incoming", "expected"),
    [
        pytest.param(WEB, SKIP, id="without-preferences"),
        pytest.param(WEB.required_affinity(BY_ZONE), SKIP, id="with-rules-only"),
        pytest.param(WEB.preferred_affinity(1, ELSEWHERE), SUCCESS, id="with-a-preference-that-meets-no-pod"),
        pytest.param(WEB.preferred_anti_affinity(1, ELSEWHERE), SUCCESS, id="with-a-preference-against"),
    ],
)
def test_preferences_of_existing_pods_are_ignored_only_for_pods_without_their_own(
    incoming: PodBuilder, expected: Status
) -> None:
    pods = [PICKY.preferred_affinity(1, BY_ZONE).required_affinity(BY_ZONE).on("n1")]
    assert (SUCCESS, expected) == (pre_score(pods, incoming), pre_score(pods, incoming, ignore=1))


BROKEN: Final = term("zone", expressed("app", "In"))
BROKEN_TEXT: Final = "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"


@pytest.mark.parametrize(
    ("incoming", "expected"),
    [
        pytest.param(WEB.required_affinity(BROKEN), f"requiredAffinityTerms: {BROKEN_TEXT}", id="affinity"),
        pytest.param(
            WEB.required_anti_affinity(BROKEN), f"requiredAntiAffinityTerms: {BROKEN_TEXT}", id="anti-affinity"
        ),
        pytest.param(WEB.preferred_affinity(1, BROKEN), f"preferredAffinityTerms: {BROKEN_TEXT}", id="preference"),
        pytest.param(
            WEB.preferred_anti_affinity(1, BROKEN),
            f"preferredAntiAffinityTerms: {BROKEN_TEXT}",
            id="preference-against",
        ),
        pytest.param(
            WEB.preferred_affinity(1, BROKEN).required_anti_affinity(BY_ZONE, BROKEN).required_affinity(BY_ZONE),
            f"[requiredAntiAffinityTerms: {BROKEN_TEXT}, preferredAffinityTerms: {BROKEN_TEXT}]",
            id="two-lists-among-good-ones",
        ),
        pytest.param(
            WEB.required_affinity(term("zone", labelled(), namespace_selector=expressed("team", "Near"))),
            'requiredAffinityTerms: "Near" is not a valid label selector operator',
            id="namespace-selector",
        ),
    ],
)
def test_a_pod_with_broken_terms_is_refused_everywhere_with_the_text_of_upstream(
    incoming: PodBuilder, expected: str
) -> None:
    refusal = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (f"parsing pod: {expected}",))
    assert (refusal, refusal) == (pre_filter([], incoming), pre_score([WEB.on("n1")], incoming))


@pytest.mark.parametrize("broken", [BROKEN, term("zone", expressed("app", "Exists", "x"))], ids=["in", "exists"])
def test_broken_terms_of_an_existing_pod_refuse_nobody(broken: Object) -> None:
    assert pre_filter([PICKY.required_anti_affinity(broken, BY_ZONE).on("n1")], WEB) == SKIP


def test_the_extension_points_together_filter_and_score() -> None:
    mirror = mirror_of(*NODES, WEB.on("n1"), WEB.uid("2").on("n2"), WEB.uid("3").on("n2"))
    plugin, batch = InterPodAffinity(), mirror.batch(["n1", "n2", "bare"])
    pod = pod_of(PICKY.required_affinity(BY_ZONE).preferred_anti_affinity(10, BY_ZONE))
    _, filter_state = plugin.pre_filter(mirror, pod)
    _, score_state = plugin.pre_score(mirror, pod, mirror.batch([]))
    assert filter_state is not None
    assert score_state is not None
    verdicts = plugin.filter(filter_state, batch)
    assert [verdicts.status(position).code for position in range(3)] == [
        Code.SUCCESS,
        Code.SUCCESS,
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
    ]
    raw = plugin.score(score_state, batch)
    assert (raw.tolist(), plugin.normalize(raw).tolist()) == ([-10, -20, 0], [50, 0, 100])


def test_a_cached_verdict_follows_the_namespace_that_made_the_pod_the_first_of_its_kind() -> None:
    of_team = term("zone", labelled(app="web"), namespace_selector=labelled(team="red"))
    own = [Namespace("default", {"team": team}) for team in ("red", "blue", "red")]
    objects: list[Node | Namespace] = [*map(node_of, NODES), *own]
    events = [ClusterEvent("Update", each) for each in objects]
    assert_cached_verdicts_are_fresh(InterPodAffinity(), events, [pod_of(WEB.required_affinity(of_team))])
