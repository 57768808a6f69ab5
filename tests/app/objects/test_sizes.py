"""What Kubernetes itself bounds is refused by field on every way in, and nothing that an API server may have stored."""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType

import pytest

from app.objects.decode import DecodeError, is_longer
from app.objects.decode_kinds import decode_service
from app.objects.decode_node import decode_node
from app.objects.decode_pod import decode_pod
from app.objects.decode_storage import decode_persistent_volume
from tests.builders import REQUIRED

KEY = f"{'d' * 253}/{'n' * 63}"


def pod(metadata: Mapping[str, object] = MappingProxyType({}), **spec: object) -> bytes:
    return with_spec(spec, metadata)


def with_spec(spec: object, metadata: Mapping[str, object] = MappingProxyType({})) -> bytes:
    return json.dumps({"metadata": {"name": "p", "namespace": "x", **metadata}, "spec": spec}).encode()


def term(**members: object) -> dict[str, object]:
    return {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "zone", **members}]}}}


def node_term(**members: object) -> dict[str, object]:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [members]}}}}


TERM = f"spec.affinity.podAffinity.{REQUIRED}[0]"
NODE_TERM = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0]"


@pytest.mark.parametrize(
    ("text", "limit", "longer"), [("ab", 2, False), ("abc", 2, True), ("é", 1, True), ("", 0, False)]
)
def test_lengths_are_counted_in_bytes_as_go_does(text: str, limit: int, longer: bool) -> None:  # noqa: FBT001
    assert is_longer(text, limit) is longer


@pytest.mark.parametrize(
    "allowed",
    [
        pytest.param(pod({"name": "p" * 253, "namespace": "n" * 63, "uid": "u" * 317}), id="identity"),
        pytest.param(pod({"labels": {KEY: "v" * 63}}), id="labels"),
        pytest.param(pod(nodeSelector={KEY: "v" * 63}), id="node-selector"),
        pytest.param(pod(tolerations=[{"key": KEY, "value": "v" * 63}]), id="toleration"),
        pytest.param(with_spec(term(topologyKey=KEY, namespaces=["n" * 63])), id="term"),
        pytest.param(pod(nodeName="n" * 1000), id="node-name-of-a-binding"),
        pytest.param(pod(containers=[{"name": "c", "image": "i" * 1000}]), id="image"),
        pytest.param(pod(schedulerName="s" * 1000), id="scheduler"),
        pytest.param(pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c" * 1000}}]), id="claim"),
        pytest.param(pod({"annotations": {"a": "b" * 100_000}}), id="annotations"),
        pytest.param(pod({"ownerReferences": [{"name": "o" * 1000, "controller": True}]}), id="owner"),
        pytest.param(
            with_spec(node_term(matchExpressions=[{"key": KEY, "operator": "In", "values": ["v" * 1000]}])),
            id="values-of-node-affinity",
        ),
        pytest.param(
            with_spec(
                term(labelSelector={"matchExpressions": [{"key": "k", "operator": "In", "values": ["v" * 1000]}]})
            ),
            id="values-of-a-selector",
        ),
        pytest.param(
            pod(
                topologySpreadConstraints=[
                    {"topologyKey": "t" * 1000, "labelSelector": {"matchLabels": {"k" * 1000: "v"}}}
                ]
            ),
            id="constraint",
        ),
    ],
)
def test_whatever_an_api_server_may_have_stored_is_read(allowed: bytes) -> None:
    assert decode_pod(allowed).name


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        pytest.param(pod({"name": "p" * 254}), "metadata.name: longer than 253 bytes", id="name"),
        pytest.param(
            pod({"name": "", "generateName": "p" * 254}), "metadata.generateName: longer than 253 bytes", id="generate"
        ),
        pytest.param(pod({"name": "é" * 127}), "metadata.name: longer than 253 bytes", id="bytes-not-characters"),
        pytest.param(pod({"namespace": "n" * 64}), "metadata.namespace: longer than 63 bytes", id="namespace"),
        pytest.param(pod({"uid": "u" * 318}), "metadata.uid: longer than 317 bytes", id="uid"),
        pytest.param(pod({"labels": {f"{KEY}k": "v"}}), "metadata.labels: a key longer than 317 bytes", id="label-key"),
        pytest.param(
            pod({"labels": {"k": "v" * 64}}),
            "metadata.labels: the value of k is longer than 63 bytes",
            id="label-value",
        ),
        pytest.param(
            pod(nodeSelector={"k": "v" * 64}),
            "spec.nodeSelector: the value of k is longer than 63 bytes",
            id="selector",
        ),
        pytest.param(
            pod(tolerations=[{}, {"key": f"{KEY}k"}]),
            "spec.tolerations[1].key: longer than 317 bytes",
            id="toleration-key",
        ),
        pytest.param(
            pod(tolerations=[{"key": "k", "value": "v" * 64}]),
            "spec.tolerations[0].value: longer than 63 bytes",
            id="toleration-value",
        ),
        pytest.param(
            with_spec(term(topologyKey=f"{KEY}k")), f"{TERM}.topologyKey: longer than 317 bytes", id="topology-key"
        ),
        pytest.param(
            with_spec(term(namespaces=["a", "n" * 64])), f"{TERM}.namespaces[1]: longer than 63 bytes", id="namespaces"
        ),
        pytest.param(
            with_spec(term(labelSelector={"matchLabels": {f"{KEY}k": "v"}})),
            f"{TERM}.labelSelector.matchLabels: longer than 317 bytes",
            id="match-labels",
        ),
        pytest.param(
            with_spec(term(namespaceSelector={"matchExpressions": [{"key": f"{KEY}k"}]})),
            f"{TERM}.namespaceSelector.matchExpressions[0].key: longer than 317 bytes",
            id="namespace-selector",
        ),
        pytest.param(
            with_spec(node_term(matchExpressions=[{"key": f"{KEY}k", "operator": "Exists"}])),
            f"{NODE_TERM}.matchExpressions[0].key: longer than 317 bytes",
            id="node-affinity",
        ),
    ],
)
def test_what_no_api_server_stores_is_refused_by_field(refused: bytes, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_pod(refused)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("decode", "refused", "message"),
    [
        pytest.param(
            decode_node,
            {"metadata": {"name": "n"}, "spec": {"taints": [{"key": "k", "value": "v" * 64}]}},
            "spec.taints[0].value: longer than 63 bytes",
            id="taint",
        ),
        pytest.param(
            decode_service, {"metadata": {"name": "s" * 254}}, "metadata.name: longer than 253 bytes", id="other-kinds"
        ),
        pytest.param(
            decode_persistent_volume,
            {
                "metadata": {"name": "v"},
                "spec": {
                    "nodeAffinity": {
                        "required": {
                            "nodeSelectorTerms": [{"matchExpressions": [{"key": "k" * 318, "operator": "In"}]}]
                        }
                    }
                },
            },
            "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: longer than 317 bytes",
            id="volume",
        ),
    ],
)
def test_other_kinds_are_bounded_as_well(decode: Callable[[bytes], object], refused: object, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(json.dumps(refused).encode())
    assert str(caught.value) == message


def test_messages_about_very_many_values_do_not_each_repeat_the_key() -> None:
    selector = {"matchExpressions": [{"key": "k" * 30_000, "operator": "In", "values": ["!"] * 8_000}]}
    read = decode_pod(pod(topologySpreadConstraints=[{"topologyKey": "zone", "labelSelector": selector}]))
    assert len(read.spread[0].selector_error) < 100_000
