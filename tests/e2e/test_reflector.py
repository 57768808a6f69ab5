"""List+watch of a real API server whose connections break, stall and are refused: the mirror equals the cluster again.

What of the fake API server's faults (tests/fake_apiserver/faults.py) is not here, that one alone can show, as a real
kube-apiserver cannot be brought to it at will: answers and lines that are no JSON, of an unknown type, or not to be
decoded; gzip that was not asked for; events told twice; watches that are closed as soon as they are accepted; 500, 503
and 504, also in a stream; lists that expire between two pages; WatchList that is ignored instead of refused.
"""

import socket
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import httpx
import pytest

from tests.e2e.api import NAMESPACES, NODES
from tests.e2e.cluster import NAMESPACE, PODS, Cluster
from tests.e2e.conftest import Note
from tests.e2e.follower import FOLLOWED, Counts, Follower, churn, populate
from tests.e2e.impatient import STALE_AFTER
from tests.e2e.kindred import BINDS
from tests.e2e.programs import PATIENCE, wait_until
from tests.e2e.proxy import ApiProxy
from tests.e2e.shapes import on, pod

LATE: Final = 0.5  # seconds
FLOW_CONTROL: Final = "/apis/flowcontrol.apiserver.k8s.io/v1"
ROLE_BINDINGS: Final = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
SERVICE_ACCOUNTS: Final = "/api/v1/namespaces/kindred/serviceaccounts"
NOBODY_SERVED: Final[Mapping[str, Any]] = {
    "metadata": {"name": "nobody"},
    "spec": {
        "type": "Limited",
        # Without a limit it borrows seats of other levels within ten seconds of demand (apf_controller.go).
        "limited": {
            "nominalConcurrencyShares": 0,
            "lendablePercent": 0,
            "borrowingLimitPercent": 0,
            "limitResponse": {"type": "Reject"},
        },
    },
}
KINDRED_IS_NOBODY: Final[Mapping[str, Any]] = {
    "metadata": {"name": "kindred-is-nobody"},
    "spec": {
        "priorityLevelConfiguration": {"name": "nobody"},
        "matchingPrecedence": 2,  # 1 is that of `exempt` alone
        "rules": [
            {
                "subjects": [{"kind": "ServiceAccount", "serviceAccount": {"namespace": "kindred", "name": "kindred"}}],
                "resourceRules": [
                    {
                        "verbs": ["*"],
                        "apiGroups": ["*"],
                        "resources": ["*"],
                        "clusterScope": True,
                        "namespaces": ["*"],
                    }
                ],
            }
        ],
    },
}


def impatient(cluster: Cluster, proxy: ApiProxy) -> Follower:
    """Start a Kindred behind a proxy that sees soon that nothing comes."""
    settings = {"KINDRED_STALE_AFTER": str(STALE_AFTER)}
    return Follower(cluster.start_kindred(settings, server=proxy.url, module="tests.e2e.impatient"))


def test_the_first_sync_is_one_watch_list_that_goes_on_as_a_watch(cluster: Cluster) -> None:
    populate(cluster)
    follower = Follower(cluster.start_kindred())
    follower.until_equal()
    churn(cluster)
    follower.until_equal()
    assert {resource: follower.counts(resource) for resource in FOLLOWED} == dict.fromkeys(
        FOLLOWED, Counts({"watch-list": 1})
    )


def test_connections_that_are_cut_amid_events_are_resumed(cluster: Cluster) -> None:
    populate(cluster)
    proxy = cluster.start_proxy()
    follower = Follower(cluster.start_kindred(server=proxy.url))
    follower.until_equal()
    follower.mark()
    with ThreadPoolExecutor(1) as next_to:
        # Late, so that there are always events on their way.
        proxy.delay = LATE
        crowd = [on(pod(f"crowd-{index}"), f"node-{index % 3:04}") for index in range(300)]
        before = follower.known()
        made = next_to.submit(cluster.create_pods, crowd)
        wait_until(lambda: follower.known() > before, PATIENCE, "some are told")
        proxy.cut()
        proxy.delay = 0.0
        made.result()
    churn(cluster)
    follower.until_equal()
    assert {resource: follower.counts(resource) for resource in FOLLOWED} == dict.fromkeys(
        FOLLOWED, Counts({"watch": 1}, {"ConnectionFailed": 1})
    )


def test_connections_on_which_nothing_comes_are_given_up_and_questions_refused_meanwhile(cluster: Cluster) -> None:
    populate(cluster)
    proxy = cluster.start_proxy()
    follower = impatient(cluster, proxy)
    follower.until_equal()
    follower.mark()
    proxy.hold()
    churn(cluster)
    follower.until_stale("nothing received for 2 s")
    requested = proxy.watches
    response = follower.kindred.ask("filter", {"Pod": pod("asked"), "NodeNames": ["node-0000"]})
    assert response["Error"].startswith("the mirror is stale: ")
    for resource in FOLLOWED:
        counts = follower.counts(resource)
        assert counts.failures.keys() == {"ReadTimeout"}
        assert counts.failures["ReadTimeout"] <= follower.most_attempts()
    proxy.release()
    follower.until_equal()
    assert proxy.watches > requested
    for resource in FOLLOWED:
        assert follower.counts(resource).relists == {}
        # Of the watches that were quiet, whether the server is where it was; none of it is a sync.
        assert follower.counts(resource).requests.keys() <= {"watch", "list"}


