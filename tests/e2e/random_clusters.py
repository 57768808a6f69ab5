"""Random clusters of a few nodes: workloads with affinity, spread, volumes, taints, ports and budgets, and their pods.

The pods are where there is room for them, whatever their affinity: rules may be newer than the pods that they are of.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, NamedTuple

from tests.e2e.api import Manifest
from tests.e2e.shapes import HOSTNAME, RACK, ZONE, node, pod, preferred, required, required_node, term

ZONES: Final = 3
DRIVER: Final = "volumes.example.com"
DATA: Final = "data"
DEDICATED: Final = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
PRIORITIES: Final[Mapping[str, int]] = {"low": 100, "high": 1000}
"""Classes whose pods never preempt: the victims of preemption are a matter of chance."""
_DISK: Final = "disk"
_WORKLOADS: Final = 12
_KINDS: Final = ("ReplicaSet", "ReplicaSet", "Deployment", "Deployment", "StatefulSet", "StatefulSet", "Job")
_FULL: Final = (0.6, 0.75, 0.85)


class Workload(NamedTuple):
    """An owner without its UID, and the names of the nodes that its replicas are on."""

    kind: str
    name: str
    template: Manifest
    """Of the pods that are made from now on."""
    running_cpu: str
    """What the running pods request, as the template may be newer."""
    places: Sequence[str]
    unready: int = 0
    """How many of the replicas are not ready."""
    disruptions: int | None = None
    """maxUnavailable of its budget. None: it has no budget."""
    volume_zones: Sequence[str] = ()
    """The zone of each replica's volume, of a StatefulSet with volumes."""


@dataclass(slots=True)
class _Room:
    manifest: Manifest
    cpu: int
    pods: int
    ports: set[int] = field(default_factory=set)

    @property
    def name(self) -> str:
        name: str = self.manifest["metadata"]["name"]
        return name

    def has(self, key: str, value: str) -> bool:
        return bool(self.manifest["metadata"]["labels"].get(key) == value)

    @property
    def is_dedicated(self) -> bool:
        return DEDICATED in self.manifest.get("spec", {}).get("taints", ())


class RandomCluster:
    """A cluster of a seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311  # no secret; the same in each run
        self._rooms = [self._room(index) for index in range(self.random.randint(5, 9))]
        self._full = self.random.choice(_FULL) * sum(each.cpu for each in self._rooms)
        self._apps = [f"app-{index}" for index in range(_WORKLOADS)]
        self.nodes: Sequence[Manifest] = [each.manifest for each in self._rooms]
        self.volumes_a_node: Mapping[str, int] = {each.name: self.random.randint(1, 3) for each in self._rooms}
        self.workloads = self._made_workloads()

    def _room(self, index: int) -> _Room:
        random = self.random
        cpu, pods = random.choice((4, 4, 6)), random.choice((6, 8, 20))
        made = node(index, ZONES, {"cpu": str(cpu), "memory": "16Gi", "pods": str(pods)})
        labels = {**made["metadata"]["labels"], _DISK: random.choice(("ssd", "hdd"))}
        taints = [DEDICATED] if random.random() < 0.2 else []
        if random.random() < 0.2:
            taints.append({"key": "old", "effect": "PreferNoSchedule"})
        return _Room(
            {**made, "metadata": {**made["metadata"], "labels": labels}, "spec": {"taints": taints}}, 1000 * cpu, pods
        )

    def _made_workloads(self) -> Sequence[Workload]:
        found, total = [], sum(each.cpu for each in self._rooms)
        for app in self._apps:
            if total - sum(each.cpu for each in self._rooms) >= self._full:
                break
            found.append(self._workload(app))
        return [each for each in found if each.places]

    def _workload(self, app: str) -> Workload:
        random = self.random
        kind = random.choice(_KINDS)
        cpu = random.choice((250, 500, 1000, 1000, 1500, 2000))
        has_volumes = kind == "StatefulSet" and random.random() < 0.7
        spec = self._rules(app)
        if random.random() < 0.4:
            spec["priorityClassName"] = random.choice([*PRIORITIES])
        if kind == "Job":
            spec["restartPolicy"] = "Never"
        port = random.choice((8080, 9090)) if random.random() < 0.1 else None
        running = cpu if random.random() < 0.8 else max(cpu // 2, 250)
        places, zones = [], []
        for _ in range(random.randint(1, 5)):
            zone = f"zone-{random.randrange(ZONES)}" if has_volumes else ""
            room = self._place(spec, running, port, zone)
            if room is not None:
                places.append(room.name)
                zones.append(zone)
        return Workload(
            kind,
            app,
            pod(app, {"app": app}, cpu=f"{cpu}m", host_port=port, **spec),
            f"{running}m",
            places,
            unready=sum(random.random() < 0.1 for _ in places),
            disruptions=random.choice((0, 1, 1, 2)) if random.random() < 0.35 else None,
            volume_zones=zones if has_volumes else (),
        )

    def _place(self, spec: Manifest, cpu: int, port: int | None, zone: str) -> _Room | None:
        """Take room for a pod on a node that its own labels and taints allow."""
        disk, tolerates = spec.get("nodeSelector", {}).get(_DISK), "tolerations" in spec
        fitting = [
            each
            for each in self._rooms
            if each.cpu >= cpu
            and each.pods > 0
            and port not in each.ports
            and (tolerates or not each.is_dedicated)
            and (disk is None or each.has(_DISK, disk))
            and (not zone or each.has(ZONE, zone))
        ]
        if not fitting:
            return None
        room = self.random.choice(fitting)
        room.cpu -= cpu
        room.pods -= 1
        room.ports |= set() if port is None else {port}
        return room

    def _rules(self, app: str) -> dict[str, Any]:
        """Return members of a pod's spec: up to two rules of inter-pod affinity or spread, and some of labels."""
        random = self.random
        affinity: dict[str, Any] = {}
        spec: dict[str, Any] = {}
        for rule in random.sample((_apart, _attracted, _spread, _prefers), random.choice((0, 1, 1, 2))):
            rule(random, app, self._apps, affinity, spec)
        if random.random() < 0.15:
            affinity |= required_node(
                "matchExpressions", ZONE, *random.sample([f"zone-{at}" for at in range(ZONES)], 2)
            )
        if random.random() < 0.15:
            spec["nodeSelector"] = {_DISK: random.choice(("ssd", "hdd"))}
        if random.random() < 0.3:
            spec["tolerations"] = [{**DEDICATED, "operator": "Equal"}]
        return {**spec, **({"affinity": affinity} if affinity else {})}


