"""Every transition of a pod's states, the forbidden ones too: each state in which a pod can be, and all that may come.

The diagram is ClusterMirror's.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

import pytest
from msgspec.structs import replace

from core.events import Action
from core.mirror.cluster import ClusterMirror
from core.mirror.placement import PodState, PodStateCounts, PodStateError, PodTransition
from tests.core.mirror.audit import audit
from tests.core.mirror.values import mirror_of, node, pod, tell

TTL: Final = 30.0
P: Final = pod("p", cpu=5)
ON_NA: Final = pod("p", "na", cpu=5)
ON_NB: Final = pod("p", "nb", cpu=5)
ON_UNKNOWN: Final = pod("p", "unknown", cpu=5)
ENDED: Final = pod("p", "na", ended=True)
ENDED_UNASSIGNED: Final = pod("p", ended=True)

INITIAL, ASSUMED, ADDED = PodState.INITIAL, PodState.ASSUMED, PodState.ADDED
DELETED = PodState.DELETED

Told: TypeAlias = tuple[PodState, PodState, str, str]  # from, to, from node, to node


class Held(NamedTuple):
    """How the mirror has the pod: assumed or added, or None, and on which node."""

    state: PodState | None
    on: str = ""


class Outcome(NamedTuple):
    """What comes of an operation: where the pod is then, what is counted and told, or the error."""

    held: Held
    counted: str = ""
    told: Told | None = None
    error: str = ""


NOT_HELD: Final = Held(None)
ASSUMED_NA: Final = Held(ASSUMED, "na")
ADDED_NA: Final = Held(ADDED, "na")
ADDED_NB: Final = Held(ADDED, "nb")
ADDED_UNKNOWN: Final = Held(ADDED, "unknown")


def end_by_expiry(mirror: ClusterMirror) -> None:
    mirror.assume(P, "na", 0.0)
    mirror.finish_binding("p", 0.0)
    assert mirror.expire(TTL + 1) == [ON_NA]


def forget_assumed(mirror: ClusterMirror) -> None:
    mirror.assume(P, "na", 0.0)
    mirror.forget("p")


def bind(mirror: ClusterMirror) -> None:
    mirror.assume(P, "na", 0.0)
    mirror.finish_binding("p", 0.0)


def delete_added(mirror: ClusterMirror) -> None:
    tell(mirror, "Add", ON_NA)
    tell(mirror, "Delete", ON_NA)


def confirm(mirror: ClusterMirror) -> None:
    bind(mirror)
    tell(mirror, "Update", ON_NA)


# How a pod comes into each state -> where it is then.
STATES: Final[Mapping[str, tuple[Callable[[ClusterMirror], object], Held]]] = {
    "initial": (lambda _: None, NOT_HELD),
    "forgotten": (forget_assumed, NOT_HELD),
    "expired": (end_by_expiry, NOT_HELD),
    "deleted": (delete_added, NOT_HELD),
    "assumed": (lambda mirror: mirror.assume(P, "na", 0.0), ASSUMED_NA),
    "bound": (bind, ASSUMED_NA),
    "added": (lambda mirror: tell(mirror, "Add", ON_NA), ADDED_NA),
    "confirmed": (confirm, ADDED_NA),
}

OPERATIONS: Final[Mapping[str, Callable[[ClusterMirror], object]]] = {
    "assume": lambda mirror: mirror.assume(P, "na", 0.0),
    "assume-elsewhere": lambda mirror: mirror.assume(P, "nb", 0.0),
    "assume-nowhere": lambda mirror: mirror.assume(P, "", 0.0),
    "assume-an-ended-one": lambda mirror: mirror.assume(ENDED_UNASSIGNED, "na", 0.0),
    "finish-binding": lambda mirror: mirror.finish_binding("p", 0.0),
    "forget": lambda mirror: mirror.forget("p"),
    "expire-in-time": lambda mirror: mirror.expire(TTL),
    "expire-late": lambda mirror: mirror.expire(TTL + 1),
    "add-there": lambda mirror: tell(mirror, "Add", ON_NA),
    "update-there": lambda mirror: tell(mirror, "Update", ON_NA),
    "add-elsewhere": lambda mirror: tell(mirror, "Add", ON_NB),
    "update-elsewhere": lambda mirror: tell(mirror, "Update", ON_NB),
    "add-on-unknown-node": lambda mirror: tell(mirror, "Add", ON_UNKNOWN),
    "add-unassigned": lambda mirror: tell(mirror, "Add", P),
    "update-unassigned": lambda mirror: tell(mirror, "Update", P),
    "update-ended": lambda mirror: tell(mirror, "Update", ENDED),
    "update-ended-unassigned": lambda mirror: tell(mirror, "Update", ENDED_UNASSIGNED),
    "delete": lambda mirror: tell(mirror, "Delete", ON_NA),
    "delete-elsewhere": lambda mirror: tell(mirror, "Delete", ON_NB),
    "delete-unassigned": lambda mirror: tell(mirror, "Delete", P),
    "delete-ended": lambda mirror: tell(mirror, "Delete", ENDED),
}

NOTHING_IN: Final = Outcome(NOT_HELD)
FROM_NOT_HELD: Final[Mapping[str, Outcome]] = {
    "assume": Outcome(ASSUMED_NA, "assumed"),
    "assume-elsewhere": Outcome(Held(ASSUMED, "nb"), "assumed"),
    "assume-nowhere": Outcome(NOT_HELD, error=r"pod default/p \(p\) cannot be assumed on no node"),
    "assume-an-ended-one": Outcome(NOT_HELD, error=r"pod default/p \(p\) has ended and cannot be assumed on na"),
    "forget": Outcome(NOT_HELD, error="pod p is not in the mirror and cannot be forgotten"),
    "add-there": Outcome(ADDED_NA),
    "update-there": Outcome(ADDED_NA),
    "add-elsewhere": Outcome(ADDED_NB),
    "update-elsewhere": Outcome(ADDED_NB),
    "add-on-unknown-node": Outcome(ADDED_UNKNOWN),
    "delete": Outcome(NOT_HELD, "unknown_deletes", (INITIAL, DELETED, "", "")),
    "delete-elsewhere": Outcome(NOT_HELD, "unknown_deletes", (INITIAL, DELETED, "", "")),
    **dict.fromkeys(
        (
            "finish-binding",
            "expire-in-time",
            "expire-late",
            "add-unassigned",
            "update-unassigned",
            "update-ended",
            "update-ended-unassigned",
            "delete-unassigned",
            "delete-ended",
        ),
        NOTHING_IN,
    ),
}

ASSUMED_TWICE: Final = r"pod default/p \(p\) is Assumed on na and cannot be assumed on "
CONFIRMED: Final = Outcome(ADDED_NA, "confirmed", (ASSUMED, ADDED, "na", "na"))
MISMATCH: Final = Outcome(ADDED_NB, "mismatches", (ASSUMED, ADDED, "na", "nb"))
GONE_EARLY: Final = Outcome(NOT_HELD, "deleted_while_assumed", (ASSUMED, DELETED, "na", ""))
FROM_ASSUMED: Final[Mapping[str, Outcome]] = {
    "assume": Outcome(ASSUMED_NA, error=ASSUMED_TWICE + "na"),
    "assume-elsewhere": Outcome(ASSUMED_NA, error=ASSUMED_TWICE + "nb"),
    "assume-nowhere": Outcome(ASSUMED_NA, error=ASSUMED_TWICE + "no node"),
    "assume-an-ended-one": Outcome(ASSUMED_NA, error=ASSUMED_TWICE + "na"),
    "finish-binding": Outcome(ASSUMED_NA),
    "forget": Outcome(NOT_HELD, "forgotten"),
    "expire-in-time": Outcome(ASSUMED_NA),
    "expire-late": Outcome(ASSUMED_NA),
    "add-there": CONFIRMED,
    "update-there": CONFIRMED,
    "add-elsewhere": MISMATCH,
    "update-elsewhere": MISMATCH,
    "add-on-unknown-node": Outcome(ADDED_UNKNOWN, "mismatches", (ASSUMED, ADDED, "na", "unknown")),
    "add-unassigned": Outcome(ASSUMED_NA),
    "update-unassigned": Outcome(ASSUMED_NA),
    **dict.fromkeys(
        (
            "update-ended",
            "update-ended-unassigned",
            "delete",
            "delete-elsewhere",
            "delete-unassigned",
            "delete-ended",
        ),
        GONE_EARLY,
    ),
}
FROM_BOUND: Final = {**FROM_ASSUMED, "expire-late": Outcome(NOT_HELD, "expired")}

ADDED_ALREADY: Final = r"pod default/p \(p\) is Added on na and cannot be "
MOVED: Final = Outcome(ADDED_NB, "moves", (ADDED, ADDED, "na", "nb"))
FROM_ADDED: Final[Mapping[str, Outcome]] = {
    "assume": Outcome(ADDED_NA, error=ADDED_ALREADY + "assumed on na"),
    "assume-elsewhere": Outcome(ADDED_NA, error=ADDED_ALREADY + "assumed on nb"),
    "assume-nowhere": Outcome(ADDED_NA, error=ADDED_ALREADY + "assumed on no node"),
    "assume-an-ended-one": Outcome(ADDED_NA, error=ADDED_ALREADY + "assumed on na"),
    "forget": Outcome(ADDED_NA, error=ADDED_ALREADY + "forgotten"),
    "add-elsewhere": MOVED,
    "update-elsewhere": MOVED,
    "add-on-unknown-node": Outcome(ADDED_UNKNOWN, "moves", (ADDED, ADDED, "na", "unknown")),
    **dict.fromkeys(
        ("finish-binding", "expire-in-time", "expire-late", "add-there", "update-there"), Outcome(ADDED_NA)
    ),
    **dict.fromkeys(
        (
            "add-unassigned",
            "update-unassigned",
            "update-ended",
            "update-ended-unassigned",
            "delete",
            "delete-elsewhere",
            "delete-unassigned",
            "delete-ended",
        ),
        NOTHING_IN,
    ),
}

TABLE: Final = {
    **dict.fromkeys(("initial", "forgotten", "expired", "deleted"), FROM_NOT_HELD),
    "assumed": FROM_ASSUMED,
    "bound": FROM_BOUND,
    "added": FROM_ADDED,
    "confirmed": FROM_ADDED,
}


def in_state(state: str) -> ClusterMirror:
    mirror = mirror_of(node("na", cpu=100), node("nb", cpu=100))
    make, held = STATES[state]
    make(mirror)
    check(mirror, held)
    return mirror


def check(mirror: ClusterMirror, held: Held) -> None:
    """Compare all that the mirror says of the pod, and that its places are counted."""
    found = mirror.get_pod("p")
    assert held.on == ("" if found is None else found.node_name)
    assert (held.state is not None, held.state is ASSUMED) == (mirror.is_mirrored("p"), mirror.is_assumed("p"))
    assert mirror.pod_count() == (held.state is not None)
    assert set(mirror.assumed) == ({"p"} if held.state is ASSUMED else set())
    on_node = {name: info.requested.guaranteed for name, info in mirror.nodes.infos.items() if info.rows}
    assert on_node == ({held.on: {"cpu": 5, "pods": 1}} if held.on else {})
    assert audit(mirror) == []


def counts(mirror: ClusterMirror) -> dict[str, int]:
    return {name: getattr(mirror.pod_states, name) for name in PodStateCounts.__slots__}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("state", STATES)
def test_whatever_comes_in_a_state_leads_to_the_state_of_the_table(state: str, operation: str) -> None:
    mirror = in_state(state)
    before, outcome = counts(mirror), TABLE[state][operation]
    generation = mirror.generation
    if outcome.error:
        with pytest.raises(PodStateError, match=f"^{outcome.error}$"):
            OPERATIONS[operation](mirror)
        assert mirror.generation == generation
    else:
        result = OPERATIONS[operation](mirror)
        if isinstance(result, PodTransition) or outcome.told is not None:
            assert isinstance(result, PodTransition)
            told = (result.from_state, result.to_state, result.from_node, result.to_node)
            assert (outcome.told, "p", "default/p") == (told, result.uid, result.pod)
    check(mirror, outcome.held)
    assert {**before, **({outcome.counted: before[outcome.counted] + 1} if outcome.counted else {})} == counts(mirror)


@pytest.mark.parametrize("state", STATES)
def test_the_table_has_every_operation_in_every_state(state: str) -> None:
    assert OPERATIONS.keys() == TABLE[state].keys()


def test_all_that_is_counted_is_in_the_table() -> None:
    counted = {outcome.counted for outcomes in TABLE.values() for outcome in outcomes.values()} - {""}
    assert counted == set(PodStateCounts.__slots__)


def test_an_assumed_pod_is_held_as_it_was_given_with_its_node() -> None:
    mirror = ClusterMirror()
    assert mirror.assume(P, "na", 1.0) == ON_NA == mirror.get_pod("p")
    assert (mirror.assumed["p"].pod, mirror.assumed["p"].assumed_at, mirror.assumed["p"].deadline) == (ON_NA, 1.0, None)
    mirror.finish_binding("p", 3.0)
    assert mirror.assumed["p"].deadline == 33.0


def test_an_unassigned_pod_s_event_leaves_the_assumed_one_as_it_was_assumed() -> None:
    mirror = mirror_of(node("na", cpu=10))
    assumed = mirror.assume(P, "na", 0.0)
    generation = mirror.generation
    tell(mirror, "Update", replace(P, labels={}, requests={}, best_effort=True, resource_version="9"))
    assert mirror.get_pod("p") is assumed
    assert mirror.generation == generation


def test_the_ttl_is_the_mirror_s() -> None:
    mirror = ClusterMirror(assumed_pod_ttl=5.0)
    mirror.assume(P, "na", 0.0)
    mirror.finish_binding("p", 10.0)
    assert mirror.expire(15.0) == []
    assert mirror.expire(15.1) == [ON_NA]


def test_a_confirmed_pod_does_not_expire_and_an_expired_one_may_still_be_confirmed() -> None:
    mirror = in_state("confirmed")
    assert mirror.expire(1e9) == []
    mirror = in_state("expired")
    assert tell(mirror, "Add", ON_NA) is None
    assert (mirror.is_assumed("p"), mirror.is_mirrored("p"), mirror.expire(1e9)) == (False, True, [])


def test_a_pod_of_the_same_name_and_another_uid_is_another_pod() -> None:
    mirror = in_state("assumed")
    again = replace(pod("q", "nb"), name="p")
    assert tell(mirror, "Add", again) is None
    assert tell(mirror, "Delete", again) is None
    assert mirror.is_assumed("p")
    mirror.assume(replace(again, node_name=""), "na", 0.0)
    mirror.forget("p")
    assert (mirror.is_assumed("p"), mirror.is_assumed("q"), audit(mirror)) == (False, True, [])


@pytest.mark.parametrize("action", ["Add", "Update"])
def test_an_ordinary_event_tells_nothing(action: Action) -> None:
    mirror = in_state("added")
    assert tell(mirror, action, replace(ON_NA, resource_version="7")) is None
    assert mirror.get_pod("p") == replace(ON_NA, resource_version="7")


def test_what_is_assumed_cannot_be_written_from_outside() -> None:
    mirror = in_state("assumed")
    with pytest.raises(TypeError):
        del mirror.assumed["p"]  # type: ignore[attr-defined]  # that is what is tried
