"""Objects of lists and watches: read, or not."""

import json
import logging
from typing import Any

import msgspec
import pytest

from app.feeds.freshness import ResourceState
from app.feeds.known_objects import KnownObjects, Unreadable
from app.feeds.objects import ObjectReader
from app.objects.decode_pod import WirePod
from app.objects.resources import RESOURCES, pod_events
from core.objects.kinds import Namespace
from core.objects.pod import Pod
from tests.builders import make_namespace, make_pod

METADATA = {"name": "p", "namespace": "x", "uid": "u", "resourceVersion": "7"}


def raw(body: object) -> msgspec.Raw:
    """Return an object as a list or watch has it."""
    return msgspec.Raw(json.dumps(body).encode())


def test_a_readable_object_is_given_as_the_core_knows_it(caplog: pytest.LogCaptureFixture) -> None:
    state = ResourceState(RESOURCES[Namespace])
    reported = ObjectReader(state).read(raw(make_namespace("a").label("k", "v").obj()))
    assert reported == Namespace("a", {"k": "v"})
    assert state.decode_errors == 0
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("body", "expected", "message"),
    [
        pytest.param(
            {"metadata": {**METADATA, "labels": 3}},
            Unreadable("x/p", "u", "7"),
            "pods: skipped x/p: metadata.labels: expected object",
            id="labels",
        ),
        pytest.param(
            {"kind": "Node", "metadata": METADATA},
            Unreadable("x/p", "u", "7"),
            "pods: skipped x/p: kind: expected Pod, got Node",
            id="other-kind",
        ),
        pytest.param(
            {"metadata": {"name": "p\n\x1b[0m", "namespace": "x", "labels": 3}},
            Unreadable("x/p\n\x1b[0m"),
            "pods: skipped x/p\\n\\x1b[0m: metadata.labels: expected object",
            id="name-that-would-break-the-log",
        ),
        pytest.param(
            {"metadata": {"uid": "u"}},
            Unreadable(),
            "pods: skipped an object without a readable name: metadata.name: required",
            id="no-name",
        ),
        pytest.param([], Unreadable(), "pods: skipped an object without a readable name: expected object", id="list"),
    ],
)
def test_an_unreadable_object_is_identified_counted_and_named(
    body: Any,  # noqa: ANN401 - any JSON
    expected: Unreadable,
    message: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    state = ResourceState(RESOURCES[Pod])
    reader = ObjectReader(state)
    for count in (1, 2):
        assert reader.read(raw(body)) == expected
        assert state.decode_errors == count
    assert [record.levelno for record in caplog.records] == 2 * [logging.WARNING]
    assert caplog.messages[0].startswith(message)


def test_a_pod_with_broken_terms_is_given_and_each_broken_list_named(caplog: pytest.LogCaptureFixture) -> None:
    broken = {"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Near"}]}}
    pod = make_pod("p").required_affinity(broken).preferred_anti_affinity(1, broken)
    state = ResourceState(RESOURCES[Pod])
    reported = ObjectReader(state).read(raw(pod.obj()))
    assert isinstance(reported, Pod)
    assert reported.full_name == "default/p"
    assert state.decode_errors == 1
    first, second = caplog.messages
    assert first.startswith("pods: default/p: kept without its requiredAffinityTerms: spec.affinity.podAffinity.")
    assert second.startswith(
        "pods: default/p: kept without its preferredAntiAffinityTerms: spec.affinity.podAntiAffinity."
    )


def pods_known(*objects: Pod) -> KnownObjects:
    known = KnownObjects(lambda _: None)
    for each in objects:
        known.put(each)
    return known


def test_an_object_of_a_known_version_is_not_read_again() -> None:
    reader = ObjectReader(ResourceState(RESOURCES[Pod]))
    pod = reader.read(raw({"metadata": METADATA}))
    assert isinstance(pod, Pod)
    # Its labels are not looked at: they could not be read.
    assert reader.read_unless_known(raw({"metadata": {**METADATA, "labels": 3}}), pods_known(pod)) is pod


