"""What decoding has in common for all kinds: identity, what null means, which field is at fault."""

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.objects.decode import (
    DecodeError,
    Expression,
    LabelSelector,
    selector_of,
    selector_of_labels,
    selector_or_nothing,
)
from app.objects.decode_kinds import decode_replica_set
from app.objects.decode_node import decode_node
from app.objects.decode_pod import decode_pod
from app.objects.resources import RESOURCES, Decoder
from core.events import Kind
from core.objects.kinds import ControllerRef, ReplicaSet
from core.objects.labels import EVERYTHING, NOTHING, Selector, SelectorError, parse_selector
from core.objects.node import Node
from tests.app.objects.full_objects import FULL_OBJECTS
from tests.builders import REQUIRED, Object
from tests.json_places import Place, places, replaced

each_kind = pytest.mark.parametrize(
    ("kind", "decode"),
    [pytest.param(resource.api_kind, resource.decode, id=resource.name) for resource in RESOURCES.values()],
)


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


# Identity.


@each_kind
def test_every_kind_reads_its_identity(kind: str, decode: Decoder) -> None:
    metadata = {"name": "x", "namespace": "shop", "uid": "u-1", "resourceVersion": "42"}
    decoded = decode(encoded({"apiVersion": "any", "kind": kind, "metadata": metadata}))
    assert (decoded.name, decoded.uid, decoded.resource_version) == ("x", "u-1", "42")
    assert RESOURCES[type(decoded)].api_kind == kind
    assert decoded.full_name == (f"{decoded.namespace}/x" if hasattr(decoded, "namespace") else "x")


@pytest.mark.parametrize(
    "kind", ["Pod", "PersistentVolumeClaim", "Service", "PodDisruptionBudget", "ReplicaSet"], ids=str.lower
)
def test_objects_that_live_in_a_namespace_are_named_with_it(kind: str) -> None:
    (decode,) = (resource.decode for each, resource in RESOURCES.items() if each.__name__ == kind)
    assert decode(encoded({"metadata": {"name": "x", "namespace": "shop"}})).full_name == "shop/x"
    assert decode(encoded({"metadata": {"name": "x"}})).full_name == "default/x"


@each_kind
def test_an_object_of_another_kind_is_refused(kind: str, decode: Decoder) -> None:
    with pytest.raises(DecodeError, match=f"^kind: expected {kind}, got Secret$"):
        decode(b'{"kind":"Secret","metadata":{"name":"x"}}')
    decode(b'{"kind":"%s","metadata":{"name":"x"}}' % kind.encode())
    decode(b'{"kind":"","metadata":{"name":"x"}}')


# Null.


@each_kind
@pytest.mark.parametrize("field", ["generateName", "namespace", "uid", "resourceVersion", "labels", "ownerReferences"])
def test_null_in_the_metadata_is_an_absent_field(kind: str, decode: Decoder, field: str) -> None:
    absent = decode(b'{"kind":"%s","metadata":{"name":"p"}}' % kind.encode())
    assert absent == decode(b'{"kind":null,"metadata":{"name":"p","%s":null}}' % field.encode())


