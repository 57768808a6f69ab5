"""The value of a node that snapshots share, and what it would be with other pods."""

from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.mirror.frozen_node_info import FrozenNodeInfo
from core.objects.affinity import NO_AFFINITY, PodAffinity, TermError
from core.objects.pod import Pod
from tests.core.mirror.values import ATTRACTED, REPELLING, mirror_of, node, pod

N: Final = node("n", cpu=100)


def frozen(*pods: Pod) -> FrozenNodeInfo:
    mirror = mirror_of(N, *pods)
    return mirror.nodes.frozen(mirror.nodes.infos["n"], mirror.pods.pods)


def content(info: FrozenNodeInfo) -> tuple[object, ...]:
    """Give all but the generation."""
    return (
        info.node,
        info.in_partition,
        dict(info.pods),
        set(info.pods_with_affinity),
        set(info.pods_with_required_anti_affinity),
        dict(info.guaranteed_requested),
        dict(info.best_effort_requested),
    )


def test_a_value_has_all_that_is_on_the_node() -> None:
    one, two = pod("1", "n", cpu=5), pod("2", "n")
    info = frozen(one, two)
    assert (info.name, info.node, info.in_partition) == ("n", N, True)
    assert info.pods == {"1": one, "2": two}
    assert (info.guaranteed_requested, info.best_effort_requested) == ({"cpu": 5, "pods": 1}, {"pods": 1})


@pytest.mark.parametrize(
    ("affinity", "any_term", "repelling"),
    [
        pytest.param(NO_AFFINITY, [], [], id="no-terms"),
        pytest.param(ATTRACTED, ["1"], [], id="preferred-affinity"),
        pytest.param(REPELLING, ["1"], ["1"], id="required-anti-affinity"),
        pytest.param(
            PodAffinity(errors=(TermError("requiredAffinityTerms", "", "broken"),)), ["1"], [], id="a-broken-term"
        ),
    ],
)
def test_pods_with_terms_stand_apart_as_well(
    affinity: PodAffinity, any_term: Sequence[str], repelling: Sequence[str]
) -> None:
    info = frozen(pod("1", "n", affinity=affinity), pod("2", "n"))
    assert any_term == list(info.pods_with_affinity)
    assert repelling == list(info.pods_with_required_anti_affinity)


@pytest.mark.parametrize("field", ["pods", "pods_with_affinity", "pods_with_required_anti_affinity"])
@pytest.mark.parametrize("supposed", [False, True], ids=["real", "supposed"])
def test_a_value_cannot_be_changed(field: str, supposed: bool) -> None:  # noqa: FBT001 - a table's column
    info = frozen(pod("1", "n", affinity=REPELLING, cpu=1), pod("2", "n"))
    if supposed:
        info = info.supposing([pod("3", "n", cpu=1)], {"2"})
    for name in (field, "guaranteed_requested", "best_effort_requested"):
        with pytest.raises(TypeError):
            getattr(info, name)["1"] = 0
    with pytest.raises(AttributeError):
        info.generation = 0  # type: ignore[misc]  # that is what is tried


def test_supposing_nothing_is_the_same_value_in_content() -> None:
    info = frozen(pod("1", "n", affinity=REPELLING, cpu=1), pod("2", "n"))
    assert info == info.supposing([], ())


def test_what_is_supposed_keeps_the_generation_and_leaves_the_real_value_alone() -> None:
    info = frozen(pod("1", "n", cpu=1))
    before = content(info)
    supposed = info.supposing([pod("2", "n", cpu=2)], {"1"})
    assert supposed.generation == info.generation
    assert before == content(info)
    assert supposed.pods == {"2": pod("2", "n", cpu=2)}


POOL: Final = (
    pod("0", "n", cpu=1),
    pod("1", "n", affinity=REPELLING, cpu=2, memory=3),
    pod("2", "n"),
    pod("3", "n", affinity=ATTRACTED),
    pod("4", "n", memory=5),
    pod("5", "n", affinity=REPELLING),
)


@given(st.sets(st.sampled_from(range(len(POOL)))), st.sets(st.sampled_from(range(len(POOL)))), st.data())
def test_what_is_supposed_is_the_value_of_a_node_where_it_is_so(
    real: set[int], more: set[int], data: st.DataObject
) -> None:
    there = real | more
    victims = data.draw(st.sets(st.sampled_from(sorted(there))) if there else st.just(set()))
    supposed = frozen(*(POOL[number] for number in real)).supposing(
        [POOL[number] for number in more - real], {str(number) for number in victims}
    )
    assert content(frozen(*(POOL[number] for number in there - victims))) == content(supposed)
