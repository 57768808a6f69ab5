"""`POST /what-if/...`: the answers of the commands, asked of a service, whose mirror stays as it is."""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from fastapi import FastAPI
from httpx import Response
from starlette.types import Message

from app.admin.access import CALLER_HEADER
from app.admin.openapi import describe
from app.commands.dump import Source, load_dump, take_again
from app.feeds.memory import MemoryWatch
from app.process.forked import Child, Parent
from app.settings.limits import DEFAULTS
from app.settings.settings import Settings
from app.simulation.asking import QuestionRejectedError
from app.simulation.questions import LossQuestion
from app.wiring.main import Service, create_service
from core.mirror.cluster import ClusterMirror
from tests.app.admin.limited_callers import ALL, ReviewingServer, limited_service
from tests.app.asgi import ASGI_REQUEST, ask
from tests.app.commands.what_if.asking import budget, deployment, dump, node, replica
from tests.app.commands.what_if.asking import response as of_command
from tests.app.questions import mirror_of
from tests.builders import make_node, make_pod
from tests.core.mirror.audit import audit

PATIENCE = 60.0
NODES = node("n1"), node("n2", "b"), node("n3", "c")
PODS = replica("web-1a-x", "n1"), replica("web-1a-y", "n2")


def served(path: str, **limits: Any) -> tuple[Service, ClusterMirror]:  # noqa: ANN401  # as Limits has them
    source = Source(snapshot=path, demo=False, skip_invalid=False)
    settings = Settings(admin="127.0.0.1:0")
    loaded = load_dump(settings, source)
    service = create_service(
        settings,
        loaded.mirror,
        None,
        release=loaded.release,
        freshness=loaded.freshness,
        take=lambda question, raw: take_again(source, loaded.superseded, question, raw),
        limits=DEFAULTS._replace(**limits),
    )
    return service, loaded.mirror


def port(path: str) -> FastAPI:
    admin = served(path)[0].admin
    assert admin is not None
    return admin


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    return dump(tmp_path, *NODES, *PODS, deployment(cpu="3"), budget("web", 1))


def post(app: FastAPI, question: str, **fields: object) -> Response:
    return ask(app, "POST", f"/what-if/{question}", json.dumps(fields).encode())


@pytest.mark.parametrize(
    ("question", "fields", "words"),
    [
        ("drain", {"nodes": ["n1"], "flags": ["--force"], "orders": 1}, "drain n1 --force --orders 1"),
        ("drain", {"zone": "b"}, "drain --zone b"),
        ("drain", {"selector": "kubernetes.io/hostname=n1"}, "drain -l kubernetes.io/hostname=n1"),
        ("loss", {}, "loss"),
        ("loss", {"by": "node", "only": ["n2"]}, "loss --by node --only n2"),
        ("removal", {"nodes": ["n1", "n3"], "tries": 1}, "removal n1 n3 --tries 1"),
        ("capacity", {"of": ["deploy/web"], "namespace": "shop"}, "capacity deploy/web -n shop"),
        (
            "capacity",
            {"of": ["shop/deploy/web", "web-1a-x"], "mix": [2, 1]},
            "capacity shop/deploy/web web-1a-x --mix 2,1",
        ),
        (
            "capacity",
            {"of": ["deploy/web"], "replicas": 9, "addNodeLike": "n1", "inZone": "z"},
            "capacity deploy/web --replicas 9 --add-node-like n1 --in-zone z",
        ),
    ],
)
def test_the_answer_is_that_of_the_command(cluster: str, question: str, fields: dict[str, Any], words: str) -> None:
    response = post(port(cluster), question, **fields)
    assert response.status_code == 200, response.text
    assert response.json() == of_command(*words.split(), "--snapshot", cluster)[1]


def test_a_manifest_is_a_template(cluster: str) -> None:
    found = post(port(cluster), "capacity", manifests=[deployment("api", cpu="4")], replicas=2).json()
    assert (found["of"], found["enough"], found["capacity"]["placed"]) == (["Deployment shop/api"], False, 1)


def test_the_workload_of_a_list_may_come_after_what_is_beside_it(cluster: str) -> None:
    low = {"kind": "PriorityClass", "metadata": {"name": "low"}, "value": 1}
    found = post(port(cluster), "capacity", manifests=[{"kind": "List", "items": [low, deployment("api")]}]).json()
    assert found["of"] == ["Deployment shop/api"]


