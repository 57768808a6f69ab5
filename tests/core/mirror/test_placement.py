"""Generations of NodeInfos, and the pods as they are held: what each event changes, and what changes nothing."""

from math import inf, nan
from typing import Final

import pytest
from msgspec.structs import replace

from core.events import Action, Object
from core.mirror.cluster import ClusterMirror
from core.mirror.placement import AssumedPod, AssumedPods, PodState, PodStateError
from core.mirror.pod_columns import PodColumns
from core.objects.kinds import ControllerRef, Namespace
from core.objects.pod import Pod
from tests.core.decoded import by_value, counter_of
from tests.core.mirror.audit import audit
from tests.core.mirror.test_what_if import WEB
from tests.core.mirror.values import mirror_of, node, pod, tell

P: Final = pod("p", "na", cpu=5, version="1")
NA: Final = node("na", labels={"zone": "a"}, cpu=10)


def cluster() -> ClusterMirror:
    mirror = mirror_of(NA, node("nb"), P, pod("q", "waiting"))
    assert by_value(counter_of(mirror, (WEB,), "zone")) == {"a": 1}
    return mirror


def generations(mirror: ClusterMirror) -> dict[str, int]:
    return {name: info.generation for name, info in mirror.nodes.infos.items()}


@pytest.mark.parametrize(
    ("action", "thing", "changed"),
    [
        pytest.param("Add", pod("r", "nb"), {"nb"}, id="pod-added"),
        pytest.param("Delete", P, {"na"}, id="pod-deleted"),
        pytest.param("Update", replace(P, node_name="nb"), {"na", "nb"}, id="pod-moved"),
        pytest.param("Update", replace(P, node_name=""), {"na"}, id="pod-unbound"),
        pytest.param("Update", replace(P, terminal=True), {"na"}, id="pod-ended"),
        pytest.param("Update", replace(P, resource_version="2"), {"na"}, id="pod-of-a-newer-version"),
        pytest.param("Update", replace(P, controller=ControllerRef("k", "n", "u")), {"na"}, id="pod-adopted"),
        pytest.param("Update", replace(P, labels={}), {"na"}, id="pod-relabelled"),
        pytest.param("Update", replace(P, best_effort=True), {"na"}, id="pod-of-another-quality"),
        pytest.param("Update", P, set(), id="pod-repeated"),
        pytest.param("Add", pod("r"), set(), id="pod-unassigned"),
        pytest.param("Delete", pod("r", "na"), set(), id="unknown-pod-deleted"),
        pytest.param("Add", pod("r", "waiting"), {"waiting"}, id="pod-added-on-an-unknown-node"),
        pytest.param("Update", pod("q", "waiting", version="2"), {"waiting"}, id="pod-changed-on-an-unknown-node"),
        pytest.param("Update", replace(NA, allocatable={"cpu": 11}), {"na"}, id="node-of-another-size"),
        pytest.param("Update", replace(NA, resource_version="2"), {"na"}, id="node-of-a-newer-version"),
        pytest.param("Update", replace(NA, labels={"a": "b"}), {"na"}, id="node-relabelled"),
        pytest.param("Add", NA, set(), id="node-repeated"),
        pytest.param("Delete", NA, {"na"}, id="node-deleted"),
        pytest.param("Add", node("waiting"), {"waiting"}, id="node-appears"),
        pytest.param("Delete", node("waiting"), set(), id="unknown-node-deleted"),
        pytest.param("Add", Namespace("x", {"a": "b"}), set(), id="namespace"),
    ],
)
def test_exactly_the_nodes_that_changed_get_a_new_generation(action: Action, thing: Object, changed: set[str]) -> None:
    mirror = cluster()
    before, last = generations(mirror), mirror.generation
    tell(mirror, action, thing)
    after = generations(mirror)
    assert changed == {name for name, generation in after.items() if generation != before.get(name)}
    assert all(after[name] > last for name in changed)
    assert (mirror.generation > last) is bool(changed)
    assert audit(mirror) == []


def test_a_status_update_moves_no_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = cluster()
    with monkeypatch.context() as patched:
        for method in ("insert", "remove"):
            patched.setattr(PodColumns, method, lambda *_: pytest.fail("a pod was taken out"))
        tell(mirror, "Update", replace(P, resource_version="2"))
    assert audit(mirror) == []


UNPLACED: Final = pod("x", cpu=5)
ON_NA, ON_NB = pod("x", "na", cpu=5), pod("x", "nb", cpu=5)