def lose_the_account(cluster: Cluster) -> Callable[[], object]:
    """Delete the service account, which makes its token void; return what makes both again."""
    cluster.api.delete(f"{SERVICE_ACCOUNTS}/kindred")
    return cluster.admit_kindred


def lose_the_rights(cluster: Cluster) -> Callable[[], object]:
    """Delete the binding of the role; return what makes it again."""
    cluster.api.delete(f"{ROLE_BINDINGS}/kindred")
    return cluster.admit_kindred


def lose_all_seats(cluster: Cluster) -> Callable[[], object]:
    """Let priority and fairness reject all requests; return what ends that."""
    cluster.api.create(f"{FLOW_CONTROL}/prioritylevelconfigurations", NOBODY_SERVED)
    schema = cluster.api.create(f"{FLOW_CONTROL}/flowschemas", KINDRED_IS_NOBODY)["metadata"]["uid"]
    cluster.admit_kindred(BINDS)
    wait_until(
        lambda: as_kindred(cluster).headers.get("X-Kubernetes-PF-FlowSchema-UID") == schema, PATIENCE, "classified"
    )
    endless: list[socket.socket] = []

    def none_left() -> bool:
        # One request at a time is served, however few seats there are (queueset.go canAccommodateSeatsLocked).
        endless.append(endless_request(cluster))
        return as_kindred(cluster).status_code == httpx.codes.TOO_MANY_REQUESTS

    wait_until(none_left, PATIENCE, "no seat left")

    def give_back() -> None:
        for each in endless:
            each.close()
        cluster.api.delete(f"{FLOW_CONTROL}/flowschemas/kindred-is-nobody")

    return give_back


@pytest.mark.parametrize(
    ("lose", "status", "reported"),
    [
        pytest.param(lose_the_account, 401, "401 Unauthorized", id="401-without-its-service-account"),
        pytest.param(lose_the_rights, 403, 'verbs: ["list", "watch"]', id="403-without-its-role-binding"),
        pytest.param(lose_all_seats, 429, "429 Too Many Requests", id="429-of-priority-and-fairness"),
    ],
)
def test_requests_that_are_refused_are_tried_again_until_they_are_not(
    cluster: Cluster, lose: Callable[[Cluster], Callable[[], object]], status: int, reported: str, note: Note
) -> None:
    populate(cluster)
    proxy = cluster.start_proxy()
    follower = impatient(cluster, proxy)
    follower.until_equal()
    give_back = lose(cluster)
    # The server believes in a token that it has checked for ten seconds more, and what runs, runs on.
    wait_until(lambda: as_kindred(cluster).status_code == status, PATIENCE, f"refused with {status}")
    follower.mark()
    proxy.cut()
    churn(cluster)
    lasted = follower.until_stale(reported)
    # A quiet watch, which is renewed every 2 s, may have been refused before the mark, and be in its backoff yet.
    lasted += wait_until(
        lambda: all(str(status) in follower.counts(resource).failures for resource in FOLLOWED),
        PATIENCE,
        f"each refused with {status} since the mark",
    )
    seen = {resource: follower.counts(resource).failures for resource in FOLLOWED}
    for failures in seen.values():
        assert failures.keys() <= {str(status), "ConnectionFailed"}
        assert failures[str(status)] <= follower.most_attempts()
    readiness = follower.kindred.readiness()["resources"]
    if status == httpx.codes.FORBIDDEN:
        for resource in FOLLOWED:
            rule = f'apiGroups: [""], resources: ["{resource}"], verbs: ["list", "watch"]'
            assert readiness[resource]["missing_rbac_rule"] == rule
    give_back()
    follower.until_equal()
    note(f"refused for {lasted:.0f} s: {seen['pods']}")
    for resource in FOLLOWED:
        counts = follower.counts(resource)
        assert counts.relists == {}
        assert "watch-list" not in counts.requests


def login(cluster: Cluster) -> dict[str, str]:
    """Return the header that Kindred logs in with."""
    return {"Authorization": f"Bearer {(cluster.plane.folder / 'kindred.token').read_text('ascii')}"}


def as_kindred(cluster: Cluster) -> httpx.Response:
    """Return what a request of Kindred's is answered."""
    tls = cluster.plane.authority.client_tls()
    return httpx.get(f"{cluster.plane.url}/api/v1/nodes?limit=1", headers=login(cluster), verify=tls, timeout=30.0)


def endless_request(cluster: Cluster) -> socket.socket:
    """Begin a request of Kindred's whose body never comes, on which the server waits for a minute."""
    connection = cluster.plane.authority.client_tls().wrap_socket(
        socket.create_connection(("127.0.0.1", cluster.plane.port)), server_hostname="127.0.0.1"
    )
    lines = [f"POST {PODS}/none/binding HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in login(cluster).items()]
    connection.sendall("\r\n".join([*lines, "Content-Length: 1000", "", "{"]).encode())
    return connection


# List+watch of a real API server that was away, has forgotten, or is another one: the mirror equals the cluster
# again.
#
# A kube-apiserver that was started anew has an empty watch cache, and so most versions have expired for it. To see a
# watch resumed behind a restart, and versions that expired in etcd, it runs without the cache.

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
    wait_until(
        lambda: all("Connection refused" in follower.problem(resource) for resource in FOLLOWED), PATIENCE, "refused"
    )
    for resource in FOLLOWED:
        counts = follower.counts(resource)
        assert counts.failures.keys() == {"ConnectionFailed"}
        assert sum(counts.failures.values()) <= follower.most_attempts()
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