@each_kind
def test_null_members_are_absent(kind: str, decode: Decoder) -> None:
    absent = decode(encoded({"metadata": {"name": "p"}}))
    assert absent == decode(encoded({"kind": kind, "metadata": {"name": "p"}, "spec": None, "status": None}))


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
            b'{"metadata":{"name":"x","resourceVersion":7}}',
            "metadata.resourceVersion: expected str | null, got int",
            id="version-number",
        ),
        pytest.param(b'{"kind":1}', "kind: expected str | null, got int", id="kind-number"),
    ],
)
@each_kind
def test_a_broken_object_is_refused_with_the_field(kind: str, decode: Decoder, text: bytes, expected: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(text)
    assert expected == str(caught.value), kind
    field = expected.partition(": ")[0]
    assert caught.value.field == ("" if " " in field else field)


@pytest.mark.parametrize(
    "text",
    [
        b'{"metadata":{"name":"x","labels":{"a":"\xff"}}}',
        b'{"metadata":{"name":"x"},"spec":{"nodeName":"\xff"}}',
        b'{"metadata":{"name":"x"},"spec":{"affinity":{"podAffinity":{"%s":[{"topologyKey":"\xff"}]}}}}'
        % REQUIRED.encode(),
        b'{"metadata":{"name":"x"},"spec":{"overhead":{"cpu":"\xff"}}}',
    ],
    ids=["labels", "node-name", "affinity", "quantity"],
)
def test_text_that_is_not_utf_8_is_malformed_as_a_whole(text: bytes) -> None:
    with pytest.raises(DecodeError, match=r"^malformed JSON: 'utf-8' codec") as caught:
        decode_pod(text)
    assert caught.value.field == ""


@each_kind
def test_deep_nesting_is_refused(kind: str, decode: Decoder) -> None:
    with pytest.raises(DecodeError, match=r"^malformed JSON: nested too deeply$"):
        decode(b'{"kind":"%s","metadata":{"name":"x"},"extra":%s}' % (kind.encode(), b"[" * 100_000 + b"]" * 100_000))


def test_an_error_takes_the_path_of_what_encloses_it() -> None:
    error = DecodeError("metadata.name", "required")
    assert str(error.under("items[3]").under("Nodes")) == "Nodes.items[3].metadata.name: required"
    assert str(DecodeError("[0].weight", "broken").under("terms")) == "terms[0].weight: broken"
    assert str(DecodeError("", "malformed JSON").under("Pod")) == "Pod: malformed JSON"


# Labels and owners.


def owned(*owners: object, **metadata: object) -> ReplicaSet:
    return decode_replica_set(encoded({"metadata": {"name": "x", "ownerReferences": owners, **metadata}}))


def owner(name: str, *, controller: bool | None) -> Object:
    reference: Object = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": f"u-{name}"}
    return reference if controller is None else {**reference, "controller": controller}


@pytest.mark.parametrize(
    ("owners", "expected"),
    [
        pytest.param([], "", id="nobody"),
        pytest.param([owner("a", controller=None)], "", id="not-said"),
        pytest.param([owner("a", controller=False)], "", id="owner-only"),
        pytest.param([owner("a", controller=True)], "a", id="controller"),
        pytest.param([owner("a", controller=False), owner("b", controller=True)], "b", id="beside-an-owner"),
        pytest.param([owner("a", controller=True), owner("b", controller=True)], "a", id="first-of-two"),
    ],
)
def test_the_controller_is_the_first_owner_that_is_marked_so(owners: list[object], expected: str) -> None:
    controller = owned(*owners).controller
    assert controller == (ControllerRef("Deployment", expected, f"u-{expected}", "apps/v1") if expected else None)


def test_a_controller_without_members_has_empty_ones() -> None:
    assert owned({"controller": True, "kind": None, "apiVersion": None}).controller == ControllerRef("", "", "", "")


@pytest.mark.parametrize("spelling", [b"null", b" null ", b"\n\tnull\r\n"], ids=["bare", "spaces", "lines"])
def test_null_is_null_however_it_is_spaced(spelling: bytes) -> None:
    text = b'{"metadata":{"name":"x","labels":%s,"ownerReferences":%s}}' % (spelling, spelling)
    replica_set = decode_replica_set(text)
    assert (replica_set.labels, replica_set.controller) == ({}, None)


def test_objects_with_the_same_labels_and_owner_share_them() -> None:
    one, other = (owned(owner("a", controller=True), labels={"app": "web"}, uid=uid) for uid in "12")
    assert one.labels is other.labels
    assert one.controller is other.controller


def test_very_many_labels_and_long_owners_are_read_but_not_kept() -> None:
    long = "x" * 3000
    many = {f"label-{number}": "x" * 60 for number in range(60)}
    one, other = (owned(owner(long, controller=True), labels=many, uid=uid) for uid in "12")
    assert (one.labels, one.controller) == (many, ControllerRef("Deployment", long, f"u-{long}", "apps/v1"))
    assert one.labels is not other.labels
    assert one.controller is not other.controller


# Label selectors.


@pytest.mark.parametrize("absent", [NOTHING, EVERYTHING], ids=["nothing", "everything"])
def test_an_absent_selector_is_what_the_caller_takes_it_for(absent: Selector) -> None:
    assert selector_of("spec.selector", None, absent) == absent
    assert selector_of("spec.selector", LabelSelector(), absent) == EVERYTHING


def test_a_broken_selector_is_reported_with_the_path_in_front() -> None:
    with pytest.raises(SelectorError, match="is not a valid label selector operator") as caught:
        selector_of("spec.selector", LabelSelector(match_expressions=[Expression(key="a")]))
    assert caught.value.field == "spec.selector.matchExpressions[0].operator"


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(None, NOTHING, id="null"),
        pytest.param(LabelSelector(), EVERYTHING, id="empty"),
        pytest.param(LabelSelector(match_labels={"a": "b"}), parse_selector({"a": "b"}, ()), id="labels"),
        pytest.param(LabelSelector({"a": "b"}, [Expression("a")]), NOTHING, id="broken"),
    ],
)
def test_a_broken_selector_can_be_taken_for_an_absent_one(selector: LabelSelector | None, expected: Selector) -> None:
    assert expected == selector_or_nothing(selector)


