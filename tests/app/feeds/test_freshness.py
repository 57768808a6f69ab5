"""How far the mirror is trusted."""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from app.feeds.freshness import OF_A_DUMP, Freshness, ResourceState, SyncStatus
from app.objects.resources import RESOURCES
from core.events import Kind, Missing
from core.objects.kinds import DeviceClass
from core.objects.node import Node
from core.objects.pod import Pod

KINDS: Final[tuple[Kind, ...]] = (Node, Pod)
RULE: Final = 'the RBAC rule that is missing: apiGroups: [""], resources: ["pods"], verbs: ["list", "watch"]'


def state_of(kind: Kind, followed_at: float | None) -> ResourceState:
    """Return the state of a resource that was followed then, or never synced."""
    state = ResourceState(RESOURCES[kind])
    if followed_at is not None:
        state.synced, state.followed_at = True, followed_at
    return state


@pytest.mark.parametrize(
    ("followed_at", "expected"),
    [
        pytest.param((60.0, None), SyncStatus.NOT_SYNCED, id="one-stale-one-not-synced"),
        pytest.param((60.0, 100.0), SyncStatus.STALE, id="one-stale"),
        pytest.param((70.0, 70.0), SyncStatus.FRESH, id="just-fresh"),
        pytest.param((69.9, 100.0), SyncStatus.STALE, id="just-stale"),
        pytest.param((), SyncStatus.FRESH, id="nothing-to-follow"),
    ],
)
def test_the_mirror_stands_as_its_worst_resource(followed_at: Sequence[float | None], expected: SyncStatus) -> None:
    states = [state_of(kind, at) for kind, at in zip(KINDS, followed_at, strict=False)]
    freshness = Freshness(states, 30.0, lambda: 100.0)
    assert freshness.status() is expected
    # Why is said exactly if there is something to say.
    assert bool(freshness.problems()) is (expected is not SyncStatus.FRESH)


def test_what_serves_explanations_alone_keeps_nothing_from_being_answered() -> None:
    state = ResourceState(RESOURCES[Pod], serves=False)
    state.forbidden, state.problem = True, "403"
    freshness = Freshness([state_of(Node, 100.0), state], 30.0, lambda: 100.0)
    assert (freshness.status(), freshness.problems()) == (SyncStatus.FRESH, [])
    assert freshness.missing_for_explanations() == {Pod: Missing(f"pods: not synced (403); {RULE}")}
    state.synced, state.followed_at = True, 80.0
    assert freshness.missing_for_explanations() == {}
    state.followed_at = 60.0
    assert freshness.missing_for_explanations() == {Pod: Missing(f"pods: stale for 40 s (403); {RULE}")}


def test_standing_and_problems_agree_where_floats_are_rounded() -> None:
    state = state_of(Pod, 0.1 + 0.2)
    for steps in range(-20, 20):
        freshness = Freshness([state], 0.1, lambda now=0.4 + steps * 2**-54: now)  # type: ignore[misc]  # mypy cannot infer a lambda with a default
        assert (freshness.status() is SyncStatus.FRESH) is (freshness.problems() == [])


def test_problems_say_what_is_wrong_and_what_would_help() -> None:
    stale, never = state_of(Node, 58.4), state_of(Pod, None)
    freshness = Freshness([stale, never], 30.0, lambda: 100.0)
    assert freshness.problems() == ["nodes: stale for 42 s", "pods: not synced"]
    stale.problem = "503 ServiceUnavailable"
    never.problem, never.forbidden = "403 Forbidden", True
    assert freshness.problems() == [
        "nodes: stale for 42 s (503 ServiceUnavailable)",
        f"pods: not synced (403 Forbidden); {RULE}",
    ]
    # A problem of a request is none of the mirror's as long as that is recent.
    stale.followed_at = 90.0
    assert len(freshness.problems()) == 1


class Reported(NamedTuple):
    """A resource of the mirror, in its state after a step."""

    number: int
    step: Literal["followed", "synced", "absent"]
    age: float


numbers = st.integers(0, 2)
steps: SearchStrategy[Reported | float | None] = st.one_of(
    st.builds(
        Reported,
        st.integers(0, 2),
        st.sampled_from(("followed", "synced", "absent")),
        st.sampled_from((0.0, 9.0, 50.0)),
    ),
    st.sampled_from((0.0, 0.1, 3.0, 10.0, 10.1)),  # seconds that pass
    st.none(),  # the release becomes known
)


def status_of_each(states: Sequence[ResourceState], now: float, *, release_known: bool) -> SyncStatus:
    """Return the worst status of all resources that requests need, by the rule for each of them."""
    found = [state.status(now, 10.0) for state in states if state.serves]
    if not release_known or SyncStatus.NOT_SYNCED in found:
        return SyncStatus.NOT_SYNCED
    return SyncStatus.STALE if SyncStatus.STALE in found else SyncStatus.FRESH


@given(st.lists(steps, max_size=40))
def test_the_status_is_at_every_time_that_of_the_worst_resource(sequence: Sequence[Reported | float | None]) -> None:
    now, release_known = 100.0, False
    states = [ResourceState(RESOURCES[Node]), ResourceState(RESOURCES[Pod]), ResourceState(RESOURCES[DeviceClass])]
    states[1].serves = bool(len(sequence) % 2)
    freshness = Freshness(states, 10.0, lambda: now, lambda: "" if release_known else "no response")
    for step in sequence:
        match step:
            case None:
                release_known = True
            case Reported(number, "followed", _) if not states[number].absent:
                states[number].followed_at = now
            case Reported(number, "synced", age):
                states[number].complete(now - age)
            case Reported(number, "absent", _):
                states[number].synced = states[number].absent = True
            case float():
                now += step
        assert freshness.status() is status_of_each(states, now, release_known=release_known)


def test_a_resource_that_was_absent_counts_from_the_begin_of_its_list() -> None:
    absent = ResourceState(RESOURCES[DeviceClass])
    absent.synced = absent.absent = True
    freshness = Freshness([state_of(Node, 100.0), absent], 30.0, lambda: 100.0)
    assert freshness.status() is SyncStatus.FRESH
    absent.complete(60.0)
    assert freshness.status() is SyncStatus.STALE


def test_a_dump_is_always_fresh() -> None:
    assert OF_A_DUMP.status() is SyncStatus.FRESH
    assert OF_A_DUMP.problems() == []
