"""Bench checks: checksums of the in-tree plugin's answers on the large cluster, compared with the engine's."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from core.mirror.cluster import ClusterMirror
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from tests.bench import cluster
from tests.conformance.engine import ask, load
from tests.conformance.golden_files import Line, Members
from tests.conformance.results import Difference, Results, differences

_SKIP: Final = "Skip"
_SUCCESS: Final = "Success"


def run(lines: Iterable[Line], results: Results) -> None:
    """Load each cluster that the checks speak of once, and ask it all of its checks."""
    by_cluster: dict[tuple[int, int], list[Line]] = defaultdict(list)
    for line in lines:
        by_cluster[line.content["nodes"], line.content["pods"]].append(line)
    for (nodes, pods), checks in by_cluster.items():
        mirror = load(cluster.namespaces(), cluster.nodes(nodes), cluster.pods(pods, nodes))
        name = f"InterPodAffinity bench checks, {nodes} nodes / {pods} pods"
        for line in checks:
            check = line.content
            results.add(name, f"{check['kind']} {check['iter']} ({line.place})", _differences(mirror, check))


def _differences(mirror: ClusterMirror, check: Members) -> list[Difference]:
    try:
        got = _response(mirror, check)
    except Exception as error:  # noqa: BLE001 - whatever the engine raises is its answer to this check, a wrong one
        return [Difference("answer", dict(check), error)]
    return differences(check, got)


def _response(mirror: ClusterMirror, check: Members) -> Members:
    pod = cluster.incoming(check["kind"], check["iter"], cluster.app_count(check["pods"]))
    names = [cluster.node_name(index) for index in range(check["nodes"])]
    response = ask(InterPodAffinity(), mirror, pod, names)
    fitting = [name for name in names if response.filter[name][0] == _SUCCESS]
    scores = {name: response.normalized_feasible.get(name, 0) for name in fitting}
    metadata = pod["metadata"]
    return {
        **{field: check[field] for field in ("kind", "iter", "nodes", "pods")},
        "app": metadata["labels"]["app"],
        "namespace": metadata["namespace"],
        "prefilter_skipped": response.prefilter == _SKIP,
        "prescore_skipped": response.prescore_feasible == _SKIP,
        **cluster.checksum(names, scores),
    }
