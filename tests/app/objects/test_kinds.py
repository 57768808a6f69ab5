"""What decoding has in common for all kinds: the table of kinds, identity, what null means, which field is at fault."""

import json
from collections.abc import Callable
from contextlib import suppress
from functools import reduce
from typing import Any, Final, get_args

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
from app.objects.decode_node import decode_node, decode_replica_set
from app.objects.decode_pod import decode_pod
from app.objects.resources import RESOURCES, Decoder, decode_identity
from core.events import Kind, Object
from core.objects.kinds import ControllerRef, DeviceClass, ReplicaSet, ReplicationController, Service
from core.objects.labels import EVERYTHING, NOTHING, Selector, SelectorError
from core.objects.node import Node, NodeMetrics
from core.objects.pod import Pod
from tests.app.objects.full_devices import FULL_DEVICES
from tests.app.objects.full_objects import EXPECTED, FULL_OBJECTS
from tests.builders import REQUIRED
from tests.fake_apiserver.resources import RESOURCES as SERVED
from tests.json_places import Place, places, replaced

each_kind = pytest.mark.parametrize(
    ("kind", "decode"),
    [pytest.param(resource.api_kind, resource.decode, id=resource.name) for resource in RESOURCES.values()],
)


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize("expected", [pytest.param(each, id=RESOURCES[type(each)].plural) for each in EXPECTED])
def test_an_object_is_reduced_to_what_scheduling_reads(expected: Object) -> None:
    text = json.dumps(FULL_OBJECTS[type(expected)]).encode()
    assert expected == RESOURCES[type(expected)].decode(text)


def test_every_kind_that_the_core_knows_has_a_resource_but_the_one_that_cannot_be_watched() -> None:
    assert set(get_args(Object)) - {NodeMetrics} == set(RESOURCES)
    assert all(resource.kind is kind for kind, resource in RESOURCES.items())


def test_only_pods_that_have_not_ended_are_followed() -> None:
    assert RESOURCES[Pod].field_selector == "status.phase!=Succeeded,status.phase!=Failed"
    assert {resource.field_selector for kind, resource in RESOURCES.items() if kind is not Pod} == {""}


@pytest.mark.parametrize(
    ("kind", "path", "rule"),
    [
        (Node, "/api/v1/nodes", 'apiGroups: [""], resources: ["nodes"], verbs: ["list", "watch"]'),
        (
            ReplicaSet,
            "/apis/apps/v1/replicasets",
            'apiGroups: ["apps"], resources: ["replicasets"], verbs: ["list", "watch"]',
        ),
    ],
)
def test_each_resource_is_listed_where_the_api_has_it_with_a_rule_for_a_cluster_role(
    kind: Kind, path: str, rule: str
) -> None:
    assert (RESOURCES[kind].path, RESOURCES[kind].rbac_rule) == (path, rule)
    served = {path: resource.kind for path, resource in SERVED.items()}
    assert {resource.path: resource.api_kind for resource in RESOURCES.values()}.items() <= served.items()


# Identity.


def test_an_identity_is_read_from_an_object_that_cannot_be_decoded() -> None:
    text = b'{"kind":7,"metadata":{"name":"p","namespace":"x","uid":"u","resourceVersion":"9","labels":3},"spec":[]}'
    with pytest.raises(DecodeError):
        RESOURCES[Pod].decode(text)
    assert decode_identity(text) == ("x/p", "u", "9")


@each_kind
def test_every_kind_reads_its_identity(kind: str, decode: Decoder) -> None:
    metadata = {"name": "x", "namespace": "shop", "uid": "u-1", "resourceVersion": "42"}
    text = encoded({"apiVersion": "any", "kind": kind, "metadata": metadata})
    decoded = decode(text)
    assert (decoded.name, decoded.uid, decoded.resource_version) == ("x", "u-1", "42")
    assert RESOURCES[type(decoded)].api_kind == kind
    assert decode_identity(text) == ("shop/x", "u-1", "42")
    if decoded.namespace:
        assert decoded.full_name == "shop/x"
        assert decode(encoded({"metadata": {"name": "x"}})).full_name == "default/x"
    else:
        assert decoded.full_name == "x"
    assert decode_identity(b'{"metadata":{"name":"n","namespace":"","uid":null}}') == ("n", "", "")