@pytest.mark.parametrize(
    "changed",
    [{"resourceVersion": "8"}, {"uid": "v"}, {"name": "q"}, {"namespace": "y"}, {"resourceVersion": ""}],
    ids=str,
)
def test_an_object_of_another_version_is_read(changed: dict[str, str]) -> None:
    reader = ObjectReader(ResourceState(RESOURCES[Pod]))
    without = {"resourceVersion": ""} if changed == {"resourceVersion": ""} else {}  # it may be another each time
    pod = reader.read(raw({"metadata": {**METADATA, **without}}))
    assert isinstance(pod, Pod)
    again = reader.read_unless_known(raw({"metadata": {**METADATA, **changed, "labels": {"k": "v"}}}), pods_known(pod))
    assert isinstance(again, Pod)
    assert again.labels == {"k": "v"}


def test_what_has_no_readable_identity_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    state = ResourceState(RESOURCES[Pod])
    reader = ObjectReader(state)
    pod = reader.read(raw({"metadata": METADATA}))
    assert isinstance(pod, Pod)
    assert reader.read_unless_known(raw({"metadata": 3}), pods_known(pod)) == Unreadable()
    assert state.decode_errors == 1
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(
            {"metadata": METADATA, "status": {"message": "x" * (16 * 1024**2)}},
            "an object of more than 16777216 bytes",
            id="bytes",
        ),
        pytest.param(
            {"metadata": METADATA, "spec": {"containers": [{}] * 500_002}},
            "an object of more than 500000 elements",
            id="elements",
        ),
    ],
)
def test_an_object_larger_than_any_that_is_stored_is_passed_over_by_name(
    body: object, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    state = ResourceState(RESOURCES[Pod])
    assert ObjectReader(state).read(raw(body)) == Unreadable("x/p", "u", "7")
    assert state.decode_errors == 1
    assert caplog.messages == [f"pods: skipped x/p: {message}"]


def test_an_object_as_large_as_a_pod_can_be_as_json_is_read() -> None:
    reported = ObjectReader(ResourceState(RESOURCES[Pod])).read(raw(make_pod("p").obj() | {"x": "\x01" * 1_572_864}))
    assert isinstance(reported, Pod)


def test_the_sizes_of_what_is_read_are_added_up() -> None:
    state = ResourceState(RESOURCES[Namespace])
    reader, one = ObjectReader(state), raw(make_namespace("a").obj())
    for _ in range(3):
        reader.read(one)
    assert (state.read_objects, state.read_bytes) == (3, 3 * memoryview(one).nbytes)


def wire(body: object) -> WirePod:
    """Return a pod as a watch has it."""
    (event,) = pod_events(json.dumps({"type": "ADDED", "object": body}))
    return event.object


def test_a_pod_that_was_decoded_with_its_line_is_read_like_its_bytes() -> None:
    reader = ObjectReader(ResourceState(RESOURCES[Pod]))
    body = {"kind": "Pod", "metadata": METADATA, "spec": {"nodeName": "n"}}
    assert reader.read(wire(body)) == reader.read(raw(body))
    known, good = KnownObjects(lambda _: None), reader.read(raw(body))
    assert isinstance(good, Pod)
    known.put(good)
    assert reader.read_unless_known(wire(body), known) is good
    other = reader.read_unless_known(wire({**body, "metadata": {**METADATA, "resourceVersion": "8"}}), known)
    assert isinstance(other, Pod)
    assert other.resource_version == "8"


def test_a_pod_that_was_decoded_with_its_line_may_be_unreadable(caplog: pytest.LogCaptureFixture) -> None:
    state = ResourceState(RESOURCES[Pod])
    reader = ObjectReader(state)
    assert reader.read(wire({"metadata": {**METADATA, "labels": 3}})) == Unreadable("x/p", "u", "7")
    assert "pods: skipped x/p: metadata.labels: expected object" in caplog.text
    assert reader.read(wire({"metadata": {}})) == Unreadable()
    assert state.decode_errors == 2