def test_a_pod_comes_again_of_its_owners_template(cluster: str) -> None:
    found = post(port(cluster), "loss", only=["a"], orders=1).json()
    (move,) = found["domains"][0]["moves"]
    assert move["nodes"] == {"n3": 1}, "3 cpu of the template, of which 1 does not fit beside the other pod"
    assert found["assumed"]["uncertainties"] == []


def test_nothing_of_a_simulation_is_ever_in_the_live_mirror(cluster: str) -> None:
    service, mirror = served(cluster)
    assert service.admin is not None
    before = mirror.dump(), mirror.generation, mirror.figures
    manifest = {**deployment("api"), "kind": "StatefulSet"}
    for question, fields in (
        ("drain", {"nodes": ["n1"]}),
        ("loss", {}),
        ("removal", {}),
        ("capacity", {"of": ["deploy/web"]}),
        ("capacity", {"manifests": [manifest]}),
    ):
        assert post(service.admin, question, **fields).status_code == 200
    assert (mirror.dump(), mirror.generation, mirror.figures) == before
    assert audit(mirror) == []
    assert ask(service.admin, "GET", "/debug/equivalence").json()["classes"] == []


def test_an_answer_is_as_described(cluster: str) -> None:
    app = port(cluster)
    description = describe(app)
    for question, fields in (
        ("drain", {"nodes": ["n1"]}),
        ("loss", {}),
        ("removal", {}),
        ("capacity", {"of": ["deploy/web"]}),
    ):
        operation = description["paths"][f"/what-if/{question}"]["post"]
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        schema |= {"components": description["components"]}
        jsonschema_rs.Draft202012Validator(json.loads(json.dumps(schema))).validate(
            post(app, question, **fields).json()
        )


@pytest.mark.parametrize(
    ("question", "body", "field", "detail"),
    [
        ("drain", {}, "nodes", "nodes: give nodes by name, by labels or by zone"),
        ("drain", {"nodes": ["n9"]}, "nodes", "nodes: no such node: n9"),
        ("drain", {"nodes": ["n1"], "orders": 0}, "orders", "orders: expected int >= 1"),
        ("drain", {"nodes": ["n1"], "flags": ["--now"]}, "flags[0]", "flags[0]: invalid enum value '--now'"),
        ("drain", {"nodes": "n1"}, "nodes", "nodes: expected array, got str"),
        ("drain", {"nodes": ["n1"], "node": ["n2"]}, "", "object contains unknown field node"),
        ("loss", {"by": "rack"}, "by", "by: rack: no node has the label rack"),
        ("removal", {"selector": "a=b=c"}, "selector", "selector: a=b=c: expected a label selector, as for kubectl"),
        ("capacity", {}, "of", "of: give a workload, a pod or a manifest, or a node to add for the pending pods"),
        ("capacity", {"of": ["deploy/no"]}, "of", "of: deploy/no: there is no such pod, and no pod of such a workload"),
        ("capacity", {"of": ["deploy/web"], "replicas": 10**9}, "replicas", "replicas: expected int <= 1000000"),
        ("capacity", {"of": ["deploy/web"], "mix": [0]}, "mix", "mix: 0: expected 1 number of at least 1"),
        ("capacity", {"manifests": [{"spec": 1}]}, "manifests[0].spec", "manifests[0].spec: expected object | null"),
        ("capacity", {"of": ["deploy/web"], "inZone": "z"}, "inZone", "inZone: give a node to add, too"),
    ],
)
def test_an_error_names_the_field(cluster: str, question: str, body: dict[str, Any], field: str, detail: str) -> None:
    response = post(port(cluster), question, **body)
    assert (response.status_code, response.json()["field"]) == (400, field), response.text
    assert response.json()["detail"].startswith(detail)


def test_no_json_is_an_error() -> None:
    app = create_service(Settings(admin="127.0.0.1:0"), ClusterMirror(), None).admin
    assert app is not None
    response = ask(app, "POST", "/what-if/loss", b"{")
    assert (response.status_code, response.json()["field"]) == (400, "")


def test_a_dump_that_has_gone_is_said_in_the_answer(cluster: str) -> None:
    app = port(cluster)
    Path(cluster).unlink()
    found = post(app, "loss", only=["a"]).json()
    assert found["assumed"]["lacks"][-1]["why"].startswith("owners and facts of pods: the dump cannot be read again")
    assert "no Deployment is at hand" in found["assumed"]["uncertainties"][0]["why"]


