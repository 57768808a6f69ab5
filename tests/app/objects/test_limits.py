"""What Kubernetes itself bounds is refused by field on every way in, and nothing that an API server may have stored."""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec
import pytest

from app.objects.decode import DecodeError, GoStruct, is_longer, refuse_too_many_elements
from app.objects.decode_node import decode_node, decode_service
from app.objects.decode_pod import decode_pod
from app.objects.decode_storage import decode_persistent_volume
from app.verbs.wire_out import error_json, reason_json
from tests.builders import REQUIRED, expressed

KEY = f"{'d' * 253}/{'n' * 63}"


TERM = f"spec.affinity.podAffinity.{REQUIRED}[0]"
NODE_TERM = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0]"


def pod(metadata: Mapping[str, object] = MappingProxyType({}), **spec: object) -> bytes:
    return json.dumps({"metadata": {"name": "p", "namespace": "x", **metadata}, "spec": spec}).encode()


def term(**members: object) -> dict[str, object]:
    return {"podAffinity": {REQUIRED: [{"topologyKey": "zone", **members}]}}


def node_term(**members: object) -> dict[str, object]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [members]}}}


@pytest.mark.parametrize(
    ("text", "limit", "longer"), [("ab", 2, False), ("abc", 2, True), ("é", 1, True), ("", 0, False)]
)
def test_lengths_are_counted_in_bytes_as_go_does(text: str, limit: int, longer: bool) -> None:  # noqa: FBT001
    assert is_longer(text, limit) is longer


@pytest.mark.parametrize(
    "allowed",
    [
        pytest.param(pod({"name": "p" * 253, "namespace": "n" * 63, "uid": "u" * 317}), id="identity"),
        pytest.param(pod({"labels": {KEY: "v" * 63}}, nodeSelector={KEY: "v" * 63}), id="labels"),
        pytest.param(pod(tolerations=[{"key": KEY, "value": "v" * 63}]), id="toleration"),
        pytest.param(pod(affinity=term(topologyKey=KEY, namespaces=["n" * 63])), id="term"),
        pytest.param(
            pod(
                {"annotations": {"a": "b" * 100_000}, "ownerReferences": [{"name": "o" * 1000, "controller": True}]},
                nodeName="n" * 1000,
                schedulerName="s" * 1000,
                containers=[{"name": "c", "image": "i" * 1000}],
                volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c" * 1000}}],
                topologySpreadConstraints=[
                    {"topologyKey": "t" * 1000, "labelSelector": {"matchLabels": {"k" * 1000: "v"}}}
                ],
            ),
            id="without-limit",
        ),
        pytest.param(
            pod(affinity=node_term(matchExpressions=[{"key": KEY, "operator": "In", "values": ["v" * 1000]}])),
            id="values-of-node-affinity",
        ),
        pytest.param(pod(affinity=term(labelSelector=expressed("k", "In", "v" * 1000))), id="values-of-a-selector"),
    ],
)
def test_whatever_an_api_server_may_have_stored_is_read(allowed: bytes) -> None:
    assert decode_pod(allowed).name