@each_kind
def test_an_object_of_another_kind_is_refused(kind: str, decode: Decoder) -> None:
    with pytest.raises(DecodeError, match=f"^kind: expected {kind}, got Secret$"):
        decode(b'{"kind":"Secret","metadata":{"name":"x"}}')
    decode(b'{"kind":"%s","metadata":{"name":"x"}}' % kind.encode())
    decode(b'{"kind":"","metadata":{"name":"x"}}')


# What is refused.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(b'{"metadata"', "malformed JSON: input data was truncated", id="truncated"),
        pytest.param(b"null", "expected object, got null", id="null"),
        pytest.param(b"[]", "expected object, got array", id="array"),
        pytest.param(b"{}", "metadata.name: required", id="no-metadata"),
        pytest.param(b'{"metadata":null}', "metadata.name: required", id="metadata-null"),
        pytest.param(b'{"metadata":{"name":null}}', "metadata.name: required", id="name-null"),
        pytest.param(b'{"metadata":{"name":""}}', "metadata.name: required", id="name-empty"),
        pytest.param(b'{"metadata":{"name":3}}', "metadata.name: expected str | null, got int", id="name-number"),
    ],
)
@pytest.mark.parametrize("decode", [*(resource.decode for resource in RESOURCES.values()), decode_identity])
def test_a_broken_object_is_refused_with_the_field(
    decode: Callable[[bytes], object], text: bytes, expected: str
) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(text)
    assert expected == str(caught.value)
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


@pytest.mark.parametrize(
    "spec", [b'"containers":[{"resources":%s}]', b'"overhead":%s', b'"nodeSelector":{"a":1,"b":%s}'], ids=bytes.decode
)
def test_nesting_near_the_limit_is_refused_in_whatever_way_the_field_is_read(spec: bytes) -> None:
    for depth in range(800, 1000):
        with suppress(DecodeError):
            decode_pod(b'{"metadata":{"name":"x"},"spec":{%s}}' % (spec % (b'{"a":' * depth + b"1" + b"}" * depth)))


def test_an_error_takes_the_path_of_what_encloses_it() -> None:
    error = DecodeError("metadata.name", "required")
    assert str(error.under("items[3]").under("Nodes")) == "Nodes.items[3].metadata.name: required"
    assert str(DecodeError("[0].weight", "broken").under("terms")) == "terms[0].weight: broken"
    assert str(DecodeError("", "malformed JSON").under("Pod")) == "Pod: malformed JSON"


# Labels and owners.


def owned(*owners: object, **metadata: object) -> ReplicaSet:
    return decode_replica_set(encoded({"metadata": {"name": "x", "ownerReferences": owners, **metadata}}))


def owner(name: str, *, controller: bool | None) -> dict[str, Any]:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": f"u-{name}"}
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
        pytest.param(LabelSelector({"a": "b"}, [Expression("a")]), NOTHING, id="broken"),
    ],
)
def test_a_broken_selector_can_be_taken_for_an_absent_one(selector: LabelSelector | None, expected: Selector) -> None:
    assert expected == selector_or_nothing(selector)


def test_labels_that_select_are_not_validated_and_none_select_nothing() -> None:
    assert selector_of_labels(None) == selector_of_labels({}) == NOTHING
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


def outcome(kind: Kind, value: object) -> object:
    """Decode an object. Return the field at fault if it is refused."""
    try:
        return RESOURCES[kind].decode(encoded(value))
    except DecodeError as error:
        return error.field