@pytest.mark.parametrize(
    ("action", "seen", "to_state"),
    [
        pytest.param("Add", ON_NA, PodState.ADDED, id="confirmed"),
        pytest.param("Update", ON_NB, PodState.ADDED, id="elsewhere"),
        pytest.param("Delete", UNPLACED, PodState.DELETED, id="deleted"),
        pytest.param("Update", replace(UNPLACED, terminal=True), PodState.DELETED, id="ended"),
    ],
)
def test_the_end_of_an_assumption_is_told(action: Action, seen: Pod, to_state: PodState) -> None:
    mirror = mirror_of(node("na", cpu=10), node("nb", cpu=10))
    mirror.assume(UNPLACED, "na", 0.0)
    reported = tell(mirror, action, seen)
    assert reported is not None
    assert (reported.from_state, reported.to_state, reported.from_node) == (PodState.ASSUMED, to_state, "na")
    assert reported.to_node == seen.node_name
    assert mirror.is_mirrored("x") is (to_state is PodState.ADDED)
    assert (mirror.is_assumed("x"), audit(mirror)) == (False, [])


def test_what_a_state_forbids_is_an_error_that_says_where_the_pod_is() -> None:
    mirror = mirror_of(node("na"), pod("added", "na"))
    mirror.assume(UNPLACED, "na", 0.0)
    for tried, message in (
        (lambda: mirror.assume(UNPLACED, "nb", 0.0), "pod default/x (x) is Assumed on na and cannot be assumed on nb"),
        (lambda: mirror.assume(pod("y"), "", 0.0), "pod default/y (y) cannot be assumed on no node"),
        (
            lambda: mirror.assume(pod("y", ended=True), "na", 0.0),
            "pod default/y (y) has ended and cannot be assumed on na",
        ),
        (lambda: mirror.forget("added"), "pod default/added (added) is Added on na and cannot be forgotten"),
        (lambda: mirror.forget("y"), "pod y is not in the mirror and cannot be forgotten"),
    ):
        with pytest.raises(PodStateError) as raised:
            tried()
        assert str(raised.value) == message
    with pytest.raises(TypeError):
        del mirror.assumed["x"]  # type: ignore[attr-defined]  # that is what is tried


def test_the_ttl_is_the_mirror_s() -> None:
    mirror = ClusterMirror(assumed_pod_ttl=5.0)
    mirror.assume(UNPLACED, "na", 0.0)
    mirror.finish_binding("x", 10.0)
    assert mirror.expire(15.0) == []
    assert mirror.expire(15.1) == [ON_NA]


def test_a_nomination_keeps_no_place_once_the_end_of_its_binding_is_reported() -> None:
    """It waits for nothing any more. Nobody may know whether it is bound, and no decision replaces it meanwhile."""
    mirror = ClusterMirror(assumed_pod_ttl=5.0)
    tell(mirror, "Add", replace(UNPLACED, nominated_node_name="na"))
    mirror.assume(UNPLACED, "na", 0.0)
    mirror.finish_binding("x", 10.0)
    assert mirror.expire(15.1) == [ON_NA]


ONE = pod("1", "n")


def assumed(ttl: float = 30.0) -> AssumedPods:
    pods = AssumedPods(ttl)
    pods.add(ONE, -5.0)
    pods.finish_binding("1", 0.0)
    return pods


def test_pods_are_overdue_each_at_its_own_time() -> None:
    pods = AssumedPods(10.0)
    each = [pod(str(number), "n") for number in range(4)]
    for number in (2, 0, 3, 1):
        pods.add(each[number], 0.0)
        pods.finish_binding(str(number), float(number))
    taken = [pods.take_overdue(now) for now in (10.0, 10.5, 11.5, 11.9, 20.0)]
    assert taken == [[], [each[0]], [each[1]], [], [each[2], each[3]]]


def test_a_pod_at_its_deadline_stays_though_another_is_overdue() -> None:
    pods = assumed()
    pods.add(pod("2", "n"), 0.0)
    pods.finish_binding("2", 1.0)
    assert pods.take_overdue(31.0) == [ONE]
    assert [each.uid for each in pods.take_overdue(31.1)] == ["2"]


def test_nothing_is_looked_through_while_nothing_can_be_due() -> None:
    class Refusing(dict[str, AssumedPod]):
        def values(self) -> None:  # type: ignore[override]  # it ends the test
            pytest.fail("looked through all pods")

    pods = assumed()
    pods.by_uid = Refusing(pods.by_uid)
    for now in range(31):
        assert pods.take_overdue(float(now)) == []


def test_a_ttl_of_0_lets_a_pod_stay_for_ever() -> None:
    pods = assumed(ttl=0.0)
    assert pods.take_overdue(inf) == []
    assert pods.by_uid["1"].deadline is None


@pytest.mark.parametrize("ttl", [-0.1, -inf, nan])
def test_a_ttl_that_is_no_length_of_time_is_refused(ttl: float) -> None:
    with pytest.raises(ValueError, match="TTL of an assumed pod"):
        AssumedPods(ttl)
