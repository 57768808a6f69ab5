"""The mirror as a whole: events in any order, repeated, missed and unexpected ones, and those that cost nothing."""

from itertools import permutations
from typing import Final, NoReturn

import pytest

from core.events import Action
from core.mirror.cluster import ClusterMirror
from core.objects.labels import NOTHING, parse_selector
from tests.builders import PodBuilder, labelled, make_namespace, make_node, make_pod, term
from tests.core.decoded import Builder, counter_of, matcher_of, mirror_of, node_of, pod_of, tell

WEB: Final = term("zone", labelled(app="web"))
N_A: Final = make_node("na").label("zone", "a")
N_B: Final = make_node("nb").label("zone", "b")
POD: Final = make_pod("p").label("app", "web").required_anti_affinity(WEB)


def web_pods(mirror: ClusterMirror) -> dict[str, int]:
    """Count the pods that WEB selects, per zone; the counter of the terms that they carry must agree."""
    matched = counter_of(mirror, (matcher_of(WEB),), "zone").by_value()
    owned = [counter.by_value() for counter in mirror.affinity.owners("default", {"app": "web"})]
    assert owned in ([], [matched])
    assert mirror.affinity.audit() == []
    return matched


def nothing_held(mirror: ClusterMirror) -> bool:
    return not (len(mirror.pods) or mirror.nodes.infos or mirror.affinity.owner_counts() or mirror.namespaces)


def refuse(*_: object) -> NoReturn:
    pytest.fail("counted again")


def test_pods_that_come_before_their_node_count_from_when_it_appears() -> None:
    mirror = mirror_of(POD.on("na"), POD.uid("2").on("na"), POD.uid("3").on("nb"))
    assert web_pods(mirror) == {}
    tell(mirror, "Add", N_A)
    assert web_pods(mirror) == {"a": 2}
    tell(mirror, "Add", N_B)
    assert web_pods(mirror) == {"a": 2, "b": 1}


def test_the_order_in_which_objects_come_does_not_matter() -> None:
    selecting = term("zone", labelled(), namespace_selector=labelled(team="red"))
    objects: list[Builder] = [
        N_A,
        N_B,
        POD.on("na"),
        POD.in_namespace("x").on("nb"),
        make_namespace("x").label("team", "red"),
    ]
    for order in permutations(objects):
        mirror = ClusterMirror()
        for builder in order:
            tell(mirror, "Add", builder)
            counter_of(mirror, (matcher_of(selecting),), "zone")
        assert web_pods(mirror) == {"a": 1}
        assert counter_of(mirror, (matcher_of(selecting),), "zone").by_value() == {"b": 1}


def test_pods_of_a_deleted_node_count_no_more_and_again_when_it_is_created_again() -> None:
    mirror = mirror_of(N_A, N_B, POD.on("na"), POD.uid("2").on("nb"))
    tell(mirror, "Delete", N_A)
    assert (web_pods(mirror), mirror.batch(["na", "nb"]).unknown) == ({"b": 1}, [0])
    tell(mirror, "Add", N_A.label("zone", "c"))
    assert (web_pods(mirror), mirror.batch(["na", "nb"]).unknown) == ({"b": 1, "c": 1}, [])


def test_a_slot_that_goes_to_another_node_takes_no_pods_along() -> None:
    mirror = mirror_of(N_A, POD.on("na"))
    slot = mirror.nodes.slots["na"]
    tell(mirror, "Delete", N_A)
    tell(mirror, "Add", make_node("other").label("zone", "c"))
    assert (slot, {}) == (mirror.nodes.slots["other"], web_pods(mirror))
    tell(mirror, "Add", N_A)
    assert web_pods(mirror) == {"a": 1}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(POD.on("nb"), {"b": 1}, id="moves"),
        pytest.param(POD.on("unknown"), {}, id="moves-to-an-unknown-node"),
        pytest.param(POD, {}, id="is-unbound"),
        pytest.param(POD.on("na").phase("Succeeded"), {}, id="succeeds"),
        pytest.param(POD.on("na").phase("Failed"), {}, id="fails"),
        pytest.param(POD.on("na").terminating(), {"a": 1}, id="is-terminating"),
        pytest.param(POD.on("na").phase("Running"), {"a": 1}, id="runs"),
        pytest.param(make_pod("p").on("na"), {}, id="loses-label-and-term"),
        pytest.param(
            make_pod("q").uid("default/p").in_namespace("x").label("app", "web").on("na"), {}, id="is-another"
        ),
    ],
)
@pytest.mark.parametrize("action", ["Add", "Update"])
def test_the_last_state_of_a_pod_is_what_counts(action: Action, pod: PodBuilder, expected: dict[str, int]) -> None:
    mirror = mirror_of(N_A, N_B, POD.on("na"))
    assert web_pods(mirror) == {"a": 1}
    tell(mirror, action, pod)
    assert expected == web_pods(mirror)
    tell(mirror, "Update", POD.on("na"))
    assert web_pods(mirror) == {"a": 1}


