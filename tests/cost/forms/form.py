"""A form: a recipe for an attack of any size."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from tests.bench.cluster import PREFERRED, REQUIRED
from tests.cost.attack import ROOM, Attack, Object, Way

Make: TypeAlias = Callable[[int], Any]
NODES: Final = 5000
"""Nodes of the largest supported cluster. A form may use their names."""


@dataclass(frozen=True, slots=True)
class Form:
    """A name, the attacked part, and a function that makes a document of about the given size."""

    name: str
    area: str
    way: Way
    make: Make
    of_issue: bool = False
    """Whether it once stopped a service."""
    sizes: tuple[int, ...] = ()
    """Sizes in bytes for the measurement. Empty: the sizes of all forms."""

    def attack(self, size: int) -> Attack:
        """Make the attack of a size."""
        return Attack(self.way, self.make(size))


def of_spec(name: str, area: str, make: Make, *, of_issue: bool = False) -> Form:
    """Return a form of a pod with the result of `make` as its spec."""
    return Form(name, area, "pod", lambda size: pod(make(size - ROOM)), of_issue=of_issue)


def of_affinity(name: str, member: str, terms: Make, *, preferred: bool = False, of_issue: bool = False) -> Form:
    """Return a form of a pod with terms of podAffinity or podAntiAffinity."""

    def spec(size: int) -> Object:
        made: list[Object] = terms(size * 2 // 3 if preferred else size)  # weights need the rest
        if preferred:
            made = [{"weight": 1 + index % 100, "podAffinityTerm": term} for index, term in enumerate(made)]
        return {"affinity": {member: {PREFERRED if preferred else REQUIRED: made}}}

    return of_spec(name, "InterPodAffinity", spec, of_issue=of_issue)


def pod(spec: Object, metadata: Object | None = None, status: Object | None = None) -> Object:
    """Return a pod with a controller, so that it has a class."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "hostile", "uid": "hostile-set", "controller": True}
    own = {
        "name": "hostile-0",
        "namespace": "ns-000",
        "uid": "hostile-0",
        "labels": {"app": "app-0000", "tier": "tier-0", "version": "v0"},
        "ownerReferences": [owner],
    }
    containers = [{"name": "c", "image": "img", "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}]
    made = {"kind": "Pod", "apiVersion": "v1", "metadata": {**own, **(metadata or {})}}
    return {**made, "spec": {"containers": containers, **spec}, **({"status": status} if status else {})}


def expression(key: str, operator: str, values: Iterable[str] = ()) -> Object:
    """Return a requirement of a selector."""
    made = list(values)
    return {"key": key, "operator": operator, **({"values": made} if made else {})}
