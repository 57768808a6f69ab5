"""The status of a service as text: one screen, with what is behind, and all resources if it is wide."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from click import unstyle
from click.testing import CliRunner, Result
from fastapi import FastAPI

from app.admin.decisions_routes import DecisionSummary, LastDecisions
from app.admin.equivalence_routes import Cells, Totals
from app.admin.health_routes import Readiness, ResourceReadiness, Version
from app.commands.cli import main
from app.commands.output import WIDTH, laid_out
from app.commands.status import Status, status_text
from app.feeds.release import ReleaseStatus
from app.settings.settings import Settings
from app.verbs.request import VerbOutcome
from app.wiring.main import Service, create_service
from tests.app.asgi import ask
from tests.app.commands.running import running
from tests.app.questions import by_name, shop
from tests.builders import make_pod

RULE = 'apiGroups: [""], resources: ["namespaces"], verbs: ["list", "watch"]'
SYNCED = ResourceReadiness(
    synced=True, serves=True, absent=False, seconds_since_last_byte=0.25, problem=None, missing_rbac_rule=None
)
BROKEN = SYNCED.model_copy(update={"seconds_since_last_byte": 95.0, "problem": "connection refused"})
FORBIDDEN = ResourceReadiness(
    synced=False,
    serves=True,
    absent=False,
    seconds_since_last_byte=None,
    problem="403 Forbidden",
    missing_rbac_rule=RULE,
)
ABSENT = ResourceReadiness(
    synced=True, serves=True, absent=True, seconds_since_last_byte=None, problem=None, missing_rbac_rule=None
)
READY = Readiness(
    ready=True,
    generation=57,
    nodes=5000,
    pods=150_000,
    pending=1,
    namespaces=7,
    leader="kindred-0",
    problems=[],
    resources={"nodes": SYNCED, "pods": SYNCED, "deviceclasses": ABSENT},
)
VERSION = Version(
    version="0.9.0",
    python="3.11.9",
    kubernetes=ReleaseStatus(release="1.36", source="server", exact=True, told="v1.36.2", ignored_gates=[]),
)
TOTALS = Totals(12, 3 * 1024 * 1024, 256 * 1024 * 1024, {"hit": 9}, Cells(957, {}), 0.957, 0, 10, 0, [])
LAST = DecisionSummary(
    id=41,
    at="2026-01-02T03:04:05.678Z",
    verb="filter",
    outcome=VerbOutcome.NO_FIT,
    pod="shop/web-0",
    uid="u",
    nodes=5000,
    passed=0,
    seconds=0.001,
    waited=0.0,
    generation=57,
    source="none",
    error="",
    stale="",
    request_bytes=100,
    response_bytes=100,
    pod_hash="",
    arguments_hash="",
    kubernetes="1.36",
)
STATUS = Status("http://127.0.0.1:8890", READY, VERSION, TOTALS, LastDecisions(41, 41, [LAST]))


def lines(status: Status, *, wide: bool = False) -> list[str]:
    found = unstyle(laid_out(status_text(status, wide=wide))).splitlines()
    assert wide or max(map(len, found)) <= WIDTH
    return found


def test_a_service_that_is_ready_is_one_screen() -> None:
    assert lines(STATUS) == [
        "Service     http://127.0.0.1:8890: ready",
        "Version     0.9.0, Python 3.11.9",
        "Release     Kubernetes 1.36 (API server: v1.36.2)",
        "Mirror      5,000 nodes, 150,000 pods, 1 pending, 7 namespaces, at generation 57",
        "Resources   3 resources followed, none behind",
        "Leader      kindred-0",
        "Cache       12 classes, 3.0 of 256 MiB, hit rate 95.7%",
        "Decisions   41 since the start; the last one, 41: filter of shop/web-0 at",
        "            2026-01-02T03:04:05.678Z: no_fit",
    ]


def test_what_is_behind_is_named_with_its_problem() -> None:
    problems = ["namespaces: not synced: 403 Forbidden", "pods: stale for 95 s"]
    resources = {"nodes": SYNCED, "pods": BROKEN, "namespaces": FORBIDDEN}
    update = {"ready": False, "problems": problems, "resources": resources, "leader": ""}
    found = lines(STATUS._replace(readiness=READY.model_copy(update=update)))
    assert found[:3] == [
        "Service     http://127.0.0.1:8890: not ready",
        "            namespaces: not synced: 403 Forbidden",
        "            pods: stale for 95 s",
    ]
    assert found[6:11] == [
        "Resources   3 resources followed, 2 behind",
        "            pods: synced, 95.0 s ago: connection refused",
        "            namespaces: not synced: 403 Forbidden; missing RBAC rule: apiGroups:",
        '              [""], resources: ["namespaces"], verbs: ["list", "watch"]',
        "Leader      none is known",
    ]


def test_an_outage_is_one_line_and_many_problems_are_cut() -> None:
    """An API server that is gone: sixteen resources, one cause. The table of -o wide has each once."""
    names = ["nodes", "pods", "csinodes"]
    rejected = {
        name: BROKEN.model_copy(update={"problem": f"GET /api/v1/{name} at https://10.96.0.1:443: Connection refused"})
        for name in names
    }
    status = STATUS._replace(readiness=READY.model_copy(update={"resources": rejected}))
    assert lines(status)[4:7] == [
        "Resources   3 resources followed, 3 behind",
        "            nodes, pods, csinodes: synced, 95.0 s ago: https://10.96.0.1:443:",
        "              Connection refused",
    ]
    assert sum("refused" in line for line in lines(status, wide=True)) == len(names)
    denied = {str(number): FORBIDDEN.model_copy(update={"problem": f"403: {number}"}) for number in range(7)}
    status = STATUS._replace(readiness=READY.model_copy(update={"resources": denied}))
    assert "            and 3 more: -o wide" in lines(status)


def test_a_dump_without_a_cache_and_without_decisions_says_so() -> None:
    readiness = READY.model_copy(update={"resources": {}, "leader": None})
    status = STATUS._replace(readiness=readiness, cache=None, decisions=LastDecisions(0, 0, []))
    found = lines(status)
    assert found[4:] == [
        "Resources   none is watched: the mirror is loaded from a dump",
        "Leader      no leader election",
        "Cache       off",
        "Decisions   0 since the start",
    ]
    assert found == lines(status, wide=True)


def test_wide_text_has_every_resource() -> None:
    assert lines(STATUS, wide=True)[-4:] == [
        "RESOURCE       STATE   LAST BYTE  PROBLEM",
        "nodes          synced  0.2 s ago",
        "pods           synced  0.2 s ago",
        "deviceclasses  absent",
    ]


def status(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["status", *arguments])


@pytest.fixture
def serve() -> Iterator[Callable[[Service], str]]:
    """Serve admin ports until the test ends, and give the URL of each."""
    with ExitStack() as stack:

        def url(service: Service) -> str:
            assert service.admin is not None
            return stack.enter_context(running(service.admin)).url

        yield url


def test_it_tells_of_the_mirror_the_cache_and_the_last_decision(serve: Callable[[Service], str]) -> None:
    service = create_service(Settings(admin="127.0.0.1:0"), shop(), None)
    for name in ("first", "last"):
        ask(service.app, "POST", "/filter", by_name(make_pod(name), "a1"))
    url = serve(service)
    result = status("--server", url)
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"Service     {url}: ready\n" in result.stdout
    found = json.loads(status("--server", url, "-o", "json").stdout)
    assert found.keys() == {"server", "readiness", "version", "equivalence_cache", "decisions"}
    assert found["readiness"] == ask(service.app, "GET", "/readyz").json()
    assert found["version"] == ask(service.app, "GET", "/version").json()
    assert (found["decisions"]["noted"], found["decisions"]["last"]["pod"]) == (2, "default/last")
    assert found["equivalence_cache"]["classes"] == 1


def test_it_ends_with_1_where_the_service_is_not_ready(serve: Callable[[Service], str]) -> None:
    service = create_service(Settings(admin="127.0.0.1:0"), shop(), None)
    service.state.draining = True
    url = serve(service)
    result = status("--server", url)
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.startswith(f"Service     {url}: not ready\n            ")


@pytest.mark.parametrize("path", ["/readyz", "/version", "/debug/equivalence", "/debug/decisions"])
def test_a_route_that_says_something_else_is_told(path: str) -> None:
    service = create_service(Settings(admin="127.0.0.1:0"), shop(), None)
    assert service.admin is not None
    app = FastAPI()
    app.get(path)(lambda: ["hello"])
    app.mount("/", service.admin)
    with running(app) as server:
        result = status("--server", server.url)
        assert result.stderr == f"Error: {server.url}: is that the admin port?\n"
    assert (result.exit_code, result.stdout) == (2, "")