@pytest.mark.parametrize(
    ("rejected", "message"),
    [
        (pod({"name": "p" * 254}), "metadata.name: longer than 253 bytes"),
        (pod({"name": "", "generateName": "p" * 254}), "metadata.generateName: longer than 253 bytes"),
        (pod({"name": "é" * 127}), "metadata.name: longer than 253 bytes"),
        (pod({"namespace": "n" * 64}), "metadata.namespace: longer than 63 bytes"),
        (pod({"uid": "u" * 318}), "metadata.uid: longer than 317 bytes"),
        (pod({"labels": {f"{KEY}k": "v"}}), "metadata.labels: a key longer than 317 bytes"),
        (pod({"labels": {"k": "v" * 64}}), "metadata.labels: the value of k is longer than 63 bytes"),
        (pod(nodeSelector={"k": "v" * 64}), "spec.nodeSelector: the value of k is longer than 63 bytes"),
        (pod(tolerations=[{}, {"key": f"{KEY}k"}]), "spec.tolerations[1].key: longer than 317 bytes"),
        (pod(tolerations=[{"key": "k", "value": "v" * 64}]), "spec.tolerations[0].value: longer than 63 bytes"),
        (pod(affinity=term(topologyKey=f"{KEY}k")), f"{TERM}.topologyKey: longer than 317 bytes"),
        (pod(affinity=term(namespaces=["a", "n" * 64])), f"{TERM}.namespaces[1]: longer than 63 bytes"),
        (
            pod(affinity=term(labelSelector={"matchLabels": {f"{KEY}k": "v"}})),
            f"{TERM}.labelSelector.matchLabels: longer than 317 bytes",
        ),
        (
            pod(affinity=term(namespaceSelector={"matchExpressions": [{"key": f"{KEY}k"}]})),
            f"{TERM}.namespaceSelector.matchExpressions[0].key: longer than 317 bytes",
        ),
        (
            pod(affinity=node_term(matchExpressions=[{"key": f"{KEY}k", "operator": "Exists"}])),
            f"{NODE_TERM}.matchExpressions[0].key: longer than 317 bytes",
        ),
    ],
    ids=lambda column: column.partition(": ")[0] if isinstance(column, str) else "",
)
def test_what_no_api_server_stores_is_refused_by_field(rejected: bytes, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_pod(rejected)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("decode", "rejected", "message"),
    [
        (
            decode_node,
            {"metadata": {"name": "n"}, "spec": {"taints": [{"key": "k", "value": "v" * 64}]}},
            "spec.taints[0].value: longer than 63 bytes",
        ),
        (decode_service, {"metadata": {"name": "s" * 254}}, "metadata.name: longer than 253 bytes"),
        (
            decode_persistent_volume,
            {
                "metadata": {"name": "v"},
                "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [expressed("k" * 318, "In")]}}},
            },
            "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: longer than 317 bytes",
        ),
    ],
    ids=["taint", "other-kinds", "volume"],
)
def test_other_kinds_are_bounded_as_well(decode: Callable[[bytes], object], rejected: object, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(json.dumps(rejected).encode())
    assert str(caught.value) == message


def test_messages_about_very_many_values_do_not_each_repeat_the_key() -> None:
    selector = {"matchExpressions": [{"key": "k" * 30_000, "operator": "In", "values": ["!"] * 8_000}]}
    read = decode_pod(pod(topologySpreadConstraints=[{"topologyKey": "zone", "labelSelector": selector}]))
    assert len(read.spread[0].selector_error) < 100_000


# Bodies and messages.


def test_five_million_elements_are_allowed_and_more_are_not() -> None:
    refuse_too_many_elements(b"," * 5_000_000)
    with pytest.raises(DecodeError, match=r"^body: more than 5000000 elements$"):
        refuse_too_many_elements(b"," * 5_000_001)


def test_a_message_is_cut_to_a_length_that_a_log_line_can_take_and_that_of_a_node_shorter() -> None:
    assert json.loads(error_json('say "no"')) == json.loads(reason_json('say "no"')) == 'say "no"'
    assert len(json.loads(error_json("é" * 20_000))) == 8192
    assert len(json.loads(reason_json("é" * 20_000))) == 1024


# Structs of Go.


PLACE = GoStruct("Place", "Node", "PodUID")


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        pytest.param(b'{"Node":"a","PodUID":1}', {"Node": b'"a"', "PodUID": b"1"}, id="as-go-writes"),
        pytest.param(b'{"NODE":"a","poduid":1}', {"Node": b'"a"', "PodUID": b"1"}, id="any-case"),
        pytest.param(b'{"node":"a","Node":"b","nODE":"c"}', {"Node": b'"c"'}, id="last-spelling-counts"),
        pytest.param(b'{"PodUID":null}', {"PodUID": b"null"}, id="null-is-given"),
        pytest.param(b"{}", {}, id="nothing"),
    ],
)
def test_fields_have_gos_spelling_whatever_case_they_come_in(body: bytes, fields: dict[str, bytes]) -> None:
    assert fields == {name: bytes(raw) for name, raw in PLACE.decode(body).items()}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b'{"node":"a","Later":1}', "Later: unknown field; Place has Node, PodUID", id="unknown"),
        pytest.param(b"[]", "body: expected object, got array", id="no-object"),
        pytest.param(b"{", "body: malformed JSON: ", id="no-json"),
    ],
)
def test_a_body_that_is_something_else_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        PLACE.decode(body)
    assert str(caught.value).startswith(message)


def test_unknown_members_of_an_object_inside_are_passed_over() -> None:
    members = {"node": msgspec.Raw(b"1"), "Later": msgspec.Raw(b"2")}
    assert PLACE.fields_of(members) == {"Node": msgspec.Raw(b"1")}
