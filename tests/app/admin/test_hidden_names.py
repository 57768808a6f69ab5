"""Nobody learns the name of a pod in a namespace whose pods they may not list: over every route of the admin port."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute, iter_route_contexts
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from app.admin.access import CALLER_HEADER, HIDING, NAMELESS
from app.admin.page_routes import OPEN_PATHS
from app.admin.what_if_routes import QUESTIONS
from app.api_server.client import ConnectionFailedError
from core.events import ClusterEvent
from core.explaining.pod_names import HIDDEN as PLACEHOLDER
from core.explaining.pod_names import HIDDEN_BUDGET
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import PodDisruptionBudget
from core.objects.labels import parse_selector
from tests.app.admin.limited_callers import (
    ALLOWED,
    DISK,
    HIDDEN,
    NODES,
    OURS,
    SEEN,
    THEIRS,
    ZONE,
    LimitedService,
    ReviewingServer,
    everywhere,
    first_of_stream,
    limited_service,
    nodes,
    ours,
    theirs,
)
from tests.app.asgi import ask
from tests.builders import PodBuilder
from tests.conformance.engine import load
from tests.depth import tries

PENDING: Final = (
    ours("port").host_port(80),
    ours("near-web").required_anti_affinity(everywhere(app="web")),
    ours("shunned").label("app", "shunned"),
    ours("big").requests(cpu=3),
    ours("late").requests(cpu=2),
    ours("disk").volume(DISK),
    ours("plain"),
    ours("waits").priority(200).nominated("n2"),
)
OF_THEIRS: Final = tuple(
    pod
    for node in NODES
    for pod in (
        theirs(f"{node}-port").host_port(80).on(node),
        theirs(f"{node}-web").label("app", "web").on(node),
        theirs(f"{node}-shy").required_anti_affinity(everywhere(app="shunned")).on(node),
        theirs(f"{node}-full").requests(cpu=2).on(node),
        theirs(f"{node}-disk").volume(DISK).on(node),
        theirs(f"{node}-nominated").requests(cpu=1).priority(100).nominated(node),
        theirs(f"{node}-victim").on(node).terminating(),
    )
)


def cluster(*further: PodBuilder) -> ClusterMirror:
    placed = ours("placed").label("app", "web").on("n1")
    pods = (*PENDING, *OF_THEIRS, placed, theirs("plain"), *further)
    mirror = load([], [node.obj() for node in nodes()], [pod.obj() for pod in pods])
    forbidding = PodDisruptionBudget(THEIRS, f"{HIDDEN}-budget", parse_selector({"app": "web"}, []))
    mirror.apply(ClusterEvent("Add", forbidding))
    return mirror


class Requested(NamedTuple):
    """A request to a route."""

    url: str
    body: object = None


def explained(path: str, query: str) -> list[Requested]:
    """Ask about each pod by name, with all that there is to be said, and about the hidden ones in every form."""
    query = f"{path}?{query}"
    of_theirs = OF_THEIRS[0]
    full_name, uid = f"{THEIRS}/{of_theirs.name}", of_theirs.identity
    plain = f"{OURS}/{SEEN}-plain"
    manifest = ours("new").host_port(80).obj()
    return [
        *(Requested(query, {"pod": f"{OURS}/{pod.name}"}) for pod in PENDING),
        Requested(query, {"pod": manifest}),
        Requested(query, {"Pod": manifest, "NodeNames": NODES}),
        Requested(query, {"pod": full_name}),
        Requested(query, {"pod": uid}),
        Requested(query, {"pod": of_theirs.obj()}),
        Requested(query, {**of_theirs.obj(), "kind": "Pod"}),
        Requested(query, {"Pod": of_theirs.obj(), "NodeNames": NODES}),
        Requested(query, {"pod": plain, "remove": [full_name]}),
        Requested(query, {"pod": plain, "assume": [{"pod": full_name, "node": "n1"}]}),
        Requested(query, {"pod": plain, "assume": [{"pod": of_theirs.obj(), "node": "n1"}]}),
    ]


REQUESTS: Final[Mapping[tuple[str, str], Sequence[Requested]]] = {
    ("GET", "/"): [Requested("/")],
    ("HEAD", "/"): [Requested("/")],
    ("GET", "/page/{name}"): [Requested("/page/page.js"), Requested(f"/page/{HIDDEN[:6]}")],
    ("HEAD", "/page/{name}"): [Requested("/page/page.js")],
    ("GET", "/livez"): [Requested("/livez")],
    ("GET", "/readyz"): [Requested("/readyz")],
    ("GET", "/version"): [Requested("/version")],
    ("GET", "/openapi.json"): [Requested("/openapi.json")],
    ("GET", "/cluster"): [Requested("/cluster"), Requested(f"/cluster?rack={ZONE}")],
    ("GET", "/samples"): [Requested("/samples")],
    ("GET", "/events"): [Requested("/events")],
    ("GET", "/names"): [
        Requested("/names"),
        Requested("/names?text=hidden"),
        Requested(f"/names?text={THEIRS}/&limit=100"),
    ],
    ("GET", "/units"): [Requested("/units"), Requested(f"/units?namespace={THEIRS}")],
    ("GET", "/pending"): [
        Requested("/pending"),
        Requested(f"/pending?namespace={THEIRS}"),
        Requested(f"/pending?namespace={OURS}"),
    ],
    ("POST", "/explain"): explained("/explain", "node=n1&node=n2&node=n3&limit=50&score=all"),
    ("POST", "/explain/nodes"): explained("/explain/nodes", "score=all"),
    ("POST", "/explain/manifest"): [Requested("/explain/manifest", ours("new").obj())],
    ("POST", "/what-if/capacity"): [
        *(Requested("/what-if/capacity", {"of": [pod]}) for pod in (f"{OURS}/{SEEN}-plain", f"{SEEN}-plain")),
        *(
            Requested("/what-if/capacity", {"of": [pod]})
            for pod in (f"{THEIRS}/{OF_THEIRS[0].name}", OF_THEIRS[0].name)
        ),
        Requested("/what-if/capacity", {"manifests": [{**ours("new").host_port(80).obj(), "kind": "Pod"}]}),
        Requested("/what-if/capacity", {"manifests": [{**theirs("new").obj(), "kind": "Pod"}]}),
        Requested("/what-if/capacity", {"addNodeLike": "n1"}),
    ],
    ("POST", "/what-if/drain"): [Requested("/what-if/drain", {"nodes": ["n1", "n2"]})],
    ("POST", "/what-if/loss"): [Requested("/what-if/loss", {"by": "zone"})],
    ("POST", "/what-if/removal"): [Requested("/what-if/removal", {})],
    ("GET", "/what-if/progress"): [Requested("/what-if/progress"), Requested("/what-if/progress?key=mine")],
    ("GET", "/debug/mirror"): [
        Requested("/debug/mirror"),
        Requested("/debug/mirror?node=n1"),
        Requested(f"/debug/mirror?pod={THEIRS}/{HIDDEN}-n1-port"),
    ],
    ("GET", "/debug/mirror/diff"): [Requested("/debug/mirror/diff")],
    ("GET", "/debug/equivalence"): [Requested("/debug/equivalence")],
    ("GET", "/debug/config"): [Requested("/debug/config")],
    ("GET", "/debug/decisions"): [Requested("/debug/decisions")],
    ("GET", "/debug/decisions/{number}"): [Requested("/debug/decisions/1"), Requested("/debug/decisions/2")],
}
"""(method, route) -> requests. A route that is not here fails a test: its names have to be looked for, too."""
SHOWING: Final = {
    ("POST", "/what-if/capacity"),
    ("POST", "/what-if/drain"),
    ("POST", "/what-if/loss"),
    ("POST", "/what-if/removal"),
    ("GET", "/names"),
    ("GET", "/pending"),
    ("POST", "/explain"),
    ("POST", "/explain/nodes"),
    ("GET", "/debug/mirror"),
    ("GET", "/debug/equivalence"),
    ("GET", "/debug/decisions"),
    ("GET", "/debug/decisions/{number}"),
}
"""Those by which a caller who may list all pods learns hidden names, so that the requests above are not in vain."""


def service(server: ReviewingServer | None, **ports: object) -> LimitedService:
    """Return a service that was asked about pods of both namespaces by a scheduler."""
    made = limited_service(cluster(), server, **ports)
    for pod in (theirs("asked"), ours("asked")):
        body = json.dumps({"Pod": pod.obj(), "NodeNames": NODES}).encode()
        assert ask(made.extender, "POST", "/filter", body).status_code == 200
    return made


def routes(app: FastAPI) -> Iterator[tuple[str, str]]:
    for route in iter_route_contexts(app.routes):
        assert isinstance(route.original_route, APIRoute), "of others, FastAPI asks no dependency"
        assert route.path is not None
        yield from ((method, route.path) for method in route.methods or ())


def response(app: FastAPI, method: str, requested: Requested, headers: Mapping[str, str]) -> tuple[int, str]:
    """Return the status of a response, and all of its text, headers included."""
    if requested.url == "/events":
        status, body = first_of_stream(app, requested.url, headers)
        return status, body.decode()
    content = None if requested.body is None else json.dumps(requested.body).encode()
    found = ask(app, method, requested.url, content, headers)
    return found.status_code, f"{dict(found.headers)}\n{found.text}"


def responses(app: FastAPI, headers: Mapping[str, str]) -> dict[tuple[str, str], list[tuple[int, str]]]:
    found = {
        (method, path): [response(app, method, each, headers) for each in requested]
        for (method, path), requested in REQUESTS.items()
    }
    sent = f"pod {OF_THEIRS[0].identity}: neither in the mirror"  # the uid that the caller sent
    return {key: [(status, text.replace(sent, "")) for status, text in each] for key, each in found.items()}


def bearing(token: str) -> dict[str, str]:
    return {CALLER_HEADER: token}


def test_every_route_is_tried_and_none_changes_anything() -> None:
    """A route that does must keep out the bearers of `adminReadTokenFile` and of no token from it."""
    assert {*routes(service(None).admin)} == REQUESTS.keys()
    paths = (*("/explain", "/explain/nodes", "/explain/manifest"), *QUESTIONS)
    assert {key for key in REQUESTS if key[0] not in {"GET", "HEAD"}} == {("POST", path) for path in paths}


def test_every_path_that_is_let_through_is_there() -> None:
    assert {path for _, path in REQUESTS} >= (NAMELESS - OPEN_PATHS) | HIDING


def test_the_page_of_security_names_the_paths_that_every_caller_may_use() -> None:
    named = Path("docs/security.md").read_text("utf-8").partition("- **Routes.** ")[2].partition("`/units`")[0]
    assert {path for path in NAMELESS - OPEN_PATHS if f"`{path}`" not in named} == set()


def test_a_caller_of_one_namespace_learns_no_name_of_another_by_any_route() -> None:
    found = responses(service(ReviewingServer(ALLOWED)).admin, bearing("of-ours"))
    for key, each in found.items():
        assert not [text for _, text in each if HIDDEN in text], key
    assert {key for key, each in found.items() if any(SEEN in text for _, text in each)} == {
        ("GET", "/names"),
        ("GET", "/pending"),
        ("POST", "/explain"),
        ("POST", "/explain/nodes"),
        ("POST", "/explain/manifest"),
        ("POST", "/what-if/capacity"),
        ("POST", "/what-if/drain"),
        ("POST", "/what-if/loss"),
    }
    for placeholder in (PLACEHOLDER, HIDDEN_BUDGET):
        assert any(placeholder in text for _, text in found["POST", "/explain"])


def test_the_victims_that_a_pod_waits_for_are_named_to_those_who_may_see_them() -> None:
    app = service(ReviewingServer(ALLOWED)).admin
    waits, victim = f"{OURS}/{SEEN}-waits", theirs("n2-victim")
    expected = {
        "of-ours": [(PLACEHOLDER, "", "n2")],
        "of-all": [(f"{THEIRS}/{victim.name}", victim.identity, "n2")],
    }
    for token, victims in expected.items():
        _, text = response(app, "POST", Requested("/explain", {"pod": waits}), bearing(token))
        _, pending = response(app, "GET", Requested("/pending"), bearing(token))
        listed = next(each for each in explained_in(pending)["pods"] if each["pod"] == waits)
        for reported in (explained_in(text), listed):
            assert [(each["name"], each["uid"], each["node"]) for each in reported["waits_for"]] == victims


def explained_in(text: str) -> Any:  # noqa: ANN401  # decoded JSON
    return json.loads(text.partition("\n")[2])


@pytest.mark.parametrize(
    ("headers", "broken"),
    [
        pytest.param({}, False, id="nobody"),
        pytest.param(bearing("of-none"), False, id="of-no-namespace"),
        pytest.param(bearing("wrong"), False, id="unknown-token"),
        pytest.param({CALLER_HEADER: "of ours"}, False, id="no-token-at-all"),
        pytest.param(bearing("of-all"), True, id="api-server-is-down"),
    ],
)
def test_other_callers_learn_no_name_at_all(headers: Mapping[str, str], *, broken: bool) -> None:
    server = ReviewingServer(ALLOWED)
    server.problem = ConnectionFailedError("refused") if broken else None
    for key, each in responses(service(server).admin, headers).items():
        if key != ("POST", "/explain/manifest"):  # which returns what it was sent
            assert not [text for _, text in each if HIDDEN in text or SEEN in text], key
        assert all(status != 500 for status, _ in each)


@pytest.mark.parametrize("callers_are_reviewed", [True, False])
def test_who_may_list_all_pods_learns_the_names_by_the_same_requests(*, callers_are_reviewed: bool) -> None:
    server = ReviewingServer(ALLOWED) if callers_are_reviewed else None
    found = responses(service(server).admin, bearing("of-all"))
    assert {key for key, each in found.items() if any(HIDDEN in text for _, text in each)} == SHOWING


def test_what_is_hidden_is_refused_alike_whether_it_is_there_or_not() -> None:
    app = service(ReviewingServer(ALLOWED)).admin
    for form in ({"pod": f"{THEIRS}/{{}}"}, {"pod": f"{OURS}/{SEEN}-plain", "remove": [f"{THEIRS}/{{}}"]}):
        there, not_there = (
            response(
                app, "POST", Requested("/explain", json.loads(json.dumps(form).replace("{}", name))), bearing("of-ours")
            )
            for name in (f"{HIDDEN}-n1-port", "nobody")
        )
        assert there == not_there
        assert there[0] == 403


# A law: by its uid, a hidden pod is what no pod is.

PLAIN: Final = f"{OURS}/{SEEN}-plain"
HIDDEN_PODS: Final[Mapping[str, PodBuilder]] = {
    "on a node": theirs("it").host_port(80).label("app", "web").on("n2"),
    "that ends": theirs("it").on("n2").terminating(),
    "without a node": theirs("it"),
    "nominated, with a victim": theirs("it").priority(200).nominated("n3"),
}


def by_uid(uid: str) -> Iterator[Requested]:
    """Yield requests that have a uid in each place where one may be."""
    manifest = ours("new").uid(uid).host_port(80).obj()
    for path in ("/explain?node=n2&limit=50&score=all", "/explain/nodes?score=all"):
        for pod in (uid, manifest):
            yield Requested(path, {"pod": pod})
            yield Requested(path, {"pod": PLAIN, "assume": [{"pod": pod, "node": "n2"}]})
            yield Requested(path, {"pod": PLAIN, "assume": [{"pod": pod, "node": "nowhere"}]})
            yield Requested(path, {"pod": manifest, "assume": [{"pod": pod, "node": "n2"}]})
        yield Requested(path, {"pod": PLAIN, "remove": [uid]})
        yield Requested(path, {"pod": PLAIN, "remove": [PLAIN, uid]})
        yield Requested(path, {**manifest, "kind": "Pod"})
        yield Requested(path, {"Pod": manifest, "NodeNames": NODES})
    yield Requested(f"/names?text={uid}")
    yield Requested(f"/debug/mirror?pod={uid}")
    yield Requested(f"/debug/decisions?pod={uid}")


def reported_by_uid(app: FastAPI, uid: str, headers: Mapping[str, str]) -> list[tuple[int, str]]:
    """Ask about a uid in every form. Return the responses with a placeholder for the uid."""
    found = []
    for requested in by_uid(uid):
        status, text = response(app, "GET" if requested.body is None else "POST", requested, headers)
        found.append((status, text.replace(uid, "UID")))
    return found


def with_hidden(hidden: PodBuilder, headers: Mapping[str, str], state: str, *, mirrored: bool) -> FastAPI:
    """Serve a cluster with a hidden pod, in the mirror or only in a recent request, by a server in some state."""
    server = ReviewingServer(ALLOWED)
    made = limited_service(cluster(hidden) if mirrored else cluster(), server)
    body = json.dumps({"Pod": hidden.obj(), "NodeNames": NODES}).encode()
    assert ask(made.extender, "POST", "/filter", body).status_code == 200
    if state == "was up":
        ask(made.admin, "POST", "/explain", json.dumps({"pod": PLAIN}).encode(), headers)
    if state != "up":
        server.problem = ConnectionFailedError("refused")
    return made.admin


@pytest.mark.parametrize("state", ["up", "down", "was up"])
@pytest.mark.parametrize("token", ["of-ours", "of-none", "wrong", ""])
@settings(max_examples=tries(default=3, full=15), phases=[Phase.generate])  # an example takes a second to try again
@given(hidden=st.sampled_from([*HIDDEN_PODS.values()]), mirrored=st.booleans(), uids=st.tuples(st.uuids(), st.uuids()))
def test_the_uid_of_a_hidden_pod_gets_the_response_of_an_unknown_uid(
    hidden: PodBuilder, uids: tuple[object, object], token: str, state: str, *, mirrored: bool
) -> None:
    its, nobodys = map(str, uids)
    headers = bearing(token) if token else {}
    app = with_hidden(hidden.uid(its), headers, state, mirrored=mirrored)
    not_there, there = (reported_by_uid(app, uid, headers) for uid in (nobodys, its))
    assert there == not_there
    assert not [text for _, text in there if HIDDEN in text or f"namespace {THEIRS}" in text]
    assert {status for status, _ in there} >= ({200, 404} if (token, state) == ("of-ours", "up") else set())


@pytest.mark.parametrize("pod", HIDDEN_PODS.values(), ids=HIDDEN_PODS.keys())
def test_who_may_see_a_pod_finds_it_by_its_uid(pod: PodBuilder) -> None:
    uid = pod.identity
    body = json.dumps({"pod": uid}).encode()
    for server in (ReviewingServer(ALLOWED), None):
        app = limited_service(cluster(pod), server).admin
        assert ask(app, "POST", "/explain", body, bearing("of-all")).json()["summary"]["uid"] == uid


def test_a_caller_of_one_namespace_finds_its_pods_by_their_uids() -> None:
    pod = ours("it").uid("5b6f").on("n2")
    app = limited_service(cluster(pod), ReviewingServer(ALLOWED)).admin
    for body in ({"pod": "5b6f"}, {"pod": pod.obj()}, {"pod": PLAIN, "remove": ["5b6f"]}):
        reported = ask(app, "POST", "/explain", json.dumps(body).encode(), bearing("of-ours")).json()
        assert reported["supposed"]["removed"] == [f"{OURS}/{pod.name}"]
