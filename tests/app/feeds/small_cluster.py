"""A small cluster in the fake API server, and what happens in it while list+watch has its troubles."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

from app.objects.resources import RESOURCES
from core.events import Kind
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from tests.app.feeds.following import Following
from tests.builders import (
    NamespaceBuilder,
    NodeBuilder,
    PodBuilder,
    labelled,
    make_namespace,
    make_node,
    make_pod,
    term,
)
from tests.fake_apiserver import FakeApiServer

Builder: TypeAlias = PodBuilder | NodeBuilder | NamespaceBuilder

NODES: Final = RESOURCES[Node].path
PODS: Final = RESOURCES[Pod].path
NAMESPACES: Final = RESOURCES[Namespace].path
ZONE: Final = "topology.kubernetes.io/zone"
AWAY_FROM_WEB: Final = term(ZONE, labelled(app="web"), namespace_selector=labelled(team="red"))


@asynccontextmanager
async def followed(server: FakeApiServer, *kinds: Kind, **options: Any) -> AsyncIterator[Following]:  # noqa: ANN401 - of `Following`
    """Make the small cluster, and follow these kinds; the block begins when the mirror is equal to the server."""
    seed(server)
    async with Following(server, *kinds, **options) as following:
        await following.until_equal()
        yield following


def seed(server: FakeApiServer) -> None:
    """Make two nodes in two zones, two namespaces, and pods with and without terms, bound and not, done and not."""
    for namespace in (make_namespace("default"), make_namespace("shop").label("team", "red")):
        create(server, namespace)
    for name, zone in (("n1", "a"), ("n2", "b")):
        create(server, make_node(name).label(ZONE, zone))
    web = make_pod("web").in_namespace("shop").label("app", "web")
    create(server, web.on("n1"))
    create(server, make_pod("db").on("n2").required_anti_affinity(AWAY_FROM_WEB))
    create(server, make_pod("waits"))
    create(server, make_pod("done").on("n1").phase("Succeeded"))


def churn(server: FakeApiServer) -> None:
    """Do everything that can happen to objects: create, bind, relabel, end, delete, and make again under the name."""
    create(server, make_pod("new").on("n1").label("app", "web"))
    update(server, make_pod("waits").on("n2"))
    update(server, make_pod("new").on("n1").label("app", "db"))
    recreate(server, make_pod("db").on("n1").required_anti_affinity(AWAY_FROM_WEB))
    update(server, make_pod("new").on("n1").phase("Failed"))
    server.delete(PODS, "web", "shop")
    update(server, make_node("n2").label(ZONE, "c"))
    recreate(server, make_node("n1").label(ZONE, "b"))
    update(server, make_namespace("shop").label("team", "blue"))


def create(server: FakeApiServer, builder: Builder) -> None:
    """Create an object; the server gives it a uid."""
    server.create(*_of(builder))


def update(server: FakeApiServer, builder: Builder) -> None:
    """Replace an object, which keeps its uid."""
    server.update(*_of(builder))


def recreate(server: FakeApiServer, builder: Builder) -> None:
    """Delete an object, and make one of the same name."""
    path, body = _of(builder)
    server.delete(path, body["metadata"]["name"], body["metadata"].get("namespace", ""))
    server.create(path, body)


def _of(builder: Builder) -> tuple[str, dict[str, Any]]:
    body = builder.obj()
    body["metadata"].pop("uid", None)
    match builder:
        case PodBuilder():
            return PODS, body
        case NodeBuilder():
            return NODES, body
        case NamespaceBuilder():
            return NAMESPACES, body
