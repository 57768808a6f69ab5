"""Small clusters for questions, and asking them by command."""

import json
from pathlib import Path
from typing import Any, Final

from core.objects.node import ZONE
from tests.app.commands.invoked import kindred
from tests.app.feeds.dumps import as_json, kinded, listed
from tests.builders import NodeBuilder, Object, PodBuilder, make_namespace, make_node, make_pod


def node(name: str, zone: str = "a", cpu: str = "4", pods: int = 110) -> NodeBuilder:
    labels = make_node(name).label(ZONE, zone).label("kubernetes.io/hostname", name)
    return labels.allocatable(cpu=cpu, memory="8Gi", pods=pods)


NODES: Final = (node("n1"), node("n2", "b"))


def replica(name: str, on: str, cpu: str = "1", *, of: str = "web") -> PodBuilder:
    """Return a running pod of ReplicaSet OF-1a of a Deployment."""
    pod = make_pod(name).in_namespace("shop").uid(f"uid-{name}").label("app", of).label("pod-template-hash", "1a")
    return pod.requests(cpu=cpu).owned_by("ReplicaSet", f"{of}-1a", "r1").phase("Running").on(on)


def deployment(name: str = "web", cpu: str = "1", **spec: object) -> Object:
    """Return the Deployment of `replica`."""
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}}
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"template": template}}


def budget(name: str, allowed: int, *, of: str = "web", healthy: int = 2, desired: int = 2) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": of}}},
        "status": {"disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": desired},
    }


def with_local_data(pod: PodBuilder) -> Object:
    found = pod.obj()
    found["spec"]["volumes"] = [{"name": "cache", "emptyDir": {}}]
    return {"kind": "Pod", "apiVersion": "v1", **found}


def dump(folder: Path, *objects: NodeBuilder | PodBuilder | Object) -> str:
    """Write a dump, in which namespace shop has no other object."""
    items: list[Object] = kinded(make_namespace("shop"))
    for each in objects:
        items += [each] if isinstance(each, dict) else kinded(each)
    path = folder / "cluster.json"
    path.write_bytes(as_json(listed(*items)))
    return str(path)


def response(*arguments: object) -> tuple[int, Any]:
    """Return the exit status, and the response in JSON."""
    result = kindred(*arguments, "-o", "json")
    assert result.exit_code < 2, result.stderr
    return result.exit_code, json.loads(result.stdout)


def manifest(folder: Path, found: Object) -> str:
    """Write an object to a file, and return its path."""
    path = folder / f"{found['metadata']['name']}.json"
    path.write_text(json.dumps(found))
    return str(path)
