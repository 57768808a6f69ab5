"""Random arguments of plugins, as in the file of a kube-scheduler, and what the default constraints of spread read."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from tests.parity.random_nodes import EXTENDED, HOST, NAMESPACES, V1, ZONE
from tests.parity.random_pods import label_selector, node_affinity

_API: Final = "kubescheduler.config.k8s.io/v1"
_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "pods", *EXTENDED)
_OWNERS: Final = (
    ("ReplicaSet", "apps/v1"),
    ("StatefulSet", "apps/v1"),
    ("ReplicationController", "v1"),
    ("Job", "batch/v1"),
)
_SELECTED: Final[Sequence[V1 | None]] = ({"app": "x"}, {"app": "y"}, {"app": "x", "tier": "1"}, {}, None)
_REJECTED: Final = 0.03


def plugin_config(random: Random) -> list[V1]:
    """Return `pluginConfig` of a profile; some of it is refused."""
    found = []
    for name, make in _PLUGINS:
        if random.random() < 0.45:
            args = make(random)
            if random.random() < _REJECTED:
                args |= random.choice(({"unknown": 1}, {"kind": "Args"}, {"apiVersion": "v1"}, {"kind": f"{name}Args"}))
            elif random.random() < 0.5:
                args |= {"apiVersion": _API, "kind": f"{name}Args"}
            found.append({"name": name, "args": args})
    return found


def _fit(random: Random) -> V1:
    made: V1 = {}
    if random.random() < 0.8:
        made["scoringStrategy"] = _strategy(random)
    if random.random() < 0.3:
        made["ignoredResources"] = random.sample(EXTENDED, random.randint(0, 2))
    if random.random() < 0.2:
        made["ignoredResourceGroups"] = [random.choice(("example.com", "vendor.example", "none"))]
    if random.random() < _REJECTED:
        made |= random.choice(({"ignoredResources": ["not valid"]}, {"ignoredResourceGroups": ["a/b"]}))
    return made


def _strategy(random: Random) -> V1:
    made: V1 = {"type": random.choice(("LeastAllocated", "MostAllocated", *["RequestedToCapacityRatio"] * 2))}
    if random.random() < 0.8:
        made["resources"] = _resources(random, (1, 1, 2, 3, 50, 100, 0))
    if made["type"] == "RequestedToCapacityRatio":  # beside another type, releases from 1.36 on refuse it
        points = sorted(random.sample((0, 1, 10, 33, 50, 70, 99, 100), random.randint(1, 4)))
        shape: list[V1] = [{"utilization": each, "score": random.randint(0, 10)} for each in points]
        made["requestedToCapacityRatio"] = {"shape": shape}
        if random.random() < _REJECTED:
            shape += random.choice(
                ([{"utilization": 101, "score": 1}], [{"utilization": 100, "score": 11}], [shape[0]], [{}])
            )
    if random.random() < _REJECTED:
        made |= random.choice(({"type": ""}, {"type": "Best"}, {"requestedToCapacityRatio": {"shape": []}}))
    return made


def _resources(random: Random, weights: Sequence[int]) -> list[V1]:
    found: list[V1] = [{"name": each} for each in random.sample(_RESOURCES, random.randint(0, 4))]
    for each in found:
        if random.random() < 0.8:
            each["weight"] = random.choice(weights)
        if random.random() < _REJECTED:
            each.update(random.choice(({"weight": 101}, {"weight": -1}, {"name": "cpu"}, {"name": ""})))
    return found


def _balance(random: Random) -> V1:
    return {"resources": _resources(random, (1, 0))}


def _affinity(random: Random) -> V1:
    made: V1 = {}
    if random.random() < 0.8:
        made["hardPodAffinityWeight"] = random.choice((0, 1, 7, 100))
    if random.random() < 0.5:
        made["ignorePreferredTermsOfExistingPods"] = random.random() < 0.7
    return made | ({"hardPodAffinityWeight": random.choice((101, -1))} if random.random() < _REJECTED else {})


def _node_affinity(random: Random) -> V1:
    return {"addedAffinity": node_affinity(random) if random.random() < 0.9 else None}


def _spread(random: Random) -> V1:
    made: V1 = {}
    if random.random() < 0.6:
        made = {"defaultingType": "List", "defaultConstraints": _constraints(random)}
    elif random.random() < 0.5:
        made["defaultingType"] = "System"
    if random.random() < _REJECTED:
        selector = label_selector(random)
        constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
        odd: tuple[V1, ...] = (
            {"labelSelector": selector},
            {"maxSkew": 0},
            {"topologyKey": ""},
            {"whenUnsatisfiable": ""},
        )
        made |= {"defaultConstraints": [{**constraint, **random.choice(odd)}]}
    return made


def _constraints(random: Random) -> list[V1]:
    found: dict[tuple[str, str], V1] = {}
    for _ in range(random.randint(0, 2)):
        key, action = (
            random.choice((ZONE, HOST, "example.com/rack")),
            random.choice(("DoNotSchedule", "ScheduleAnyway")),
        )
        found[key, action] = {"maxSkew": random.randint(1, 3), "topologyKey": key, "whenUnsatisfiable": action}
        if action == "DoNotSchedule" and random.random() < 0.3:
            found[key, action]["minDomains"] = random.randint(1, 4)
        if random.random() < 0.2:
            found[key, action]["nodeTaintsPolicy"] = "Honor"
    return list(found.values())


_PLUGINS: Final[Sequence[tuple[str, Callable[[Random], V1]]]] = (
    ("NodeResourcesFit", _fit),
    ("NodeResourcesBalancedAllocation", _balance),
    ("InterPodAffinity", _affinity),
    ("NodeAffinity", _node_affinity),
    ("PodTopologySpread", _spread),
)


def owners(random: Random, pods: Sequence[V1]) -> dict[str, list[V1]]:
    """Return Services and controllers, and give some pods one of them."""
    for each in pods:
        if random.random() < 0.6:
            kind, version = random.choice(_OWNERS)
            reference = {"apiVersion": version, "kind": kind, "name": random.choice(("o0", "o1")), "uid": "u"}
            each["metadata"]["ownerReferences"] = [{**reference, "controller": random.random() < 0.9}]
    return {
        "services": [{**each, "spec": _with_selector(random.choice(_SELECTED))} for each in _named(random)],
        "replicationcontrollers": [
            {**each, "spec": _with_selector(random.choice(_SELECTED))} for each in _named(random)
        ],
        "replicasets": [{**each, "spec": {"selector": label_selector(random)}} for each in _named(random)],
        "statefulsets": [{**each, "spec": {"selector": label_selector(random)}} for each in _named(random)],
    }


def _with_selector(selector: V1 | None) -> V1:
    return {} if selector is None else {"selector": selector}


def _named(random: Random) -> list[V1]:
    return [
        {"metadata": {"name": name, "namespace": namespace, "uid": f"{name}-{namespace}"}}
        for name in ("o0", "o1")
        for namespace in NAMESPACES
        if random.random() < 0.5
    ]
