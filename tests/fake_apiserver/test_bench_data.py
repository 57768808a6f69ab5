"""The bench cluster in the store: what `tests.bench.cluster` says, in the size of real objects."""

import statistics

import pytest

from app.objects.decode_node import decode_node
from app.objects.decode_pod import decode_pod
from tests.bench import cluster
from tests.fake_apiserver.bench_data import bench_store
from tests.fake_apiserver.resources import NAMESPACES, NODES, PODS, REPLICA_SETS, RESOURCES, SERVICES
from tests.fake_apiserver.store import Store
from tests.fake_apiserver.stored import Object

PODS_COUNT, NODES_COUNT = 12_500, 40  # 250 apps: more than there are namespaces, so that terms name other apps


@pytest.fixture(scope="module")
def store() -> Store:
    return bench_store(NODES_COUNT, PODS_COUNT, history=100)


def scheduling_part(pod: Object) -> Object:
    """Reduce a pod to what `tests.bench.cluster` says of it."""
    metadata, spec = pod["metadata"], pod["spec"]
    containers = [{"resources": container["resources"]} for container in spec["containers"]]
    given = {"app", "tier", "version", "pod-template-hash"}
    return {
        "name": metadata["name"],
        "namespace": metadata["namespace"],
        "labels": {key: value for key, value in metadata["labels"].items() if key in given},
        "node": spec["nodeName"],
        "affinity": spec.get("affinity"),
        "containers": containers,
    }


def test_every_pod_is_the_one_of_the_bench_cluster(store: Store) -> None:
    made = {pod["metadata"]["name"]: pod for pod in store.objects(PODS.path)}
    assert len(made) == PODS_COUNT
    for pod in cluster.pods(PODS_COUNT, NODES_COUNT):
        assert scheduling_part(made[pod["metadata"]["name"]]) == scheduling_part(pod)


def test_every_node_and_namespace_is_the_one_of_the_bench_cluster(store: Store) -> None:
    for node, made in zip(cluster.nodes(NODES_COUNT), store.objects(NODES.path), strict=True):
        assert made["metadata"]["labels"] == node["metadata"]["labels"]
        assert made["status"]["allocatable"] == node["status"]["allocatable"]
    assert [made["metadata"]["labels"] for made in store.objects(NAMESPACES.path)] == [
        namespace["metadata"]["labels"] for namespace in cluster.namespaces()
    ]


def test_versions_and_uids_are_unique_and_versions_have_no_gap(store: Store) -> None:
    everything = [each for collection in store.collections.values() for each in collection.objects.values()]
    assert sorted(each.version for each in everything) == list(range(2, store.version + 1))
    assert len({each.uid for each in everything}) == len(everything)
    for each in everything[::97]:
        metadata = each.object()["metadata"]
        assert (metadata["uid"], metadata["resourceVersion"]) == (each.uid, str(each.version))
        assert (metadata["name"], metadata.get("namespace", "")) == (each.name, each.namespace)


def test_objects_have_the_size_of_real_ones(store: Store) -> None:
    sizes = {path: [len(each.rest) for each in store.collections[path].objects.values()] for path in RESOURCES}
    assert 3_000 < statistics.mean(sizes[PODS.path]) < 4_000
    assert 5_000 < statistics.mean(sizes[NODES.path]) < 8_000


def test_the_fields_that_selectors_read_are_those_of_the_object(store: Store) -> None:
    for stored in list(store.collections[PODS.path].objects.values())[::101]:
        pod = stored.object()
        assert (stored.phase, stored.node_name) == (pod["status"]["phase"], pod["spec"]["nodeName"]) != ("", "")


def test_pods_belong_to_the_replica_set_of_their_app(store: Store) -> None:
    owners = {each["metadata"]["uid"]: each for each in store.objects(REPLICA_SETS.path)}
    for pod in store.objects(PODS.path)[::101]:
        (reference,) = pod["metadata"]["ownerReferences"]
        owner = owners[reference["uid"]]
        assert (owner["metadata"]["name"], owner["metadata"]["namespace"]) == (
            reference["name"],
            pod["metadata"]["namespace"],
        )
        selected = owner["spec"]["selector"]["matchLabels"].items()
        assert selected <= pod["metadata"]["labels"].items()
    assert len(owners) == len(store.objects(SERVICES.path)) == 250


def test_kindred_reads_them(store: Store) -> None:
    for stored in list(store.collections[PODS.path].objects.values())[::101]:
        assert not decode_pod(b"{" + stored.rest).affinity.errors
    for stored in store.collections[NODES.path].objects.values():
        assert decode_node(b"{" + stored.rest).name == stored.name


def test_a_cluster_may_have_no_pods() -> None:
    store = bench_store(3, 0, history=10)
    assert [len(store.collections[path].objects) for path in (NODES.path, PODS.path)] == [3, 0]