def _other(random: Random, app: str, apps: Sequence[str]) -> Mapping[str, str]:
    """Return the labels of the workload itself, or of one of the first others."""
    return {"app": random.choice((app, *apps[:5]))}


def _apart(random: Random, app: str, apps: Sequence[str], affinity: dict[str, Any], _: dict[str, Any]) -> None:
    key = random.choice((HOSTNAME, HOSTNAME, ZONE, RACK))
    affinity |= required("podAntiAffinity", term(_other(random, app, apps), key))


def _attracted(random: Random, app: str, apps: Sequence[str], affinity: dict[str, Any], _: dict[str, Any]) -> None:
    affinity |= required("podAffinity", term(_other(random, app, apps), random.choice((ZONE, ZONE, RACK, HOSTNAME))))


def _prefers(random: Random, app: str, apps: Sequence[str], affinity: dict[str, Any], spec: dict[str, Any]) -> None:
    kind = random.choice(("podAffinity", "podAntiAffinity"))
    if kind not in affinity:
        affinity |= preferred(kind, 10, [term(_other(random, app, apps), random.choice((ZONE, HOSTNAME)))])
    spec.setdefault("topologySpreadConstraints", []).append(
        {**_constraint(app, HOSTNAME, random.randint(1, 3)), "whenUnsatisfiable": "ScheduleAnyway"}
    )


def _spread(random: Random, app: str, _: Sequence[str], __: dict[str, Any], spec: dict[str, Any]) -> None:
    made = {
        **_constraint(app, random.choice((ZONE, ZONE, HOSTNAME, RACK)), random.choice((1, 1, 2))),
        "whenUnsatisfiable": "DoNotSchedule",
    }
    if random.random() < 0.3:
        made["nodeTaintsPolicy"] = "Honor"
    if random.random() < 0.2:
        made["minDomains"] = 2
    if random.random() < 0.3:
        made["matchLabelKeys"] = ["pod-template-hash"]
    constraints = spec.setdefault("topologySpreadConstraints", [])
    if not any(each["topologyKey"] == made["topologyKey"] for each in constraints):
        constraints.append(made)


def _constraint(app: str, topology_key: str, max_skew: int) -> dict[str, Any]:
    return {"maxSkew": max_skew, "topologyKey": topology_key, "labelSelector": {"matchLabels": {"app": app}}}
