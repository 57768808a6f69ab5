"""Changes golden cases: a part of one case replaces the same part of another, and parts are removed.

A value at a path of one case (`pods[].spec.affinity`) is valid at the same path of another case in its file. So an API
server would still accept the objects, and unexpected combinations occur.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from copy import deepcopy
from random import Random
from typing import Any, Final

from tests.parity.random_nodes import V1

_CHANGES: Final = (1, 2, 3, 5, 8)
_DROPPED: Final = 0.2
_RETAINED: Final = frozenset({"name", "uid", "namespace", "kind"})
"""Members by which objects refer to each other. They stay unchanged."""
_PODS: Final = ("pods", "nominated")
_LEFT_OUT: Final = frozenset({"expected", "expected_1_34", "name", "note", "tags"})


class Mutator:
    """Makes new cases from the cases of one file, which stay unchanged."""

    def __init__(self, cases: Sequence[V1]) -> None:
        self._cases = [{name: value for name, value in case.items() if name not in _LEFT_OUT} for case in cases]

    def case(self, random: Random) -> V1:
        """Return a changed case."""
        made = deepcopy(random.choice(self._cases))
        for _ in range(random.choice(_CHANGES)):
            self._change(random, made)
        return mended(random, made)

    def _change(self, random: Random, case: V1) -> None:
        """Change a value. The path is chosen first, because a random place would mostly be a label of a node."""
        here, there = places(case), places(random.choice(self._cases))
        path = random.choice([path for path in here if path in there])
        container, key = random.choice(here[path])
        if random.random() < _DROPPED and _droppable(path):
            del container[key]
        else:
            donor, place = random.choice(there[path])
            container[key] = deepcopy(donor[place])


def places(case: V1) -> dict[str, list[tuple[Any, Any]]]:
    """Return path -> the places that may be changed: each an object or a list, and the key in it."""
    found: dict[str, list[tuple[Any, Any]]] = defaultdict(list)
    for member in case:
        for path, container, key in _places(member, case, member):
            found[path].append((container, key))
    return found


def _places(path: str, container: Any, key: Any) -> Iterator[tuple[str, Any, Any]]:  # noqa: ANN401  # any JSON
    value = container[key]
    if path.count(".") or "[]" in path:
        yield path, container, key
    if isinstance(value, dict):
        for name in value:
            if name not in _RETAINED:
                yield from _places(f"{path}.{name}", value, name)
    elif isinstance(value, list):
        for index in range(len(value)):
            yield from _places(f"{path}[]", value, index)


def _droppable(path: str) -> bool:
    """Return whether a place may be empty: an element of a list, or an optional member."""
    if path.endswith((".containers[]", ".values[]")):
        return False  # an API server requires it
    return path.endswith(("[]", ".affinity", ".tolerations", ".taints", ".labels", ".ports", ".volumes", ".resources"))


def mended(random: Random, case: V1) -> V1:
    """Restore the invariants of every cluster: names and uids are unique, and the nodes of pods exist."""
    for member, objects in case.items():
        if isinstance(objects, list) and member not in _PODS:
            case[member] = _unique(objects)
    known = [case["pod"]]
    for member in _PODS:
        if member in case:
            case[member] = _unique([*known, *case[member]])[len(known) :]  # `known` is unique, and comes first
            known += case[member]
    names = [node["metadata"]["name"] for node in case["nodes"]]
    for pod in case["pods"]:
        if pod["spec"].get("nodeName") not in names:
            pod["spec"]["nodeName"] = random.choice(names or [""])
    case["pods"] = [pod for pod in case["pods"] if pod["spec"]["nodeName"]]
    for pod in case.get("nominated", ()):
        pod["spec"].pop("nodeName", None)
    with_valid_devices(case)
    if "pdbs" in case:
        without_shared_ports(case["pods"])
    return case


def with_valid_devices(case: V1) -> None:
    """Restore what holds of claims and slices: names of alternatives differ, and slices of a pool agree in their count.

    Which of the counts upstream takes depends on the order of a map (kubernetes#141117).
    """
    for claim in case.get("resourceclaims", ()):
        for request in claim.get("spec", {}).get("devices", {}).get("requests", ()):
            for index, alternative in enumerate(request.get("firstAvailable", ())):
                alternative["name"] = f"s{index}"
    counts: dict[tuple[object, ...], int] = {}
    for each in case.get("resourceslices", ()):
        pool = each["spec"].get("pool", {})
        key = (each["spec"].get("driver"), pool.get("name"), pool.get("generation"))
        pool["resourceSliceCount"] = counts.setdefault(key, pool.get("resourceSliceCount", 1))


def without_shared_ports(pods: list[V1]) -> None:
    """Remove a host port of a node from all pods except the first one with it.

    Upstream counts a shared port once. In a dry run it is free as soon as one of its pods is removed.
    """
    taken: set[tuple[object, ...]] = set()
    for pod in pods:
        ports = [
            (pod["spec"]["nodeName"], port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"])  # noqa: S104  # no socket
            for each in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ()))
            for port in each.get("ports", ())
            if port.get("hostPort")
        ]
        if taken.intersection(ports):
            for each in pod["spec"]["containers"]:
                each.pop("ports", None)
        else:
            taken.update(ports)


def _unique(objects: list[V1]) -> list[V1]:
    """Return the first object of each name and of each uid."""
    names, uids, retained = set(), set(), []
    for each in objects:
        metadata = each["metadata"]
        name, uid = (metadata.get("namespace"), metadata["name"]), metadata.get("uid")
        if name not in names and (uid is None or uid not in uids):
            retained.append(each)
            names.add(name)
            uids.add(uid)
    return retained
