"""Sums of weighted counts over domains, looked up for the nodes of a question."""

from typing import Final

import pytest

from core.mirror.cluster import ClusterMirror
from core.mirror.term_index import DomainCounts
from core.plugins.interpodaffinity.plugin import DomainSums
from tests.builders import labelled, make_node, make_pod, term
from tests.core.decoded import counter_of, matcher_of, mirror_of, tell

NAMES: Final = ["n1", "n2", "n3"]


def cluster() -> ClusterMirror:
    """Return two nodes in zone a, one in zone b, and a pod of each app on the first and the last."""
    nodes = [make_node(name).label("zone", zone).label("host", name) for name, zone in zip(NAMES, "aab", strict=True)]
    web, db = make_pod("web").label("app", "web"), make_pod("db").label("app", "db")
    return mirror_of(*nodes, web.on("n1"), db.on("n3"))


def pods_of(mirror: ClusterMirror, app: str, key: str) -> DomainCounts:
    return counter_of(mirror, (matcher_of(term(key, labelled(app=app))),), key)


@pytest.mark.parametrize("kept", [0, 1, 2, 3])
def test_a_question_with_more_counters_than_are_kept_is_answered_right(
    monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr("core.mirror.affinity_counts.MAX_MATCH_COUNTERS", kept)
    mirror = cluster()
    pods_of(mirror, "web", "zone")
    # The ids of the zones are now in another order than in a column made from the nodes anew.
    tell(mirror, "Update", *(make_node(name).label("zone", "c").label("host", name) for name in ("n1", "n2")))
    tell(mirror, "Update", make_node("n3").label("zone", "a").label("host", "n3"))
    questions = [("web", "zone"), ("web", "host"), ("db", "zone"), ("db", "host"), ("web", "zone")]
    sums = DomainSums([(pods_of(mirror, app, key), 10**place) for place, (app, key) in enumerate(questions)])
    assert sums.per_node(mirror.batch(NAMES)).tolist() == [10011, 10001, 1100]
