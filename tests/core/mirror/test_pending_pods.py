"""Which pods have no node, and which of them are nominated for one, after events in any order."""

import pytest

from app.objects.decode_pod import decode_pod
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from tests.builders import PodBuilder, make_pod

P = make_pod("p").uid("u")


def seen(*pods: PodBuilder) -> ClusterMirror:
    """Return a mirror that has seen these states, one after the other."""
    mirror = ClusterMirror()
    for pod in pods:
        mirror.apply(ClusterEvent("Update", decode_pod(pod.json())))
    return mirror


def held(mirror: ClusterMirror) -> list[Pod]:
    return list(mirror.pending)


def test_a_pod_without_a_node_is_pending_as_it_was_last_seen() -> None:
    mirror = seen(P, P.priority(3))
    assert [decode_pod(P.priority(3).json())] == held(mirror)
    assert ("u" in mirror.pending, "other" in mirror.pending, len(mirror.pending)) == (True, False, 1)
    assert mirror.pending.get("u") is held(mirror)[0]
    assert mirror.pending.get("other") is None
    assert not mirror.is_mirrored("u")


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(P.on("n1"), id="bound"),
        pytest.param(P.phase("Failed"), id="failed"),
        pytest.param(P.on("n1").phase("Succeeded"), id="succeeded"),
    ],
)
def test_a_pod_is_pending_until_it_is_bound_or_has_ended(after: PodBuilder) -> None:
    mirror = seen(P.nominated("n2"), after)
    assert held(mirror) == []
    assert mirror.pending.nominated == {}


def test_a_pod_is_pending_until_it_is_deleted() -> None:
    mirror = seen(P.nominated("n2"))
    mirror.apply(ClusterEvent("Delete", decode_pod(P.json())))
    assert (held(mirror), mirror.pending.nominated) == ([], {})
    mirror.apply(ClusterEvent("Delete", decode_pod(P.json())))
    assert held(mirror) == []


def test_an_assumed_pod_is_pending_until_the_watch_confirms_it() -> None:
    mirror = seen(P)
    mirror.assume(decode_pod(P.json()), "n1", 0)
    mirror.apply(ClusterEvent("Update", decode_pod(P.priority(1).json())))
    assert "u" in mirror.pending
    mirror.apply(ClusterEvent("Update", decode_pod(P.on("n1").json())))
    assert "u" not in mirror.pending


def test_a_nomination_moves_and_ends() -> None:
    other = make_pod("q").uid("v").nominated("n1")
    mirror = seen(P.nominated("n1"), other)
    assert {"n1": {"u", "v"}} == {node: set(pods) for node, pods in mirror.pending.nominated.items()}
    mirror.apply(ClusterEvent("Update", decode_pod(P.nominated("n2").json())))
    assert (list(mirror.pending.nominated_for("n1")), list(mirror.pending.nominated_for("n2"))) == (["v"], ["u"])
    mirror.apply(ClusterEvent("Update", decode_pod(P.json())))
    assert (list(mirror.pending.nominated_for("n2")), list(mirror.pending.nominated)) == ([], ["n1"])


def test_who_expects_a_pod_is_called_when_the_watch_shows_it_and_not_afterwards() -> None:
    mirror = ClusterMirror()
    pod, calls = decode_pod(P.json()), list[str]()
    with mirror.pending.expecting("u", lambda: calls.append("one")):
        with mirror.pending.expecting("u", lambda: calls.append("other")):
            mirror.apply(ClusterEvent("Add", Pod("v", "default", "q")))
            assert calls == []
            mirror.apply(ClusterEvent("Add", pod))
            assert calls == ["one", "other"]
        mirror.apply(ClusterEvent("Update", pod))
        assert calls == ["one", "other", "one"]
    mirror.apply(ClusterEvent("Update", pod))
    assert calls == ["one", "other", "one"]
