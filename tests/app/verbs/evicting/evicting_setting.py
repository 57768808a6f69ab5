"""A service that preempts by itself beside a fake API server, and what it did there."""

import asyncio
from dataclasses import replace
from typing import Any, Final, NamedTuple

from app.verbs.executor import EvictionResult
from core.objects.pod import Pod
from tests.app.verbs.binding.binding_setting import HOSTNAME, PATIENCE, Scheduler, until
from tests.builders import PodBuilder, labelled, make_pod, term
from tests.fake_apiserver.faults import Kind, LoggedRequest
from tests.fake_apiserver.resources import PODS
from tests.fake_apiserver.store import Object

GIVEN_UP: Final = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
_SAMPLE: Final = 'kindred_preemptions_total{{result="{}"}}'
WRITES: Final[tuple[Kind, ...]] = ("patch", "delete")
WEB, DB = (term(HOSTNAME, labelled(app=app)) for app in ("web", "db"))
IMPORTANT: Final = replace(make_pod("p").required_anti_affinity(WEB), spec={"schedulerName": "mine", "priority": 10})


class Write(NamedTuple):
    """A request that changes a pod."""

    kind: str
    path: str


def web(name: str, node: str, priority: int = 0) -> PodBuilder:
    """Make a pod that keeps IMPORTANT off its node."""
    return make_pod(name).label("app", "web").priority(priority).on(node)


def patched(name: str) -> Write:
    return Write("patch", f"/api/v1/namespaces/default/pods/{name}/status")


def deleted(name: str) -> Write:
    return Write("delete", f"/api/v1/namespaces/default/pods/{name}")


def writes(scheduler: Scheduler) -> list[Write]:
    """Return the requests that were to change pods, in their order."""
    return [Write(request.kind, request.path) for request in requests(scheduler)]


def requests(scheduler: Scheduler) -> list[LoggedRequest]:
    return scheduler.server.requests.of(None, *WRITES)


def stored(scheduler: Scheduler, name: str) -> Any:  # noqa: ANN401 - JSON
    """Return a pod as the server has it."""
    found = scheduler.server.store.get(PODS.path, name, "default")
    assert found is not None
    return found


def mirrored(scheduler: Scheduler, pod: Object) -> Pod:
    """Return a pod as the mirror has it."""
    found = scheduler.mirror.get_pod(pod["metadata"]["uid"])
    assert found is not None
    return found


def terminates(scheduler: Scheduler, *names: str) -> list[bool]:
    """Return which pods of the server are on their way out."""
    return ["deletionTimestamp" in stored(scheduler, name)["metadata"] for name in names]


def release(scheduler: Scheduler, *names: str) -> None:
    """Do what kubelets do with pods that terminate."""
    for name in names:
        scheduler.server.delete(PODS.path, name, "default")


async def running(scheduler: Scheduler, *pods: PodBuilder) -> list[Object]:
    """Create pods on their nodes, and wait until the watch has told of them."""
    created = [scheduler.create(pod) for pod in pods]
    await until(lambda: all(scheduler.mirror.is_mirrored(pod["metadata"]["uid"]) for pod in created))
    return created


def give_up(scheduler: Scheduler, pod: Object, **status: Any) -> Object:  # noqa: ANN401 - JSON
    """Say that a pod is unschedulable, as kube-scheduler does after an attempt; give it as it is then."""
    found = stored(scheduler, pod["metadata"]["name"])
    return scheduler.server.update(
        PODS.path, {**found, "status": {**found.get("status", {}), "conditions": [GIVEN_UP], **status}}
    )


async def attempt(scheduler: Scheduler, pod: Object, *nodes: str) -> None:
    """Ask about a pod that fits nowhere, and give it up."""
    assert await scheduler.filter(pod, *nodes) == []
    give_up(scheduler, pod)


async def until_counted(scheduler: Scheduler, **results: int) -> None:
    """Wait until exactly these results were counted."""
    async with asyncio.timeout(PATIENCE):
        while await counted(scheduler) != results:  # noqa: ASYNC110 - metrics tell nobody
            await asyncio.sleep(0.005)


async def counted(scheduler: Scheduler) -> dict[str, int]:
    """Return the results that were counted."""
    samples = await scheduler.metrics(*(_SAMPLE.format(each.value) for each in EvictionResult))
    counts = dict(zip((each.value for each in EvictionResult), samples, strict=True))
    return {result: int(count) for result, count in counts.items() if count}