@pytest.mark.parametrize(
    ("pod", "selected", "owned"),
    [
        pytest.param(POD, {"a": 1}, {"a": 1}, id="nothing"),
        pytest.param(POD.label("app", "db"), {}, {"a": 1}, id="labels"),
        pytest.param(POD.without_label("app"), {}, {"a": 1}, id="no-labels"),
        pytest.param(POD.in_namespace("x"), {}, None, id="namespace-and-with-it-the-term"),
        pytest.param(make_pod("p").label("app", "web"), {"a": 1}, None, id="affinity"),
        pytest.param(
            POD.preferred_affinity(1, term("host", labelled(app="x"))), {"a": 1}, {"a": 1}, id="more-affinity"
        ),
    ],
)
def test_whatever_changes_of_a_pod_changes_what_is_counted(
    pod: PodBuilder, selected: dict[str, int], owned: dict[str, int] | None
) -> None:
    mirror = mirror_of(N_A, POD.on("na"))
    counter_of(mirror, (matcher_of(WEB),), "zone")
    tell(mirror, "Update", pod.uid("default/p").on("na"))
    owners = [counter.by_value() for counter in mirror.affinity.owners("default", {"app": "web"})]
    assert ([] if owned is None else [owned]) == owners
    assert selected == counter_of(mirror, (matcher_of(WEB),), "zone").by_value()
    assert mirror.affinity.audit() == []


def test_a_pod_without_terms_that_changes_its_namespace_alone_counts_there() -> None:
    mirror = mirror_of(N_A, make_pod("p").label("app", "web").on("na"))
    assert web_pods(mirror) == {"a": 1}
    tell(mirror, "Update", make_pod("p").uid("default/p").in_namespace("x").label("app", "web").on("na"))
    assert web_pods(mirror) == {}


@pytest.mark.parametrize("asked_first", [0, 1], ids=["asked-at-last", "asked-at-first"])
def test_more_nodes_than_columns_have_room_for_at_first_count_all_the_same(asked_first: int) -> None:
    mirror = mirror_of(*(POD.uid(str(number)).on(f"n{number}") for number in range(70)))
    assert [{}] * asked_first == [web_pods(mirror) for _ in range(asked_first)]
    tell(mirror, "Add", *(make_node(f"n{number}").label("zone", str(number % 35)) for number in range(70)))
    assert {str(zone): 2 for zone in range(35)} == web_pods(mirror)


def test_a_pod_of_an_unknown_node_counts_nowhere_even_if_all_slots_are_taken() -> None:
    mirror = mirror_of(*(make_node(f"n{number}").label("zone", "a") for number in range(16)))
    assert (web_pods(mirror), mirror.nodes.capacity) == ({}, 16)
    tell(mirror, "Add", POD.on("unknown"))
    assert web_pods(mirror) == {}
    tell(mirror, "Delete", POD)
    assert web_pods(mirror) == {}


def test_the_values_of_a_deleted_node_are_forgotten() -> None:
    mirror = mirror_of(N_A, N_B)
    column = counter_of(mirror, (matcher_of(WEB),), "zone").column
    tell(mirror, "Delete", N_A)
    assert set(column.ids) == {"b"}


def test_a_pod_that_moved_stays_on_its_new_node_when_the_old_one_goes() -> None:
    mirror = mirror_of(N_A, N_B, POD.on("na"))
    tell(mirror, "Update", POD.on("nb"))
    tell(mirror, "Delete", N_A)
    assert web_pods(mirror) == {"b": 1}
    assert set(mirror.nodes.infos) == {"nb"}


