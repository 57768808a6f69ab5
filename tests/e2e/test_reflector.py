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

from tests.e2e.cluster import PODS, Cluster
from tests.e2e.conftest import Note
from tests.e2e.follower import FOLLOWED, PATIENCE, Counts, Follower, churn, most_attempts, populate
from tests.e2e.impatient import STALE_AFTER
from tests.e2e.kindred import BINDS
from tests.e2e.programs import wait_until
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
    with ThreadPoolExecutor(1) as beside:
        # Late, so that there are always events on their way.
        proxy.delay = LATE
        crowd = [on(pod(f"crowd-{index}"), f"node-{index % 3:04}") for index in range(300)]
        before = follower.known()
        made = beside.submit(cluster.create_pods, crowd)
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
    lasted = follower.until_stale("nothing received for 2 s")
    asked = proxy.watches
    answer = follower.kindred.ask("filter", {"Pod": pod("asked"), "NodeNames": ["node-0000"]})
    assert answer["Error"].startswith("the mirror is stale: ")
    for resource in FOLLOWED:
        counts = follower.counts(resource)
        assert counts.failures.keys() == {"ReadTimeout"}
        assert counts.failures["ReadTimeout"] <= most_attempts(lasted)
    proxy.release()
    follower.until_equal()
    assert proxy.watches > asked
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
    ("lose", "status", "told"),
    [
        pytest.param(lose_the_account, 401, "401 Unauthorized", id="401-without-its-service-account"),
        pytest.param(lose_the_rights, 403, 'verbs: ["list", "watch"]', id="403-without-its-role-binding"),
        pytest.param(lose_all_seats, 429, "429 Too Many Requests", id="429-of-priority-and-fairness"),
    ],
)
def test_requests_that_are_refused_are_tried_again_until_they_are_not(
    cluster: Cluster, lose: Callable[[Cluster], Callable[[], object]], status: int, told: str, note: Note
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
    lasted = follower.until_stale(told)
    # A quiet watch, which is renewed every 2 s, may have been refused before the mark, and be in its backoff yet.
    lasted += wait_until(
        lambda: all(str(status) in follower.counts(resource).failures for resource in FOLLOWED),
        PATIENCE,
        f"each refused with {status} since the mark",
    )
    seen = {resource: follower.counts(resource).failures for resource in FOLLOWED}
    for failures in seen.values():
        assert failures.keys() <= {str(status), "ConnectionFailed"}
        assert failures[str(status)] <= most_attempts(lasted)
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
