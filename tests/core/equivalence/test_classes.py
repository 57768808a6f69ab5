"""Which pods are of one class, and the hash by which people know it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from app.objects.decode_pod import decode_pod
from core.equivalence.classes import ClassFieldError, Classifier, ClassKey, Mode, equivalence_hash
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Demand, Pod, PodClaim
from core.plugins.imagelocality import ImageLocality
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from core.plugins.nodeaffinity.plugin import NodeAffinity
from core.plugins.nodeports import NodePorts
from core.plugins.noderesources.fit import NodeResourcesFit
from core.plugins.nodevolumelimits.plugin import NodeVolumeLimits
from core.plugins.podtopologyspread.plugin import PodTopologySpread
from core.plugins.tainttoleration import TaintToleration
from core.plugins.volumebinding.plugin import VolumeBinding
from tests.builders import Object, expressed, labelled, make_node, make_pod, term
from tests.core.decoded import mirror_of, pod_of
from tests.core.equivalence.said_plugin import StatedPlugin

PLUGINS: Final = (
    InterPodAffinity(),
    NodeAffinity(),
    NodePorts(),
    NodeResourcesFit(),
    TaintToleration(),
    PodTopologySpread(),
    ImageLocality(),
    NodeVolumeLimits(),
)


def decoded(spec: Object, metadata: Object | None = None) -> Pod:
    """Decode a pod that says this, of a controller."""
    owner = {"kind": "ReplicaSet", "name": "rs", "uid": "rs-1", "controller": True}
    identity = {"name": "p", "namespace": "default", "uid": "p", "ownerReferences": [owner]}
    return decode_pod(json.dumps({"metadata": {**identity, **(metadata or {})}, "spec": spec}).encode())


def key_of(pod: Pod, mode: Mode = "controller") -> ClassKey | None:
    return Classifier(PLUGINS, mode).key(ClusterMirror(), pod)


def owned(name: str, controller: str = "rs-1") -> Pod:
    return pod_of(make_pod(name).label("app", "web").owned_by("ReplicaSet", controller, controller))


def test_pods_of_one_controller_that_look_alike_are_of_one_class() -> None:
    assert key_of(owned("p")) == key_of(owned("q"))


def test_a_pod_without_a_controller_has_no_class() -> None:
    assert key_of(pod_of(make_pod("p"))) is None


def test_mode_spec_gives_every_pod_a_class() -> None:
    one, other = (pod_of(make_pod(name).label("app", "web")) for name in "pq")

    assert key_of(one, "spec") is not None
    assert key_of(one, "spec") == key_of(other, "spec")
    assert key_of(one, "spec") != key_of(replace(one, labels={}), "spec")


def test_what_no_plugin_reads_is_not_part_of_the_class() -> None:
    classifier = Classifier([StatedPlugin(class_fields=("namespace",))], "controller")
    pod = owned("p")

    assert classifier.fields == ("namespace",)
    assert classifier.key(ClusterMirror(), pod) == classifier.key(
        ClusterMirror(), replace(pod, labels={"app": "db"}, requests={"cpu": 1}, resource_version="7")
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(
            {"metadata": {"labels": {"a": "1", "b": "2"}}},
            {"metadata": {"labels": {"b": "2", "a": "1"}}},
            id="labels-in-another-order",
        ),
        pytest.param({"metadata": {"labels": None}}, {}, id="labels-null"),
        pytest.param({"metadata": {"labels": {}}}, {}, id="labels-empty"),
        pytest.param(
            {"tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}]},
            {"tolerations": [{"key": "b", "operator": "Exists"}, {"key": "a", "operator": "Exists"}]},
            id="tolerations-in-another-order",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "value": "x"}]},
            {"tolerations": [{"key": "a", "operator": "Equal", "value": "x", "effect": None}]},
            id="toleration-operator-absent",
        ),
        pytest.param({"tolerations": None}, {"tolerations": []}, id="tolerations-null"),
        pytest.param(
            {"nodeSelector": {"a": "1", "b": "2"}}, {"nodeSelector": {"b": "2", "a": "1"}}, id="node-selector"
        ),
        pytest.param({"nodeSelector": None}, {"nodeSelector": {}}, id="node-selector-null"),
        pytest.param({"affinity": None}, {"affinity": {}}, id="affinity-null"),
        pytest.param(
            {"affinity": {"podAffinity": None, "podAntiAffinity": {}, "nodeAffinity": {}}}, {}, id="affinity-of-nothing"
        ),
        pytest.param({"volumes": None}, {"volumes": []}, id="volumes-null"),
        pytest.param({"topologySpreadConstraints": None}, {"topologySpreadConstraints": []}, id="constraints-null"),
        pytest.param(
            {"containers": [{"image": "a"}, {"image": "b"}]},
            {"containers": [{"image": "b:latest"}, {"image": "a", "ports": [{"containerPort": 80}]}]},
            id="images-in-another-order",
        ),
        pytest.param(
            {"containers": [{"image": "a", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]},
            {"containers": [{"image": "a", "resources": {"requests": {"memory": "1024Mi", "cpu": "1000m"}}}]},
            id="requests-in-another-order-and-unit",
        ),
    ],
)
def test_null_absent_and_empty_are_equal_and_order_does_not_matter(one: Object, other: Object) -> None:
    pods = [decoded({k: v for k, v in each.items() if k != "metadata"}, each.get("metadata")) for each in (one, other)]

    keys = [key_of(pod) for pod in pods]

    assert keys[0] is not None
    assert keys[0] == keys[1]
    assert equivalence_hash(keys[0]) == equivalence_hash(keys[1])


def test_the_order_of_requirements_and_of_their_values_does_not_matter() -> None:
    def selecting(*expressions: Object) -> Pod:
        selector = {"matchExpressions": [each["matchExpressions"][0] for each in expressions]}
        return pod_of(
            make_pod("p")
            .required_affinity(term("zone", selector))
            .spread("zone", selector)
            .required_node_affinity(selector)
        )

    exists = expressed("tier", "Exists")
    one = selecting(expressed("app", "In", "a", "b"), exists)
    other = selecting(exists, expressed("app", "In", "b", "a", "b"))

    assert key_of(one, "spec") == key_of(other, "spec")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("default", "other", id="namespace"),
        pytest.param({"app": "a"}, {"app": "b"}, id="value"),
        pytest.param({"app": "a"}, {"tier": "a"}, id="key"),
        pytest.param({"app": "a"}, {}, id="absent"),
        pytest.param({"app": ""}, {}, id="an-empty-value-is-a-value"),
    ],
)
def test_what_a_plugin_reads_is_part_of_the_class(one: Any, other: Any) -> None:  # noqa: ANN401 - of either field
    field = "namespace" if isinstance(one, str) else "labels"
    pod = owned("p")

    assert key_of(replace(pod, **{field: one})) != key_of(replace(pod, **{field: other}))


def test_a_pod_with_an_ephemeral_volume_is_of_a_class_of_its_own() -> None:
    """Its claim has to have been made for it, by its uid, which no other pod of the class would have."""
    classifier = Classifier([VolumeBinding()], "spec")
    one = replace(owned("p"), volumes=(PodClaim("p-scratch", ephemeral=True),))
    other = replace(one, uid="default/p again")

    assert classifier.key(ClusterMirror(), one) != classifier.key(ClusterMirror(), other)
    assert classifier.representative(ClusterMirror(), one).uid == one.uid
    assert classifier.representative(ClusterMirror(), one).full_name == one.full_name


def test_plugins_get_nothing_but_the_fields_that_are_declared() -> None:
    classifier = Classifier([StatedPlugin(class_fields=("labels",)), NodePorts()], "controller")
    pod = replace(pod_of(make_pod("p").label("app", "web").host_port(80).requests(cpu="1")), node_name="n", uid="u")

    assert classifier.representative(ClusterMirror(), pod) == Pod(
        "", "", "", labels={"app": "web"}, demand=Demand(host_ports=pod.demand.host_ports)
    )


def test_a_field_that_pods_do_not_have_is_an_error_that_names_the_plugin() -> None:
    with pytest.raises(ClassFieldError, match="Said: pods have no field lables"):
        Classifier([StatedPlugin(class_fields=("lables",))], "spec")


# The hash.

_PRINT_HASH: Final = """
from tests.core.equivalence.test_classes import full_key
from core.equivalence.classes import equivalence_hash
print(equivalence_hash(full_key()))
"""


def full_key() -> ClassKey:
    """Return the key of a pod that has everything, of sets and mappings above all."""
    builder = (
        make_pod("p").label("app", "web").label("tier", "1").label("team", "red").owned_by("ReplicaSet", "rs", "rs-1")
    )
    for name in "abcdef":
        builder = builder.toleration(name, "Exists").host_port(ord(name)).image(name)
    builder = builder.requests(cpu="1", memory="1Gi").requests(**{"example.com/gpu": 1})
    builder = builder.required_anti_affinity(term("zone", labelled(app="web"), namespaces=["a", "b", "c"]))
    builder = builder.spread("zone", labelled(app="web")).node_selector({"disk": "ssd", "zone": "a"})
    rbd = {"name": "v", "rbd": {"monitors": ["m1", "m2", "m3"], "pool": "p", "image": "i"}}
    key = Classifier(PLUGINS, "controller").key(
        mirror_of(make_node("n")), pod_of(builder.volume(rbd).volume({"persistentVolumeClaim": {"claimName": "c"}}))
    )
    assert key is not None
    return key


def test_the_hash_is_the_same_in_every_process() -> None:
    found = subprocess.run(  # noqa: S603 - this interpreter, and a program that stands here
        [sys.executable, "-c", _PRINT_HASH],
        env={"PYTHONHASHSEED": "4242"},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
    )

    assert int(found.stdout) == equivalence_hash(full_key())
