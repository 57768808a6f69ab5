"""Which PodDisruptionBudgets cover what, by the rule of upstream's preemption."""

from collections.abc import Mapping, Sequence
from typing import Final

import pytest
from msgspec.structs import replace

from core.mirror import generation_store
from core.mirror.cluster import ClusterMirror
from core.mirror.snapshot import Snapshot
from core.objects.disruption import PodDisruptionBudget
from core.objects.labels import EVERYTHING, NOTHING, Selector, parse_selector
from core.objects.pod import Pod
from tests.core.mirror.values import budget, mirror_of, replica_set, selecting, tell

WEB: Final = {"app": "web", "tier": "1"}
NEGATIVE: Final = parse_selector({}, [("app", "NotIn", ["db"])])
RED: Final = budget("a/red", selecting(app="web"))


def snapshot_of(mirror: ClusterMirror) -> Snapshot:
    snapshot = Snapshot()
    mirror.update_snapshot(snapshot)
    return snapshot


def labelled_pod(namespace: str, labels: Mapping[str, str]) -> Pod:
    return Pod("p", namespace, "p", labels)


COVERING: Final = [
    pytest.param("a", selecting(app="web"), WEB, True, id="a-label-of-it"),
    pytest.param("a", selecting(app="web", tier="1"), WEB, True, id="all-of-several-labels"),
    pytest.param("a", selecting(app="web", tier="2"), WEB, False, id="only-one-of-several-labels"),
    pytest.param("b", selecting(app="web"), WEB, False, id="another-namespace"),
    pytest.param("a", NOTHING, WEB, False, id="a-null-selector"),
    pytest.param("a", EVERYTHING, WEB, False, id="an-empty-selector"),
    pytest.param("a", NEGATIVE, WEB, True, id="a-negative-selector"),
    pytest.param("a", NEGATIVE, {}, False, id="nothing-covers-what-has-no-labels"),
]


@pytest.mark.parametrize(("namespace", "selector", "labels", "covered"), COVERING)
def test_a_budget_covers_a_pod_and_an_owner_by_the_same_rule(
    namespace: str,
    selector: Selector,
    labels: Mapping[str, str],
    covered: bool,  # noqa: FBT001 - a table's column
) -> None:
    one = budget("a/one", selector)
    snapshot = snapshot_of(mirror_of(one, replica_set(f"{namespace}/owner", **labels)))
    expected = (one,) if covered else ()
    assert expected == snapshot.pdbs_of_pod(labelled_pod(namespace, labels))
    assert expected == snapshot.pdbs_of_owner("ReplicaSet", f"{namespace}/owner")
    assert snapshot.owners_of_pdb("a/one", "ReplicaSet") == ((f"{namespace}/owner",) if covered else ())


def test_a_pod_whose_disruption_is_counted_already_is_still_covered() -> None:
    counted = replace(RED, disrupted_pods=frozenset({"p"}), disruptions_allowed=1)
    assert snapshot_of(mirror_of(counted)).pdbs_of_pod(labelled_pod("a", WEB)) == (counted,)


def test_several_stand_in_the_order_of_their_names_whatever_order_they_came_in() -> None:
    budgets = [budget(name, selecting(app="web")) for name in ("a/z", "b/m", "a/a", "a/m")]
    owners = [replica_set(f"a/{name}", app="web") for name in "zam"]
    snapshot = snapshot_of(mirror_of(*budgets, *owners))
    assert [each.full_name for each in snapshot.pdb_items()] == ["a/a", "a/m", "a/z", "b/m"]
    assert [each.full_name for each in snapshot.pdbs_of_pod(labelled_pod("a", WEB))] == ["a/a", "a/m", "a/z"]
    assert snapshot.owners_of_pdb("a/m", "ReplicaSet") == ("a/a", "a/m", "a/z")
    of_owner = snapshot.pdbs_of_owner("ReplicaSet", "a/m")
    assert of_owner is not None
    assert [each.full_name for each in of_owner] == ["a/a", "a/m", "a/z"]


def test_an_unknown_owner_is_not_one_without_budgets() -> None:
    snapshot = snapshot_of(mirror_of(replica_set("a/bare"), RED))
    assert (snapshot.pdbs_of_owner("ReplicaSet", "a/bare"), snapshot.owner_labels("ReplicaSet", "a/bare")) == ((), {})
    for kind, name in (("ReplicaSet", "a/other"), ("ReplicaSet", "b/bare"), ("StatefulSet", "a/bare")):
        assert snapshot.pdbs_of_owner(kind, name) is None
        assert snapshot.owner_labels(kind, name) is None


def test_the_labels_of_an_owner_are_its_own() -> None:
    snapshot = snapshot_of(mirror_of(replica_set("a/x", app="web"), replica_set("b/x", app="db")))
    assert snapshot.owner_labels("ReplicaSet", "b/x") == {"app": "db"}


@pytest.mark.parametrize(("name", "kind"), [("a/other", "ReplicaSet"), ("a/red", "StatefulSet")])
def test_an_unknown_budget_or_kind_has_no_owners(name: str, kind: str) -> None:
    assert snapshot_of(mirror_of(RED, replica_set("a/x", app="web"))).owners_of_pdb(name, kind) == ()


def known(snapshot: Snapshot) -> tuple[Sequence[PodDisruptionBudget], Sequence[str], object]:
    return (
        snapshot.pdb_items(),
        snapshot.owners_of_pdb("a/red", "ReplicaSet"),
        snapshot.pdbs_of_owner("ReplicaSet", "a/x"),
    )


def test_a_snapshot_sees_budgets_and_owners_as_they_were_at_its_last_update() -> None:
    mirror = mirror_of(RED, replica_set("a/x", app="web"))
    snapshot = snapshot_of(mirror)
    before = known(snapshot)
    assert before == ((RED,), ("a/x",), (RED,))
    tell(mirror, "Update", budget("a/red", selecting(app="db")), replica_set("a/y", app="db"))
    assert before == known(snapshot)
    mirror.update_snapshot(snapshot)
    changed = budget("a/red", selecting(app="db"))
    assert known(snapshot) == ((changed,), ("a/y",), ())
    tell(mirror, "Delete", changed, replica_set("a/y"))
    mirror.update_snapshot(snapshot)
    assert known(snapshot) == ((), (), ())
    assert snapshot.pdbs_of_pod(labelled_pod("a", {"app": "db"})) == ()


@pytest.mark.parametrize("journal_length", [1, 100])
def test_deleted_budgets_and_owners_are_gone_however_many_there_were(
    monkeypatch: pytest.MonkeyPatch, journal_length: int
) -> None:
    monkeypatch.setattr(generation_store, "JOURNAL_LENGTH", journal_length)
    gone = [budget(f"{namespace}/b{number}", selecting(app="web")) for namespace in "ab" for number in range(3)]
    owners = [replica_set(f"a/o{number}", app="web") for number in range(3)]
    mirror = mirror_of(RED, *gone, *owners)
    snapshot = snapshot_of(mirror)
    assert len(snapshot.pdb_items()) == 7
    tell(mirror, "Delete", *gone, *owners[1:])
    tell(mirror, "Add", gone[0], budget("a/new", NOTHING))
    tell(mirror, "Delete", budget("a/new", NOTHING))
    mirror.update_snapshot(snapshot)
    assert snapshot.pdb_items() == (gone[0], RED)
    assert snapshot.owners_of_pdb("a/red", "ReplicaSet") == ("a/o0",)
    assert snapshot.pdbs_of_pod(labelled_pod("b", WEB)) == ()
