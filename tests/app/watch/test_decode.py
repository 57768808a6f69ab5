"""v1 objects to the core's values: what is read, what null means, which field is at fault."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.watch.decode import DecodeError, decode_namespace, decode_node, decode_pod
from core.objects.affinity import NO_AFFINITY
from core.objects.namespace import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from tests.builders import Object, make_namespace, make_node, make_pod

FULL_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web-1",
        "generateName": "web-",
        "namespace": "shop",
        "uid": "u-1",
        "labels": {"app": "web"},
        "annotations": {"a": "b"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
    },
    "spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": {"limits": {"cpu": 1.5}}}], "priority": 0},
    "status": {"phase": "Running", "conditions": [{"type": "Ready"}]},
}


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


def test_a_pod_is_reduced_to_what_scheduling_reads() -> None:
    expected = Pod(uid="u-1", namespace="shop", name="web-1", labels={"app": "web"}, node_name="n1")
    assert expected == decode_pod(encoded(FULL_POD))


def test_a_node_is_reduced_to_its_name_and_labels() -> None:
    node = {**make_node("n1").label("zone", "a").obj(), "kind": "Node", "spec": {"taints": []}, "status": {}}
    assert Node("n1", {"zone": "a"}) == decode_node(encoded(node))


def test_a_namespace_is_reduced_to_its_name_and_labels() -> None:
    namespace = {**make_namespace("shop").label("team", "x").obj(), "spec": {"finalizers": ["kubernetes"]}}
    assert Namespace("shop", {"team": "x"}) == decode_namespace(encoded(namespace))


def test_a_hand_written_manifest_needs_only_a_name() -> None:
    assert Pod(uid="default/p", namespace="default", name="p") == decode_pod(b'{"metadata":{"name":"p"}}')


def test_without_a_uid_the_namespace_and_name_identify_a_pod() -> None:
    assert decode_pod(b'{"metadata":{"name":"p","namespace":"x","uid":""}}').uid == "x/p"


def test_a_pod_that_has_no_name_yet_goes_by_the_name_that_will_be_generated() -> None:
    assert decode_pod(b'{"metadata":{"generateName":"web-"}}').name == "web-"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"], ids=str.lower)
def test_a_finished_pod_occupies_no_node(phase: str) -> None:
    assert not decode_pod(make_pod("p").on("n1").phase(phase).json()).assigned


@pytest.mark.parametrize("phase", ["", "Pending", "Running", "Unknown"], ids=lambda phase: phase.lower() or "none")
def test_an_unfinished_pod_with_a_node_occupies_it(phase: str) -> None:
    assert decode_pod(make_pod("p").on("n1").phase(phase).json()).assigned


def test_a_terminating_pod_still_occupies_its_node() -> None:
    assert decode_pod(make_pod("p").on("n1").phase("Running").terminating().json()).assigned


# Null.


@pytest.mark.parametrize(
    "nulls",
    [
        pytest.param({"kind": None, "spec": None, "status": None}, id="members"),
        pytest.param({"spec": {"nodeName": None, "affinity": None}}, id="spec"),
        pytest.param({"status": {"phase": None}}, id="status"),
        pytest.param({"spec": {"affinity": {"podAffinity": None, "podAntiAffinity": None}}}, id="affinity"),
        pytest.param(
            {
                "spec": {
                    "affinity": {
                        "podAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": None,
                            "preferredDuringSchedulingIgnoredDuringExecution": None,
                        }
                    }
                }
            },
            id="terms",
        ),
    ],
)
def test_null_in_a_pod_is_an_absent_field(nulls: Object) -> None:
    pod = make_pod("p").obj()
    assert decode_pod(encoded({"metadata": pod["metadata"]})) == decode_pod(encoded({**pod, **nulls}))


@pytest.mark.parametrize("field", ["generateName", "namespace", "uid", "labels"])
def test_null_in_the_metadata_is_an_absent_field(field: str) -> None:
    assert decode_pod(b'{"metadata":{"name":"p"}}') == decode_pod(
        b'{"metadata":{"name":"p","%s":null}}' % field.encode()
    )


@pytest.mark.parametrize("decode", [decode_node, decode_namespace], ids=["node", "namespace"])
def test_null_labels_are_no_labels(decode: Callable[[bytes], Node | Namespace]) -> None:
    assert decode(b'{"kind":null,"metadata":{"name":"x","labels":null}}').labels == {}


@pytest.mark.parametrize("spelling", [b"null", b" null ", b"\n\tnull\r\n"], ids=["bare", "spaces", "lines"])
def test_a_null_affinity_is_none_however_it_is_spaced(spelling: bytes) -> None:
    assert decode_pod(b'{"metadata":{"name":"p"},"spec":{"affinity":%s}}' % spelling).affinity is NO_AFFINITY


@pytest.mark.parametrize(
    "affinity",
    [
        pytest.param({}, id="empty"),
        pytest.param({"nodeAffinity": {"anything": [1]}}, id="node-affinity-only"),
        pytest.param({"podAffinity": {}, "podAntiAffinity": {}}, id="no-lists"),
        pytest.param({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}, id="empty-list"),
    ],
)
def test_an_affinity_without_pod_terms_is_the_one_value_of_none(affinity: Object) -> None:
    assert decode_pod(encoded({**make_pod("p").obj(), "spec": {"affinity": affinity}})).affinity is NO_AFFINITY


# What is refused.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(b"", "malformed JSON: input data was truncated", id="nothing"),
        pytest.param(b'{"metadata"', "malformed JSON: input data was truncated", id="truncated"),
        pytest.param(b"null", "expected object, got null", id="null"),
        pytest.param(b"[]", "expected object, got array", id="array"),
        pytest.param(b"{}", "metadata.name: required", id="no-metadata"),
        pytest.param(b'{"metadata":null}', "metadata.name: required", id="metadata-null"),
        pytest.param(b'{"metadata":{"name":null}}', "metadata.name: required", id="name-null"),
        pytest.param(b'{"metadata":{"name":""}}', "metadata.name: required", id="name-empty"),
        pytest.param(b'{"metadata":{"name":3}}', "metadata.name: expected str | null, got int", id="name-number"),
        pytest.param(b'{"metadata":[]}', "metadata: expected object | null, got array", id="metadata-array"),
        pytest.param(
            b'{"metadata":{"name":"x","labels":["a"]}}',
            "metadata.labels: expected object | null, got array",
            id="labels-array",
        ),
        pytest.param(
            b'{"metadata":{"name":"x","labels":{"a":true}}}',
            "metadata.labels[...]: expected str, got bool",
            id="label-bool",
        ),
        pytest.param(b'{"kind":1}', "kind: expected str | null, got int", id="kind-number"),
    ],
)
@pytest.mark.parametrize("decode", [decode_pod, decode_node, decode_namespace], ids=["pod", "node", "namespace"])
def test_a_broken_object_is_refused_with_the_field(
    decode: Callable[[bytes], object], text: bytes, expected: str
) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(text)
    assert expected == str(caught.value)
    field = expected.partition(": ")[0]
    assert caught.value.field == ("" if " " in field else field)


@pytest.mark.parametrize(
    ("decode", "expected"),
    [(decode_pod, "Pod"), (decode_node, "Node"), (decode_namespace, "Namespace")],
    ids=["pod", "node", "namespace"],
)
def test_an_object_of_another_kind_is_refused(decode: Callable[[bytes], object], expected: str) -> None:
    with pytest.raises(DecodeError, match=f"^kind: expected {expected}, got Secret$"):
        decode(b'{"kind":"Secret","metadata":{"name":"x"}}')
    decode(b'{"kind":"%s","metadata":{"name":"x"}}' % expected.encode())
    decode(b'{"kind":"","metadata":{"name":"x"}}')


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param([], "spec: expected object | null, got array", id="spec-array"),
        pytest.param({"nodeName": 1}, "spec.nodeName: expected str | null, got int", id="node-name-number"),
        pytest.param({"affinity": "near"}, "spec.affinity: expected object, got str", id="affinity-string"),
        pytest.param(
            {"affinity": {"podAntiAffinity": []}},
            "spec.affinity.podAntiAffinity: expected object | null, got array",
            id="anti-affinity-array",
        ),
    ],
)
def test_a_broken_spec_is_refused_with_the_field(spec: object, expected: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_pod(encoded({"metadata": {"name": "p"}, "spec": spec}))
    assert expected == str(caught.value)


def test_a_broken_phase_is_refused_with_the_field() -> None:
    with pytest.raises(DecodeError, match=r"^status\.phase: expected str \| null, got int$"):
        decode_pod(b'{"metadata":{"name":"p"},"status":{"phase":1}}')


@pytest.mark.parametrize("decode", [decode_pod, decode_node, decode_namespace], ids=["pod", "node", "namespace"])
def test_deep_nesting_is_refused(decode: Callable[[bytes], object]) -> None:
    with pytest.raises(DecodeError, match=r"^malformed JSON: nested too deeply$"):
        decode(b'{"metadata":{"name":"x"},"extra":%s}' % (b"[" * 100_000 + b"]" * 100_000))


def test_an_error_takes_the_path_of_what_encloses_it() -> None:
    error = DecodeError("metadata.name", "required")
    assert str(error.under("items[3]").under("Nodes")) == "Nodes.items[3].metadata.name: required"
    assert str(DecodeError("[0].weight", "broken").under("terms")) == "terms[0].weight: broken"
    assert str(DecodeError("", "malformed JSON").under("Pod")) == "Pod: malformed JSON"


# Whatever else may stand there.


@settings(deadline=None)
@given(st.dictionaries(st.text(), st.text()), st.text(min_size=1))
def test_names_and_labels_are_read_as_they_are_written(labels: dict[str, str], name: str) -> None:
    assert Node(name, labels) == decode_node(encoded({"metadata": {"name": name, "labels": labels}}))


@settings(deadline=None)
@given(st.binary())
def test_random_bytes_are_refused(text: bytes) -> None:
    for decode in (decode_pod, decode_node, decode_namespace):
        with pytest.raises(DecodeError):
            decode(text)
