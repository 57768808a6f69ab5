"""What requests hold is not in the log above level debug, wherever in them it is and whatever is wrong with it."""

import asyncio
import contextlib
import copy
import json
import logging
from collections.abc import Iterator
from typing import Any, Final

import pytest

from app.process.logs import JsonLines
from app.settings.limits import Limits
from app.settings.settings import Settings
from app.wiring.main import Service, create_service
from tests.app.asgi import ask
from tests.app.questions import NEAR_WEB, shop
from tests.app.server.conversations import PATIENCE, connected, serving
from tests.builders import expressed, labelled, make_node, make_pod, term
from tests.json_places import places

SECRET: Final = "s3cr3t! \n=,"  # noqa: S105 - a mark; and no valid name, label or quantity
MARK: Final = "s3cr3t"
REPORTED: Final = {
    *(("metadata", name) for name in ("name", "namespace", "uid")),
    *((name,) for name in ("PodName", "PodNamespace", "PodUID", "Node")),
}
"""Ends of paths, of what a line of the log may have: which pod, and which node."""
POD: Final = (
    make_pod("p")
    .uid("u1")
    .label("app", "web")
    .required_affinity(NEAR_WEB, term("zone", expressed("tier", "In", "a", "b"), namespaces=["shop"]))
    .preferred_anti_affinity(3, term("zone", labelled(app="x"), namespace_selector=labelled(team="y")))
    .node_selector({"disk": "ssd"})
    .required_node_affinity({"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["4"]}]})
    .toleration("gpu", "Equal", "yes", "NoSchedule")
    .spread("zone", labelled(app="web"))
    .image("registry/web:1")
    .requests(cpu="1", memory="1Gi")
    .host_port(80, "TCP", "10.0.0.1")
    .volume({"name": "v", "persistentVolumeClaim": {"claimName": "c"}})
    .volume({"name": "w", "gcePersistentDisk": {"pdName": "d"}})
    .owned_by("Job", "j", "j1")
    .priority(100)
    .obj()
)
VICTIMS: Final = {"a1": {"Pods": [{"UID": "u2"}], "NumPDBViolations": 0}}
NODE: Final = make_node("a1").label("zone", "a").taint("k", "v", "NoSchedule").allocatable(cpu="2").obj()
BODIES: Final[dict[str, list[Any]]] = {
    "filter": [
        {"Pod": POD, "Nodes": None, "NodeNames": ["a1"]},
        {"Pod": POD, "Nodes": {"metadata": {}, "items": [NODE]}, "NodeNames": None},
    ],
    "bind": [{"PodName": "p", "PodNamespace": "default", "PodUID": "u1", "Node": "a1"}],
    "preempt": [
        {"Pod": POD, "NodeNameToMetaVictims": VICTIMS},
        {"Pod": POD, "NodeNameToVictims": {"a1": {"Pods": [POD], "NumPDBViolations": 0}}},
    ],
}
BODIES["prioritize"] = BODIES["filter"]


def service() -> Service:
    settings = Settings(
        bind=True,
        listen="127.0.0.1:0",
        profile="full",
        preempt="verb",
    )
    return create_service(settings, shop(), None, limits=Limits(shadow_share=1.0, max_header_bytes=1024))


def marked(document: Any) -> Iterator[Any]:  # noqa: ANN401 - JSON
    """Yield a document with the mark in place of each value, and of each key, that may not be told."""
    paths = places(document)[1:]
    for path in paths:
        changed = copy.deepcopy(document)
        parent = changed
        for step in path[:-1]:
            parent = parent[step]
        last = path[-1]
        if path[-2:] not in REPORTED:
            value = parent[last]
            for mark in (SECRET, {SECRET: SECRET}, [SECRET], [{SECRET: SECRET}]):
                parent[last] = mark
                yield changed
            parent[last] = value
        if isinstance(last, str):
            parent[SECRET] = parent.pop(last)
            yield changed


@pytest.mark.parametrize("verb", BODIES)
def test_no_value_of_a_question_is_in_the_log(verb: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    app = service().app
    bodies = [json.dumps(each).encode() for document in BODIES[verb] for each in marked(document)]
    bodies += [f'{{"Pod": {SECRET}'.encode(), f'["{MARK}"]'.encode(), f'"{MARK}"'.encode(), MARK.encode() + b"\xff"]
    assert len(bodies) >= 8
    responded = [ask(app, "POST", f"/{verb}", body).content for body in bodies]
    assert any(MARK.encode() in content for content in responded)  # who asks is told what was wrong with it
    assert caplog.records
    assert MARK not in caplog.text
    assert [record for record in caplog.records if MARK in JsonLines().format(record)] == []


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /s3cr3t HTTP/9.9\r\n\r\n",
        b"s3cr3t",
        b"POST /filter?s3cr3t HTTP/1.1\r\nAuthorization: s3cr3t\r\nContent-Length: 6\r\n\r\ns3cr3t",
        b"POST /filter HTTP/1.1\r\nX: " + 500 * b"s3cr3t" + b"\r\n\r\n",
        b"POST /filter HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\ns3cr3t\r\n",
        b"GET /livez HTTP/1.1\r\ns3cr3t: s3cr3t\r\nConnection: upgrade\r\nUpgrade: s3cr3t\r\n\r\n",
        b"PUT /s3cr3t HTTP/1.1\r\nContent-Length: 6\r\n\r\ns3cr3t",
    ],
    ids=["version", "no-http", "query", "large-head", "chunk", "upgrade", "path"],
)
def test_nothing_of_a_head_is_in_the_log(sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def talked() -> None:
        served = serving(service().ports[0])
        async with asyncio.timeout(PATIENCE), served as (_, number), connected(number) as (reader, writer):
            writer.write(sent)
            with contextlib.suppress(ConnectionError):
                await reader.read(1)

    asyncio.run(talked())
    assert [record for record in caplog.records if MARK in JsonLines().format(record)] == []