def written(place: Place) -> str:
    """Return a place as errors name it."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).removeprefix(".")


TEXT_MAPS = {"labels", "annotations", "matchLabels", "nodeSelector"}


def test_null_in_a_map_of_texts_is_the_empty_text_as_in_go() -> None:
    tried = set()
    for kind, full in FULL_OBJECTS.items():
        for place in places(full):
            of_selector = place[-2:-1] == ("selector",) and kind in {Service, ReplicationController}
            if (
                place[-2:-1]
                and (place[-2] in TEXT_MAPS or of_selector)
                and (kind is Pod or place[-2] != "nodeSelector")
            ):
                tried.add(place[-2])
                assert outcome(kind, replaced(full, place, None)) == outcome(kind, replaced(full, place, ""))
    assert tried == {*TEXT_MAPS, "selector"}


def test_the_key_of_a_wrong_value_in_a_map_is_named() -> None:
    labels = {"a": "x", "b.c/d": 1.5, "e": True, "f": None}
    for wrong, key in (({}, "b.c/d"), ({"b.c/d": "x"}, "e")):
        with pytest.raises(DecodeError) as caught:
            decode_node(json.dumps({"metadata": {"name": "n", "labels": {**labels, **wrong}}}).encode())
        assert caught.value.field == f"metadata.labels[{key}]"
    spec = {"topologySpreadConstraints": [{}, {"labelSelector": {"matchLabels": {"x": "y", "z": ["w"]}}}]}
    with pytest.raises(DecodeError) as caught:
        decode_pod(json.dumps({"metadata": {"name": "p"}, "spec": spec}).encode())
    assert caught.value.field == "spec.topologySpreadConstraints[1].labelSelector.matchLabels[z]"


@pytest.mark.parametrize("kind", RESOURCES, ids=lambda kind: RESOURCES[kind].name)
def test_a_field_of_the_wrong_type_is_refused_with_its_path_or_not_read_at_all(kind: Kind) -> None:
    full = FULL_OBJECTS[kind]
    whole, rejected = outcome(kind, full), 0
    for place in places(full)[1:]:
        reported = outcome(kind, replaced(full, place, [[]]))
        rejected += isinstance(reported, str)
        if isinstance(reported, str) and "[...]." in reported:  # msgspec names no key of a map but the last
            map_at = next(at for at, step in enumerate(place) if step in OF_OBJECTS)
            reported = reported.replace("[...]", f".{place[map_at + 1]}")
        assert reported == whole or reported in {
            written(place),
            f"{written(place[:-1])}[{place[-1]}]",
            f"{written(place)}[0]",
        }
    assert rejected >= 4  # the metadata, and at least the name, uid and resourceVersion in it


# Maps in which null is a value.
MAPS: Final = {"labels", "matchLabels", "nodeSelector", "selector", "annotations", "disruptedPods"}
# An empty one of these says more than none.
SAYING: Final = {"resources", "requests", "allocatedResources", "persistentVolumeClaim", "csi", "claimRef"}
SAYING_OF_DEVICES: Final = {
    *("cel", "exactly", "deviceSelector", "requestPolicy", "validRange", "allocation", "consumedCapacity", "capacity"),
    *("bindingConditions", "nodeSelector", "ints"),
}
OF_OBJECTS: Final = {"attributes", "counters", "capacity"}  # maps in which an empty object is a value
SELECTING: Final = {"selector", "labelSelector", "namespaceSelector", "nodeTopology", "required", "all"}
QUANTITIES: Final = {
    *("requests", "limits", "allocatable", "capacity", "overhead", "allocatedResources", "consumedCapacity")
}


@pytest.mark.parametrize("kind", RESOURCES, ids=lambda kind: RESOURCES[kind].name)
def test_a_field_that_is_null_or_empty_is_absent(kind: Kind) -> None:
    full: Any = FULL_OBJECTS[kind]
    for place in places(full)[1:]:
        holder: Any = reduce(lambda inner, step: inner[step], place[:-1], full)
        is_in_map = len(place) > 1 and place[-2] in MAPS | QUANTITIES and not isinstance(holder[place[-1]], dict | list)
        if isinstance(holder, dict) and not is_in_map:
            absent = {key: member for key, member in holder.items() if key != place[-1]}
            lacking = outcome(kind, replaced(full, place[:-1], absent))
            assert outcome(kind, replaced(full, place, None)) == lacking, written(place)
            says = SAYING_OF_DEVICES if kind in FULL_DEVICES or kind is DeviceClass else SAYING
            if place[-2:-1] and place[-2] in OF_OBJECTS and kind in FULL_DEVICES:
                continue
            if isinstance(holder[place[-1]], dict | list) and place[-1] not in says | SELECTING:
                assert outcome(kind, replaced(full, place, type(holder[place[-1]])())) == lacking, written(place)


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
