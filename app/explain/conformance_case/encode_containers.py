"""Containers with the known requests of a pod.

The mirror keeps only sums over a pod's containers, unless releases count them differently: the reserved amount, and the
amount for scoring, which assumes 100m and 200Mi for a container without requests. The written containers have the same
number and sums as the pod's own, but other single requests.
Limits are lost, and with them the predicted usage (`Pod.load`), which no plugin of kube-scheduler reads.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from app.explain.conformance_case.encode import V1, NotExpressibleError, present, quantities_of
from core.objects.host_port import HostPort
from core.objects.pod import Pod

_DEFAULTS: Final = {"cpu": 100, "memory": 200 * 1024 * 1024}
"""The assumed use of a container without requests (see core/objects/pod_requests.py)."""
_MEMO_ENTRIES: Final = 8192


class Containers(msgspec.Struct, frozen=True, gc=False):
    """Members of a pod's spec, members of its status, and conditions of the status."""

    spec: V1
    status: V1
    conditions: Sequence[V1]


class _Demand(NamedTuple):
    """The requests of a pod, as a key. The pods of a controller have equal requests."""

    requests: tuple[tuple[str, int], ...]
    non_zero: tuple[int, int]
    best_effort: bool
    host_ports: frozenset[HostPort]
    images: tuple[str, ...]

    def compute(self) -> Iterator[tuple[str, int | None, int]]:
        """Yield cpu and memory: name, reserved amount (None: not named), amount for scoring."""
        requests = dict(self.requests)
        for name, taken in zip(_DEFAULTS, self.non_zero, strict=True):
            yield name, requests.get(name), taken

    def others(self) -> dict[str, int]:
        """Return the other requests."""
        return {name: amount for name, amount in self.requests if name not in _DEFAULTS}


class _Asking:
    """The requests of a pod's containers while they are composed."""

    def __init__(self, running: int, starting: int) -> None:
        self.running: list[dict[str, int]] = [{} for _ in range(running)]
        self.starting: list[dict[str, int]] = [{} for _ in range(starting)]
        """Init containers. The largest one counts, if it is larger than the sum of all running containers."""
        self.overhead: dict[str, int] = {}

    def all_on_last(self, name: str, amount: int) -> None:
        """Let the last running container request the amount, and all others 0. A request of 0 is not a missing one."""
        for each in (*self.running, *self.starting):
            each[name] = 0
        self.running[-1][name] = amount

    def best_effort(self) -> bool:
        """Whether the requests leave the pod in the QoS class BestEffort."""
        return not any(each.get(name, 0) > 0 for each in (*self.running, *self.starting) for name in _DEFAULTS)


def containers_of(pod: Pod) -> Containers:
    """Return containers that decode to the same demand. Raises NotExpressibleError if none are found."""
    demand = _Demand(
        tuple(pod.requests.items()),
        pod.non_zero_requests,
        pod.best_effort,
        pod.host_ports,
        pod.images,
    )
    found = _containers(demand)
    if found is None:
        raise NotExpressibleError(
            f"pod {pod.full_name}: found no {len(pod.images)} containers that reserve {dict(pod.requests)} and are "
            f"taken for {pod.non_zero_requests} (millicores and bytes)"
        )
    return found


@lru_cache(maxsize=_MEMO_ENTRIES)
def _containers(demand: _Demand) -> Containers | None:
    if not demand.images:
        asking = _without_containers(demand)
        return None if asking is None else _written(demand, asking)
    for running in range(len(demand.images), 0, -1):
        asking = _plain(demand, running)
        if asking is not None:
            asking.running[-1].update(demand.others())
            return _written(demand, asking)
    return None


def _without_containers(demand: _Demand) -> _Asking | None:
    asking = _Asking(0, 0)
    asking.overhead = demand.others()
    for name, reserved, taken in demand.compute():
        if (reserved or 0) != taken:
            return None
        if reserved is not None:
            asking.overhead[name] = taken
    return None if demand.host_ports else asking


def _plain(demand: _Demand, running: int) -> _Asking | None:
    """Compose `running` containers without requests. The last container, or else the overhead, has the rest of the sum.

    An init container requests the rest of the reserved amount.
    """
    asking = _Asking(running, len(demand.images) - running)
    for name, reserved, taken in demand.compute():
        if reserved is None:
            if taken != running * _DEFAULTS[name]:
                return None
            continue
        silent = -(-(taken - reserved) // _DEFAULTS[name])
        asked = taken - silent * _DEFAULTS[name]
        if not 0 <= silent <= running or (asked < reserved and not asking.starting):
            return None
        asking.all_on_last(name, asked)
        if silent == running:
            asking.overhead[name] = asked
        for each in asking.running[:silent]:
            del each[name]
        if asked < reserved:
            asking.starting[0][name] = reserved - asking.overhead.get(name, 0)
    return asking


def _written(demand: _Demand, asking: _Asking) -> Containers:
    ports = [
        {"containerPort": each.port, "hostPort": each.port, "protocol": each.protocol, "hostIP": each.ip}
        for each in sorted(demand.host_ports)
    ]
    containers = [
        present({"name": f"c{index}", "image": image, "resources": present({"requests": quantities_of(requests)})})
        for index, (image, requests) in enumerate(zip(demand.images, (*asking.running, *asking.starting), strict=True))
    ]
    running = len(asking.running)
    if ports:
        containers[running - 1]["ports"] = ports
    spec = {
        "containers": containers[:running],
        "initContainers": containers[running:],
        "overhead": quantities_of(asking.overhead),
    }
    status: V1 = {}
    if demand.best_effort != asking.best_effort():
        status["qosClass"] = "BestEffort" if demand.best_effort else "Burstable"
    return Containers(present(spec), status, ())