def test_a_relabelled_node_takes_its_pods_to_its_new_domain() -> None:
    mirror = mirror_of(N_A, N_B, POD.on("na"), POD.uid("2").on("na"), POD.uid("3").on("nb"))
    tell(mirror, "Update", N_A.label("zone", "b"))
    assert web_pods(mirror) == {"b": 3}
    tell(mirror, "Update", make_node("na"))
    assert web_pods(mirror) == {"b": 1}
    tell(mirror, "Add", N_A)
    assert web_pods(mirror) == {"a": 2, "b": 1}


def test_two_nodes_that_change_places_keep_their_pods() -> None:
    mirror = mirror_of(N_A, N_B, POD.on("na"), POD.uid("2").on("na"), POD.uid("3").on("nb"))
    assert web_pods(mirror) == {"a": 2, "b": 1}
    tell(mirror, "Update", N_A.label("zone", "b"), N_B.label("zone", "a"))
    assert web_pods(mirror) == {"a": 1, "b": 2}


def test_a_key_asked_for_after_a_node_was_relabelled_shows_its_present_labels() -> None:
    mirror = mirror_of(N_A, POD.on("na"))
    tell(mirror, "Update", N_A.label("rack", "1"))
    tell(mirror, "Update", N_A.label("rack", "2"))
    assert counter_of(mirror, (matcher_of(WEB),), "rack").by_value() == {"2": 1}


@pytest.mark.parametrize(
    "repeated",
    [
        pytest.param(POD.on("na"), id="pod"),
        pytest.param(POD.on("na").phase("Running"), id="pod-with-another-phase"),
        pytest.param(POD.on("na").terminating(), id="pod-with-a-deletion-timestamp"),
        pytest.param(N_A, id="node"),
        pytest.param(N_A.label("disk", "ssd"), id="node-with-a-label-that-no-term-names"),
        pytest.param(make_namespace("x").label("team", "red"), id="namespace"),
    ],
)
def test_an_update_that_changes_nothing_that_counts_is_free(monkeypatch: pytest.MonkeyPatch, repeated: Builder) -> None:
    mirror = mirror_of(N_A, POD.on("na"), make_namespace("x").label("team", "red"))
    assert web_pods(mirror) == {"a": 1}
    counter = counter_of(mirror, (matcher_of(WEB),), "zone")
    counts, slots, rows = counter.counts, dict(mirror.nodes.slots), dict(mirror.pods.rows)
    with monkeypatch.context() as patched:
        for method in ("count", "hold", "drop"):
            patched.setattr(mirror.affinity, method, refuse)
        patched.setattr(mirror.affinity.matches, "namespace_changed", refuse)
        tell(mirror, "Update", repeated)
        tell(mirror, "Add", repeated)
    assert (counts, slots, rows) == (counter.counts, mirror.nodes.slots, mirror.pods.rows)
    assert web_pods(mirror) == {"a": 1}


def test_a_node_keeps_the_labels_of_its_last_update_even_if_no_term_names_them() -> None:
    mirror = mirror_of(N_A)
    updated = N_A.label("disk", "ssd")
    tell(mirror, "Update", updated)
    assert [node_of(updated)] == [node for _, node in mirror.nodes]


def test_deleting_what_is_unknown_does_nothing() -> None:
    mirror = ClusterMirror()
    tell(mirror, "Delete", POD.on("na"), POD, N_A, make_namespace("x"))
    assert nothing_held(mirror)
    tell(mirror, "Add", N_A, POD.on("na"))
    tell(mirror, "Delete", POD.uid("2").on("na"), N_B, make_namespace("x"), make_node("unknown"))
    assert web_pods(mirror) == {"a": 1}


def test_deleting_a_node_that_only_pods_name_keeps_the_pods() -> None:
    mirror = mirror_of(POD.on("na"))
    tell(mirror, "Delete", N_A)
    tell(mirror, "Add", N_A)
    assert web_pods(mirror) == {"a": 1}


@pytest.mark.parametrize(
    "last_known",
    [
        pytest.param(POD.on("na"), id="as-it-was"),
        pytest.param(POD, id="without-its-node"),
        pytest.param(POD.on("nb").label("app", "db"), id="moved-and-relabelled-unseen"),
        pytest.param(POD.on("na").phase("Failed"), id="ended-unseen"),
    ],
)
def test_a_pod_is_deleted_as_the_mirror_knows_it(last_known: PodBuilder) -> None:
    mirror = mirror_of(N_A, N_B, POD.on("na"))
    assert web_pods(mirror) == {"a": 1}
    tell(mirror, "Delete", last_known)
    assert (web_pods(mirror), len(mirror.pods)) == ({}, 0)


