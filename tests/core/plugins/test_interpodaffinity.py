"""InterPodAffinity: its arguments, and its words for terms that could not be parsed."""

from collections.abc import Sequence
from typing import Final

import pytest

from core.framework.interface import SKIP, SUCCESS, Code, Status
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from tests.builders import Object, PodBuilder, expressed, labelled, make_namespace, make_node, make_pod, term
from tests.core.decoded import mirror_of, pod_of, tell

NODES: Final = [make_node("n1").label("zone", "a"), make_node("n2").label("zone", "b"), make_node("bare")]
WEB: Final = make_pod("web").label("app", "web")
PICKY: Final = make_pod("picky")
BY_ZONE: Final = term("zone", labelled(app="web"))


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


def test_a_plugin_without_arguments_has_the_defaults_of_upstream() -> None:
    mirror = mirror_of(
        *NODES, PICKY.required_affinity(BY_ZONE).on("n1"), PICKY.preferred_affinity(7, BY_ZONE).uid("2").on("n2")
    )
    plugin = InterPodAffinity()
    _, state = plugin.pre_score(mirror, pod_of(WEB), mirror.batch([]))
    assert state is not None
    assert plugin.score(state, mirror.batch(["n1", "n2"])).tolist() == [1, 7]


@pytest.mark.parametrize("weight", [-1, 101])
def test_a_hard_weight_out_of_range_is_refused_by_its_upstream_name(weight: int) -> None:
    with pytest.raises(ValueError, match=rf"^hardPodAffinityWeight: must be 0\.\.100, got {weight}$"):
        InterPodAffinity(hard_pod_affinity_weight=weight)


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
    rejection = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (f"parsing pod: {expected}",))
    assert (rejection, rejection) == (pre_filter([], incoming), pre_score([WEB.on("n1")], incoming))


@pytest.mark.parametrize("broken", [BROKEN, term("zone", expressed("app", "Exists", "x"))], ids=["in", "exists"])
def test_broken_terms_of_an_existing_pod_refuse_nobody(broken: Object) -> None:
    assert pre_filter([PICKY.required_anti_affinity(broken, BY_ZONE).on("n1")], WEB) == SKIP


def test_versions_follow_the_namespace_that_made_the_pod_the_first_of_its_kind() -> None:
    of_team = term("zone", labelled(app="web"), namespace_selector=labelled(team="red"))
    plugin, mirror, found = InterPodAffinity(), mirror_of(*NODES), []
    for team in ("red", "blue", "red"):
        tell(mirror, "Update", make_namespace("default").label("team", team))
        _, state = plugin.pre_filter(mirror, pod_of(WEB.required_affinity(of_team)))
        assert state is not None
        found.append((plugin.filter_versions(state)[0], state.judge(mirror.batch(["n1"])).status(0).code))
    assert found == [(True, Code.SUCCESS), (False, Code.UNSCHEDULABLE_AND_UNRESOLVABLE), (True, Code.SUCCESS)]
