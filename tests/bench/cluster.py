"""The bench cluster of the bench checks and of the in-tree plugin's timings: formulae, no randomness.

Do not change the formulae. The recorded results for 1,000 and 5,000 nodes belong to this cluster.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

Object: TypeAlias = dict[str, Any]

HOST: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
RACK: Final = "example.com/rack"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"

NAMESPACES: Final = 200
RACKS: Final = 51
ZONES: Final = 3
PODS_PER_APP: Final = 50
KINDS: Final[Mapping[str, tuple[int, ...]]] = {  # kind of incoming pod -> the kinds of its apps
    "plain": (5, 6, 7, 8, 9),
    "anti_self_host": (0, 1),
    "aff_zone_prefanti_host": (4,),
    "pref_mix": (2, 3),
}
MODULUS: Final = 1_000_000_007


def app_count(pods: int) -> int:
    """Return the number of apps for a number of pods."""
    return pods // PODS_PER_APP


def app_kind(app: int) -> int:
    """Return 0..9: 0 and 1 repel themselves per host, 2 and 3 prefer other zones, 4 joins another app's zone."""
    return (app + app // NAMESPACES) % 10


def app_name(app: int) -> str:
    """Return the value of the label `app`."""
    return f"app-{app:04d}"


def node_name(index: int) -> str:
    """Return the name of a node, which is also its hostname label."""
    return f"node-{index:05d}"


def node(index: int) -> Object:
    """Make a v1.Node."""
    resources = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    labels = {
        HOST: node_name(index),
        ZONE: f"zone-{index % ZONES}",
        REGION: "region-0",
        RACK: f"rack-{index % RACKS:02d}",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    return {
        "metadata": {"name": node_name(index), "labels": labels},
        "spec": {},
        "status": {"capacity": dict(resources), "allocatable": resources},
    }


def namespace(index: int) -> Object:
    """Make a v1.Namespace."""
    name = f"ns-{index:03d}"
    labels = {"kubernetes.io/metadata.name": name, "team": f"team-{index % 10}"}
    return {"metadata": {"name": name, "labels": labels}}


def pod(index: int, apps: int, nodes: int) -> Object:
    """Make an existing v1.Pod, bound to its node."""
    app, replica = index % apps, index // apps
    made = _pod_of(app, f"pod-{index:06d}", replica % 3)
    made["spec"]["nodeName"] = node_name((app * 7919 + replica * (nodes // PODS_PER_APP)) % nodes)
    kind = app_kind(app)
    if kind in (0, 1):
        made["spec"]["affinity"] = {"podAntiAffinity": {REQUIRED: [_term(HOST, app=app_name(app))]}}
    elif kind in (2, 3):
        preferred = [_weighted(1 + app % 100, ZONE, app=app_name(app))]
        made["spec"]["affinity"] = {"podAntiAffinity": {PREFERRED: preferred}}
    elif kind == 4:
        required = [_term(ZONE, app=app_name((app + NAMESPACES) % apps))]
        made["spec"]["affinity"] = {"podAffinity": {REQUIRED: required}}
    return made


def incoming(kind: str, iteration: int, apps: int) -> Object:
    """Make the incoming pod of one iteration of a kind."""
    of_kind = [app for app in range(apps) if app_kind(app) in KINDS[kind]]
    app = of_kind[(iteration * 13) % len(of_kind)]
    made = _pod_of(app, f"in-{kind}-{iteration:03d}", iteration % 3)
    own, other = app_name(app), app_name((app + NAMESPACES) % apps)
    if kind == "anti_self_host":
        made["spec"]["affinity"] = {"podAntiAffinity": {REQUIRED: [_term(HOST, app=own)]}}
    elif kind == "aff_zone_prefanti_host":
        made["spec"]["affinity"] = {
            "podAffinity": {REQUIRED: [_term(ZONE, app=other)]},
            "podAntiAffinity": {PREFERRED: [_weighted(100, HOST, app=own)]},
        }
    elif kind == "pref_mix":
        attract = [_weighted(50, ZONE, app=other), _weighted(20, RACK, tier=f"tier-{app % 4}")]
        repel = [_weighted(80, HOST, app=own), _weighted(30, ZONE, app=own)]
        made["spec"]["affinity"] = {"podAffinity": {PREFERRED: attract}, "podAntiAffinity": {PREFERRED: repel}}
    return made


def namespaces() -> Iterator[Object]:
    """Make all namespaces."""
    return map(namespace, range(NAMESPACES))


def nodes(count: int) -> Iterator[Object]:
    """Make the nodes, in the order of their indexes."""
    return map(node, range(count))


def pods(count: int, node_count: int) -> Iterator[Object]:
    """Make the existing pods of a cluster with `node_count` nodes."""
    return (pod(index, app_count(count), node_count) for index in range(count))


def checksum(node_names: Sequence[str], scores: Mapping[str, int]) -> Object:
    """Return a result in the form of the bench checks. `scores` has the normalised scores of fitting nodes."""
    index_sum = score_sum = score_index_sum = 0
    best_node, best_score = "", -1
    for position, name in enumerate(node_names, start=1):
        if name not in scores:
            continue
        score = scores[name]
        index_sum = (index_sum + position) % MODULUS
        score_sum += score
        score_index_sum = (score_index_sum + position * score) % MODULUS
        if score > best_score:
            best_node, best_score = name, score
    return {
        "feasible": len(scores),
        "feasible_index_sum": index_sum,
        "score_sum": score_sum,
        "score_index_sum": score_index_sum,
        "best_node": best_node,
        "best_score": best_score,
    }


def _pod_of(app: int, name: str, version: int) -> Object:
    labels = {
        "app": app_name(app),
        "tier": f"tier-{app % 4}",
        "version": f"v{version}",
        "pod-template-hash": f"{(app * 2654435761) & 0xFFFFFFFF:08x}",
    }
    requests = {"cpu": "100m", "memory": "128Mi"}
    return {
        "metadata": {"name": name, "namespace": f"ns-{app % NAMESPACES:03d}", "uid": name, "labels": labels},
        "spec": {"containers": [{"name": "c", "image": "img", "resources": {"requests": requests}}]},
    }


def _term(key: str, **labels: str) -> Object:
    return {"labelSelector": {"matchLabels": labels}, "topologyKey": key}


def _weighted(weight: int, key: str, **labels: str) -> Object:
    return {"weight": weight, "podAffinityTerm": _term(key, **labels)}
