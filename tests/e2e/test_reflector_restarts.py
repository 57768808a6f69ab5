"""List+watch of a real API server that was away, has forgotten, or is another one: the mirror equals the cluster again.

A kube-apiserver that was started anew has an empty watch cache, and so most versions have expired for it. To see a
watch resumed behind a restart, and versions that expired in etcd, it runs without the cache.
"""

import pytest

from tests.e2e.api import NAMESPACES, NODES
from tests.e2e.cluster import NAMESPACE, PODS, Cluster
from tests.e2e.follower import FOLLOWED, PATIENCE, Counts, Follower, churn, most_attempts, populate
from tests.e2e.impatient import STALE_AFTER
from tests.e2e.programs import wait_until

NO_CACHE = ("--watch-cache=false",)
CROWD = 600


def test_another_cluster_with_lower_versions_takes_the_place_of_the_one_that_was_known(cluster: Cluster) -> None:
    plane = cluster.plane
    plane.serve_with()
    populate(cluster, pods=200)
    churn(cluster)  # nodes and namespaces last
    proxy = cluster.start_proxy()
    settings = {"KINDRED_STALE_AFTER": str(STALE_AFTER)}
    follower = Follower(cluster.start_kindred(settings, server=proxy.url, module="tests.e2e.impatient"))
    follower.until_equal()
    before = int(cluster.api.get(f"{NODES}?limit=1")["metadata"]["resourceVersion"])
    plane.api_server.kill()
    plane.etcd.kill()
    plane.start_etcd("another-etcd")
    plane.serve_with()
    # The token is of a service account that is not there.
    wait_until(lambda: all("401" in follower.problem(resource) for resource in FOLLOWED), PATIENCE, "refused with 401")
    follower.mark()
    cluster.admit_kindred()
    cluster.api.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    populate(cluster)
    follower.until_equal()
    assert int(cluster.api.get(f"{NODES}?limit=1")["metadata"]["resourceVersion"]) < before
    for resource in FOLLOWED:
        counts = follower.counts(resource)
        assert counts.relists == {"went-back": 1}
        assert counts.requests["watch-list"] == 1
    assert follower.known() == len(cluster.api.items(PODS))


@pytest.mark.parametrize(
    "flags", [pytest.param((), id="too-old-for-a-new-watch-cache"), pytest.param(NO_CACHE, id="compacted-in-etcd")]
)
def test_versions_that_expire_while_connections_are_dead_cost_a_sync(cluster: Cluster, flags: tuple[str, ...]) -> None:
    cluster.plane.serve_with(*flags)
    populate(cluster)
    proxy = cluster.start_proxy()
    follower = Follower(cluster.start_kindred(server=proxy.url))
    follower.until_equal()
    follower.mark()
    proxy.hold()
    churn(cluster)
    cluster.plane.compact()
    if not flags:
        cluster.plane.api_server.kill()
        cluster.plane.serve_with()
    proxy.cut()
    proxy.release()
    follower.until_equal()
    expected = Counts({"watch": 1, "watch-list": 1}, {"ConnectionFailed": 1, "in-stream 410": 1}, {"expired": 1})
    assert {resource: follower.counts(resource) for resource in FOLLOWED} == dict.fromkeys(FOLLOWED, expected)


def test_an_api_server_that_is_killed_and_started_again_is_resumed_from(cluster: Cluster) -> None:
    cluster.plane.serve_with(*NO_CACHE)
    populate(cluster)
    follower = Follower(cluster.start_kindred())
    follower.until_equal()
    follower.mark()
    cluster.plane.api_server.kill()
    lasted = wait_until(
        lambda: all("Connection refused" in follower.problem(resource) for resource in FOLLOWED), PATIENCE, "refused"
    )
    for resource in FOLLOWED:
        counts = follower.counts(resource)
        assert counts.failures.keys() == {"ConnectionFailed"}
        assert sum(counts.failures.values()) <= most_attempts(lasted)
    cluster.plane.serve_with(*NO_CACHE)
    churn(cluster)
    follower.until_equal()
    for resource in FOLLOWED:
        counts = follower.counts(resource)
        assert counts.requests.keys() == {"watch"}
        assert counts.relists == {}


def test_an_api_server_without_watch_list_is_listed_by_pages(cluster: Cluster) -> None:
    cluster.plane.serve_with("--feature-gates=WatchList=false")
    populate(cluster, pods=CROWD)
    follower = Follower(cluster.start_kindred())
    follower.until_equal()
    churn(cluster)
    follower.until_equal()
    for resource, pages in (("nodes", 1), ("pods", 2), ("namespaces", 1)):
        assert follower.counts(resource) == Counts({"watch-list": 1, "list": pages, "watch": 1})
