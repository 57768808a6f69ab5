"""Pods are returned as they were stored, though pods that are alike share what they have in common."""

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from core.mirror.pod_columns import NO_TERMS, PodColumns
from core.objects.kinds import ControllerRef
from core.objects.pod import Pod

VERSIONS: Final = ("", "0", "7", "007", "-3", "9" * 18, "9" * 19, "\u0661", "\u00b2", "v1")
pods = st.builds(
    Pod,
    uid=st.sampled_from("abcd"),
    namespace=st.sampled_from("mn"),
    name=st.sampled_from(["one", "two"]),
    labels=st.sampled_from([{}, {"app": "x"}, {"app": "y"}]),
    node_name=st.sampled_from(["", "n1", "n2"]),
    requests=st.sampled_from([{}, {"cpu": 1}]),
    controller=st.sampled_from([None, ControllerRef("ReplicaSet", "r", "u")]),
    resource_version=st.sampled_from(VERSIONS),
    start_time=st.sampled_from(["", "2026-01-01T00:00:00Z"]),
    terminating=st.booleans(),
)


@given(st.lists(st.tuples(pods, st.booleans()), max_size=30))
def test_a_pod_is_returned_as_it_was_stored_last(steps: list[tuple[Pod, bool]]) -> None:
    columns, stored = PodColumns(), dict[str, Pod]()
    for pod, stays in steps:
        known = stored.get(pod.uid)
        if known is not None and (known.namespace, known.labels) == (pod.namespace, pod.labels):
            columns.pods[columns.rows[pod.uid]] = pod
        else:
            if known is not None:
                columns.remove(known)
            columns.insert(pod, NO_TERMS)
        stored[pod.uid] = pod
        if not stays:
            columns.remove(stored.pop(pod.uid))
        assert {uid: columns.get(uid) for uid in columns.rows} == stored


def test_pods_of_a_controller_share_what_they_have_in_common() -> None:
    columns, labels, controller = PodColumns(), {"app": "x"}, ControllerRef("ReplicaSet", "r", "u")
    replicas = [
        Pod(uid=str(at), namespace="m", name=f"r-{at}", labels=labels, node_name=f"n{at}", controller=controller)
        for at in range(3)
    ]
    other = Pod(uid="3", namespace="m", name="r-3", labels=labels, requests={"cpu": 1})
    one, two, three, four = (columns.pods.like(columns.insert(pod, NO_TERMS)) for pod in (*replicas, other))
    assert one is two is three
    assert four is not one
    assert (one.uid, one.name, one.node_name, one.controller) == ("", "", "", controller)


def test_a_covered_pod_is_as_before_once_it_is_uncovered() -> None:
    columns = PodColumns()
    before = Pod(uid="a", namespace="m", name="one", resource_version="1")
    row = columns.insert(before, NO_TERMS)
    columns.insert(Pod(uid="a", namespace="m", name="one", resource_version="x"), NO_TERMS)
    columns.uncover("a", row)
    assert columns.get("a") == before