def test_an_update_of_what_is_unknown_adds_it() -> None:
    mirror = ClusterMirror()
    tell(mirror, "Update", N_A, POD.on("na"), make_namespace("x").label("team", "red"))
    assert (web_pods(mirror), dict(mirror.namespaces)) == ({"a": 1}, {"x": {"team": "red"}})


def test_pods_without_a_node_and_ended_ones_are_not_held() -> None:
    mirror = mirror_of(POD, POD.uid("2").on("na").phase("Succeeded"), POD.uid("3").phase("Failed"))
    assert nothing_held(mirror)


def test_a_pod_is_known_by_its_uid_and_not_by_its_name() -> None:
    mirror = mirror_of(N_A, N_B, POD.uid("1").on("na"), POD.uid("2").on("nb"))
    assert web_pods(mirror) == {"a": 1, "b": 1}
    tell(mirror, "Delete", POD.uid("1").on("nb"))
    assert web_pods(mirror) == {"b": 1}


def test_nothing_is_held_when_all_objects_are_gone() -> None:
    objects: list[Builder] = [N_A, N_B, make_namespace("x"), POD.on("na"), POD.uid("2").on("unknown")]
    for order in (objects, objects[::-1]):
        mirror = mirror_of(*objects)
        web_pods(mirror)
        tell(mirror, "Delete", *order)
        assert nothing_held(mirror)
        assert web_pods(mirror) == {}


def test_a_namespace_without_labels_is_listed_until_it_is_deleted() -> None:
    mirror = mirror_of(make_namespace("x"))
    assert dict(mirror.namespaces) == {"x": {}}
    tell(mirror, "Delete", make_namespace("x").label("team", "red"))
    assert dict(mirror.namespaces) == {}


def test_a_batch_reads_objects_only_where_the_mirror_does_not_know_the_name() -> None:
    mirror = mirror_of(N_A, POD.on("na"))
    column = counter_of(mirror, (matcher_of(WEB),), "zone").column
    stranger = node_of(make_node("new").label("zone", "a"))
    batch = mirror.batch(["na", "new", "unknown"], {0: node_of(N_A.label("zone", "z")), 1: stranger})
    assert batch.unknown == [2]
    assert [column.ids["a"]] * 2 == batch.value_ids(column)[:2].tolist()


def test_the_pod_that_is_held_is_the_last_that_was_told() -> None:
    mirror = mirror_of(POD.on("na"))
    assert pod_of(POD.on("na")) == mirror.get_pod("default/p")
    tell(mirror, "Update", POD.on("nb"))
    assert pod_of(POD.on("nb")) == mirror.get_pod("default/p")


def test_the_partition_is_asked_by_name_and_by_the_labels_given_or_known() -> None:
    mirror = mirror_of(N_A, N_B, POD.on("waiting"))
    mirror.set_partition_selector(parse_selector({"zone": "a"}, ()))
    assert [mirror.node_in_partition(name) for name in ("na", "nb", "waiting", "unknown")] == [
        True,
        False,
        False,
        False,
    ]
    assert mirror.node_in_partition("nb", {"zone": "a"})
    assert mirror.node_in_partition("unknown", {"zone": "a"})
    mirror.set_node_out_of_partition("na")
    mirror.set_node_in_partition("unknown")
    assert [mirror.node_in_partition(name) for name in ("na", "unknown")] == [False, True]
    mirror.clear_node_partition("na")
    assert mirror.node_in_partition("na")
    assert mirror.audit() == []


def test_pods_of_nodes_out_of_the_partition_count_for_everything() -> None:
    mirror = mirror_of(N_A, N_B, POD.on("na"))
    assert web_pods(mirror) == {"a": 1}
    mirror.set_partition_selector(NOTHING)
    assert web_pods(mirror) == {"a": 1}
    tell(mirror, "Add", POD.uid("2").on("nb"))
    assert web_pods(mirror) == {"a": 1, "b": 1}
    assert sum(mirror.figures.best_effort_requested.values()) == 2