@pytest.mark.parametrize("labels", [None, {}], ids=["null", "empty"])
def test_no_labels_select_nothing(labels: dict[str, str] | None) -> None:
    assert selector_of_labels(labels) == NOTHING


def test_selecting_labels_are_not_validated() -> None:
    assert selector_of_labels({"no label": "-"}).matches({"no label": "-", "more": "x"})


# Whatever else may stand there.

KEYS = ["name", "cpu", "requests", "values", "key", "operator", "matchLabels", "matchExpressions", "resources", "x"]
TEXTS = ["", "x", "Always", "PodResizePending", "1", "250m", "1Gi", "lots", "In", "Gt", "Exists", "a b"]

any_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(TEXTS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=8,
)


@each_kind
@settings(deadline=None)
@given(data=st.data())
def test_whatever_stands_in_a_field_the_object_is_a_value_or_a_decode_error(
    kind: str, decode: Decoder, data: st.DataObject
) -> None:
    (full,) = (full for each, full in FULL_OBJECTS.items() if RESOURCES[each].decode is decode)
    place = data.draw(st.sampled_from(places(full)))
    text = encoded(replaced(full, place, data.draw(any_json)))
    with suppress(DecodeError):
        assert RESOURCES[type(decode(text))].api_kind == kind


@pytest.mark.parametrize("kind", RESOURCES, ids=lambda kind: RESOURCES[kind].name)
def test_a_field_of_the_wrong_type_is_refused_with_its_path_or_not_read_at_all(kind: Kind) -> None:
    full, decode = FULL_OBJECTS[kind], RESOURCES[kind].decode
    whole = decode(encoded(full))
    refused: dict[Place, str] = {}
    for place in places(full)[1:]:
        try:
            assert whole == decode(encoded(replaced(full, place, [[]])))
        except DecodeError as error:
            refused[place] = error.field
    assert all(field.startswith(str(place[0])) for place, field in refused.items())
    assert {("metadata",), ("metadata", "name"), ("metadata", "uid"), ("metadata", "resourceVersion")} <= set(refused)


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=79), st.text(max_size=15)), st.text(min_size=1, max_size=63))
def test_names_and_labels_are_read_as_they_are_written(labels: dict[str, str], name: str) -> None:
    assert Node(name, labels) == decode_node(encoded({"metadata": {"name": name, "labels": labels}}))


@settings(deadline=None)
@given(st.binary())
def test_random_bytes_are_refused(text: bytes) -> None:
    for resource in RESOURCES.values():
        with pytest.raises(DecodeError):
            resource.decode(text)
