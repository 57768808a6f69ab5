"""The mirror as a whole: events in any order, repeated, missed and unexpected ones, and those that cost nothing."""

from typing import Final, NoReturn

import pytest

from core.mirror.cluster import ClusterMirror
from core.objects.labels import NOTHING, parse_selector
from tests.builders import PodBuilder, labelled, make_namespace, make_node, make_pod, term
from tests.core.decoded import Builder, counter_of, matcher_of, mirror_of, node_of, tell
from tests.core.mirror.audit import audit

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


def test_deleting_what_is_unknown_does_nothing() -> None:
    mirror = ClusterMirror()
    tell(mirror, "Delete", POD.on("na"), POD, N_A, make_namespace("x"))
    assert nothing_held(mirror)
    tell(mirror, "Add", N_A, POD.on("na"))
    tell(mirror, "Delete", POD.uid("2").on("na"), N_B, make_namespace("x"), make_node("unknown"))
    assert web_pods(mirror) == {"a": 1}


def test_pods_without_a_node_and_ended_ones_are_not_held() -> None:
    mirror = mirror_of(POD, POD.uid("2").on("na").phase("Succeeded"), POD.uid("3").phase("Failed"))
    assert nothing_held(mirror)


def test_nothing_is_held_when_all_objects_are_gone() -> None:
    objects: list[Builder] = [N_A, N_B, make_namespace("x"), POD.on("na"), POD.uid("2").on("unknown")]
    for order in (objects, objects[::-1]):
        mirror = mirror_of(*objects)
        web_pods(mirror)
        tell(mirror, "Delete", *order)
        assert nothing_held(mirror)
        assert web_pods(mirror) == {}


def test_a_batch_reads_objects_only_where_the_mirror_does_not_know_the_name() -> None:
    mirror = mirror_of(N_A, POD.on("na"))
    column = counter_of(mirror, (matcher_of(WEB),), "zone").column
    stranger = node_of(make_node("new").label("zone", "a"))
    batch = mirror.batch(["na", "new", "unknown"], {0: node_of(N_A.label("zone", "z")), 1: stranger})
    assert batch.unknown == [2]
    assert [column.ids["a"]] * 2 == batch.value_ids(column)[:2].tolist()


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
    assert audit(mirror) == []


def test_pods_of_nodes_out_of_the_partition_count_for_everything() -> None:
    mirror = mirror_of(N_A, N_B, POD.on("na"))
    assert web_pods(mirror) == {"a": 1}
    mirror.set_partition_selector(NOTHING)
    assert web_pods(mirror) == {"a": 1}
    tell(mirror, "Add", POD.uid("2").on("nb"))
    assert web_pods(mirror) == {"a": 1, "b": 1}
    assert sum(mirror.figures.best_effort_requested.values()) == 2
