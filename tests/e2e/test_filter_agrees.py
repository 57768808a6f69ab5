"""Kindred filters after all in-tree filters: each node that it is asked about has passed them, and must pass again."""

from collections.abc import Mapping
from typing import Any, Final

from tests.e2e.api import Manifest
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import Note
from tests.e2e.relay import rejected, relay_to
from tests.e2e.scheduler import with_in_tree_filters
from tests.e2e.shapes import HOSTNAME, ZONE, apart, on, pod, required, term

NODES: Final = 30
SIZE: Final = 9
LEADER: Final = {"app": "leader"}
LOADED: Final = {"app": "loaded"}
ROW: Final = "example.com/row"
"""A label that no node has."""


def leaders() -> list[Manifest]:
    """Return bound pods: of one group in two of three zones, of another on ten nodes, where nobody else is wanted."""
    guard = apart({"kind": "wary"})
    return [
        *(on(pod(f"leader-{index}", LEADER), f"node-{index:04}") for index in (0, 3, 1)),
        *(on(pod(f"loaded-{index}", LOADED, affinity=guard), f"node-{index:04}") for index in range(10)),
    ]


def affinities(own: Mapping[str, str]) -> Mapping[str, Mapping[str, Any]]:
    """Return required affinity of all kinds, for pods with labels."""
    near, apart = "podAffinity", "podAntiAffinity"
    return {
        "plain": {},
        "together": required(near, term(own, ZONE)),
        "node-mates": required(near, term(own, HOSTNAME)),
        "apart": required(apart, term(own, HOSTNAME)),
        "followers": required(near, term(LEADER, ZONE)),
        "at-leaders": required(near, term(LEADER, HOSTNAME)),
        "avoiding": required(apart, term(LOADED, HOSTNAME)),
        "elsewhere": required(apart, term(LEADER, ZONE)),
        "wary": required(apart, term(LEADER, HOSTNAME)),
        "no-row": required(apart, term(own, ROW)),
        "both": {**required(near, term(LEADER, ZONE)), **required(apart, term(own, HOSTNAME))},
        "two-terms": required(near, term(LEADER, ZONE), term(LEADER, HOSTNAME)),
    }


KINDS: Final = tuple(affinities({}))


def mixed_load() -> list[Manifest]:
    """Return pods of all kinds, of one kind after the other."""
    return [
        pod(f"{name}-{number}", own, affinity=affinity)
        for number in range(SIZE)
        for name in KINDS
        for own in [{"kind": name}]
        for affinity in [affinities(own)[name]]
    ]


def test_kindred_takes_no_node_away_that_in_tree_let_through(cluster: Cluster, note: Note) -> None:
    cluster.add_nodes(NODES)
    cluster.create_pods(leaders())
    kindred = cluster.start_kindred()
    pods = mixed_load()
    with relay_to(kindred.url) as relay:
        cluster.start_scheduler(with_in_tree_filters(relay.url))
        cluster.create_pods(pods)
        cluster.wait_bound(len(leaders()) + len(pods))
        calls = relay.calls["filter"]
        requested = {call.pod: len(call.question["NodeNames"]) for call in calls}
        sizes = sorted(set(requested.values()))
        note(f"{len(calls)} requests about {len(pods)} pods, about 1 to {NODES} nodes: {sizes}")
        assert rejected(calls) == {}
        assert requested.keys() == {manifest["metadata"]["name"] for manifest in pods}
        assert len(set(requested.values())) > 4  # in-tree has taken nodes away
        assert cluster.violations() == []