# A question ends with its caller, with its time and with the service.


def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    def forever(*_: object, **__: object) -> Iterator[None]:
        while True:
            time.sleep(0.01)
            yield

    monkeypatch.setattr("app.simulation.questions.lose_each", forever)


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii").split())


async def until_so(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not is_so():  # noqa: ASYNC110  # of the system
            await asyncio.sleep(0.01)


class Caller:
    """Posts an endless question, maybe with a key, and leaves when told so."""

    def __init__(self, app: FastAPI, key: bytes = b"") -> None:
        self.sent: list[Message] = []
        self._left = asyncio.Event()
        self._has_read = False
        path = "/what-if/loss"
        scope = {**ASGI_REQUEST, "path": path, "raw_path": path.encode(), "headers": [(b"host", b"localhost")]}
        scope["query_string"] = b"key=" + key
        self.task = asyncio.create_task(app(scope, self._receive, self._send))

    def leave(self) -> None:
        self._left.set()

    async def _receive(self) -> Message:
        if not self._has_read:
            self._has_read = True
            return {"type": "http.request", "body": b"{}", "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self.sent.append(message)


def test_a_question_ends_when_its_caller_leaves_and_the_next_one_is_asked(
    cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless(monkeypatch)
    app, before = port(cluster), children()

    async def main() -> None:
        first = Caller(app)
        await until_so(lambda: len(children() - before) == 1)
        (child,) = children() - before
        second = Caller(app)
        await asyncio.sleep(0.1)
        assert children() - before == {child}, "one at a time"
        first.leave()
        await asyncio.wait_for(first.task, PATIENCE)
        await until_so(lambda: bool(children() - before - {child}))
        second.leave()
        await asyncio.wait_for(second.task, PATIENCE)
        assert (first.sent, second.sent) == ([], [])

    asyncio.run(main())
    assert children() == before


def test_a_question_ends_with_the_service(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    endless(monkeypatch)
    service, _ = served(cluster)
    app, before = service.admin, children()
    assert app is not None

    async def main() -> Caller:
        caller = Caller(app)
        await until_so(lambda: len(children() - before) == 1)
        service.state.draining = True
        await asyncio.wait_for(caller.task, PATIENCE)
        return caller

    start, body = asyncio.run(main()).sent
    assert (start["status"], json.loads(body["body"])["detail"]) == (503, "the service is ending")
    assert children() == before


def test_a_question_ends_with_its_time(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    endless(monkeypatch)
    app = served(cluster, question_seconds=0.3)[0].admin
    assert app is not None
    response = post(app, "loss")
    assert response.status_code == 413
    assert response.json()["detail"] == (
        "the answer takes longer than 0.3 s: ask about fewer nodes, replicas or orders"
    )


def test_a_question_that_waits_too_long_for_another_is_refused(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    endless(monkeypatch)
    monkeypatch.setattr("app.simulation.asking._PATIENCE", 0.2)
    app, before = port(cluster), children()

    async def main() -> Caller:
        first = Caller(app)
        await until_so(lambda: len(children() - before) == 1)
        second = Caller(app)
        await asyncio.wait_for(second.task, PATIENCE)
        first.leave()
        await first.task
        return second

    start, body = asyncio.run(main()).sent
    assert start["status"] == 503
    assert json.loads(body["body"])["detail"] == "another question has not been answered within 0.2 s"


def test_a_question_that_could_use_up_the_memory_is_refused(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = port(cluster)
    monkeypatch.setattr("app.simulation.asking.resident_bytes", lambda: 2**50)
    response = post(app, "loss")
    assert response.status_code == 503
    assert response.json()["detail"].startswith("too little memory: an answer may take 1181116006 MiB, and ")


@pytest.mark.parametrize("end", ["fault", "death"])
def test_a_question_that_ends_without_an_answer_is_an_error_in_words(
    cluster: str, end: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*_: object) -> None:
        if end == "death":
            os._exit(9)
        raise LookupError("secret")

    monkeypatch.setattr(LossQuestion, "ask", failing)
    response = post(port(cluster), "loss")
    if end == "fault":
        assert (response.status_code, response.json()["detail"]) == (500, "internal error: LookupError")
        assert "a question failed: LookupError at test_what_if_routes.py" in caplog.text
        assert "secret" not in caplog.text
    else:
        assert response.status_code == 503
        assert "has ended without one" in response.json()["detail"]


def test_a_child_that_ends_before_its_answer_is_an_error_in_words(
    cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    send = Parent.send_pieces

    def once(parent: Parent, length: int, pieces: Iterable[bytes]) -> None:
        if sent:
            os._exit(9)
        sent.append(length)
        send(parent, length, pieces)

    monkeypatch.setattr(Parent, "send_pieces", once)
    response = post(port(cluster), "loss")
    assert response.status_code == 503
    assert "has ended without one" in response.json()["detail"]


def test_an_answer_that_ends_early_has_no_second_head(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = Child.pieces

    def one_more(child: Child, length: int) -> AsyncIterator[bytes]:
        return pieces(child, length + (length > 1000))

    monkeypatch.setattr(Child, "pieces", one_more)
    app = port(cluster)

    async def main() -> Caller:
        caller = Caller(app)
        with pytest.raises(QuestionRejectedError):
            await asyncio.wait_for(caller.task, PATIENCE)
        return caller

    assert [each["type"] for each in asyncio.run(main()).sent].count("http.response.start") == 1


def test_a_question_that_takes_more_memory_than_is_left_ends(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def growing(*_: object, **__: object) -> Iterator[None]:
        taken = []
        while True:
            taken.append(b"x" * 2**22)
            time.sleep(0.01)
            yield

    monkeypatch.setattr("app.simulation.questions.lose_each", growing)
    monkeypatch.setattr("app.simulation.asking.resident_bytes", lambda: 0)
    monkeypatch.setattr(MemoryWatch, "room", lambda _: 100 * 2**20)
    app = served(cluster, question_seconds=PATIENCE)[0].admin
    assert app is not None
    response = post(app, "loss")
    assert (response.status_code, response.json()["detail"]) == (
        413,
        "the answer takes more than the 100 MiB that are left: ask about fewer nodes, replicas or orders",
    )


def test_a_caller_of_one_namespace_gives_it_with_the_name_of_a_workload() -> None:
    mirror = mirror_of(make_node("n1"), make_pod("web").in_namespace("shop").on("n1"))
    app = limited_service(mirror, ReviewingServer({"ann": ("shop",), "bob": ALL})).admin
    for of, caller, status in (
        ("web", "ann", 403),
        ("shop/web", "ann", 200),
        ("web", "bob", 200),
        ("bank/db", "ann", 403),
    ):
        response = ask(app, "POST", "/what-if/capacity", json.dumps({"of": [of]}).encode(), {CALLER_HEADER: caller})
        assert response.status_code == status, response.text
        assert (response.json().get("field") == "of") == (status != 200)


def test_the_namespaces_of_a_manifest_are_those_of_what_is_read_of_it() -> None:
    mirror = mirror_of(make_node("n1"), make_pod("web").in_namespace("shop").on("n1"))
    app = limited_service(mirror, ReviewingServer({"ann": ("shop",)})).admin
    of_shop, of_bank = ({**make_pod("x").in_namespace(each).obj(), "kind": "Pod"} for each in ("shop", "bank"))
    in_shop = {"metadata": {"namespace": "shop"}}
    for manifest, status in (
        (of_shop, 200),
        (of_bank, 403),
        ({**of_bank, "items": [in_shop]}, 403),
        ({"kind": "List", "items": [{"kind": "List", **in_shop, "items": [of_bank]}]}, 403),
        ({"kind": "List", "items": [of_shop, {"kind": "PriorityClass", "metadata": {"name": "p"}}]}, 200),
        (1, 400),
        ({**of_shop, "x": "x" * 2**20}, 400),
    ):
        body = json.dumps({"manifests": [manifest]}).encode()
        response = ask(app, "POST", "/what-if/capacity", body, {CALLER_HEADER: "ann"})
        assert response.status_code == status, (manifest, response.text)
        if status != 200:
            assert response.json()["field"].startswith("manifests"), response.text


def test_a_question_without_names_is_refused_to_nobody_without_a_field() -> None:
    mirror = mirror_of(make_node("n1"), make_node("n2"))
    app = limited_service(mirror, ReviewingServer({})).admin
    response = post(app, "drain", nodes=["n1"])
    assert (response.status_code, response.json()["field"]) == (403, "")
    assert response.json()["detail"].startswith("no caller is known")
