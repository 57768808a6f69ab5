"""Score offload: the nodes that the in-tree InterPodAffinity would choose, up to ties, and the same scores behind them.

Ties are broken at random, so that two runs go apart at the first one. Here the second follows the first: a pod that
went elsewhere is put where the first run had it, and so every pod is scored over the same cluster twice.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final

import msgspec
import pytest

from tests.e2e.api import NAMESPACES, NODES, Manifest, pods_path
from tests.e2e.cluster import NAMESPACE, PODS, Cluster
from tests.e2e.conftest import Note
from tests.e2e.kindred import Kindred
from tests.e2e.programs import PATIENCE, wait_until
from tests.e2e.scheduler import IN_TREE, Scheduler, configuration
from tests.e2e.scores import INTER_POD_AFFINITY, VERBOSITY, PodScores, scores_of
from tests.e2e.shapes import HOSTNAME, ZONE, apart, node, on, pod, preferred, required, term

ZONES: Final = (range(0, 48, 3), range(1, 28, 3), range(2, 14, 3))  # 16, 9 and 4 nodes
GROUPS: Final = [{"app": name} for name in ("web", "db", "cache", "queue")]
NEIGHBOURS: Final = "neighbours"
TEAM: Final = {"team": "neighbours"}
OF_TEAM: Final = {"namespaceSelector": {"matchLabels": TEAM}}
OF_ALL: Final[Mapping[str, Any]] = {"namespaceSelector": {}}
HARD_WEIGHT: Final = 40
ARGS: Final = json.dumps({INTER_POD_AFFINITY: {"hardPodAffinityWeight": HARD_WEIGHT}})
"""hardPodAffinityWeight: what a required term of a pod counts for the pods after it. The default is 1."""
ROUNDS: Final = 5

DEFAULT_WEIGHTS: Final = {
    # Source: pkg/scheduler/apis/config/v1/default_plugins.go; InterPodAffinity has 2.
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}
STEP: Final = 10  # MaxNodeScore / MaxExtenderPriority: what a score of 1 adds, at weight 1


class Registration(msgspec.Struct, frozen=True):
    """What of score-offload.yaml is varied: the steps of Kindred's score, and the weights of all plugins."""

    max_score: int
    factor: int

    def config(self, url: str) -> dict[str, Any]:
        """Return the configuration."""
        config = configuration("score-offload", url)
        config["extenders"][0]["httpTimeout"] = "30s"  # not the 1 s after which a busy machine's score does not count
        if self.factor != 1:
            weights = [{"name": name, "weight": self.factor * each} for name, each in DEFAULT_WEIGHTS.items()]
            config["profiles"][0]["plugins"]["multiPoint"] = {"enabled": weights}
        return config

    def settings(self) -> dict[str, str]:
        """Return what is to be set on Kindred."""
        return {"KINDRED_MAX_SCORE": str(self.max_score), "KINDRED_PLUGIN_ARGS": ARGS}

    def response(self, score: int) -> int:
        """Return what Kindred has to answer for a score of InterPodAffinity, 0..100."""
        return score * self.max_score // 100

    def most_lost(self) -> int:
        """Return what rounding can take from a node's total at most."""
        return max(2 * self.factor * score - STEP * self.response(score) for score in range(101))


AS_SHIPPED: Final = Registration(max_score=20, factor=1)
# Up to 100 * 10 from Kindred, which is 5 * (100 * 2): no score is rounded if all others have five times their weight.
WITHOUT_STEPS: Final = Registration(max_score=100, factor=5)


@pytest.fixture(scope="module")
def neighbours(cluster: Cluster) -> str:
    """Make a namespace of another team, and return its path of pods."""
    cluster.api.create(NAMESPACES, {"metadata": {"name": NEIGHBOURS, "labels": TEAM}})
    return pods_path(NEIGHBOURS)


@pytest.fixture(autouse=True)
def _surroundings(cluster: Cluster, neighbours: str) -> Iterator[None]:
    """Make zones of different sizes, a node that is in none, and pods of the other team."""
    outside = node(100)
    del outside["metadata"]["labels"][ZONE]
    cluster.api.create_all(NODES, [*(node(index) for zone in ZONES for index in zone), outside])
    theirs = [on(pod(f"web-{index}", GROUPS[0]), f"node-{index:04}") for index in (0, 3, 6, 1, 2)]
    cluster.api.create_all(neighbours, theirs)
    yield
    cluster.api.delete_all(neighbours)


def pods_of_a_round(number: int, random: Random) -> list[Manifest]:
    """Return pods with all that InterPodAffinity scores by, of random groups and weights."""

    def group() -> dict[str, str]:
        return random.choice(GROUPS)

    def prefers(kind: str, key: str, **more: object) -> dict[str, Any]:
        return preferred(kind, random.randint(1, 100), [term(group(), key, **more)])

    alone = {**group(), "alone": str(random.randint(0, 1))}
    affinities: Mapping[str, Mapping[str, Any]] = {
        "plain": {},
        "zone": prefers("podAffinity", ZONE),
        "node": prefers("podAffinity", HOSTNAME),
        "away": prefers("podAntiAffinity", ZONE),
        "apart": {**prefers("podAntiAffinity", HOSTNAME), **prefers("podAffinity", ZONE)},
        "alone": {**apart(alone), **prefers("podAffinity", ZONE)},
        "near": {**required("podAffinity", term(GROUPS[0], ZONE, **OF_ALL)), **prefers("podAntiAffinity", HOSTNAME)},
        "team": prefers("podAffinity", ZONE, **OF_TEAM),
    }
    return [
        pod(f"{name}-{number}", alone if name == "alone" else group(), affinity=affinity, cpu=f"{50 * number + 50}m")
        for name, affinity in affinities.items()
    ]


def in_tree_config() -> dict[str, Any]:
    """Return a configuration without an extender."""
    args = {"name": INTER_POD_AFFINITY, "args": {"hardPodAffinityWeight": HARD_WEIGHT}}
    return {**configuration(IN_TREE, ""), "profiles": [{"schedulerName": "default-scheduler", "pluginConfig": [args]}]}


def move(cluster: Cluster, scheduler: Scheduler, manifest: Manifest, node_name: str) -> None:
    """Put a pod on another node, and wait until the scheduler counts it there."""
    name = manifest["metadata"]["name"]
    cluster.api.delete(f"{PODS}/{name}")
    cluster.api.create(PODS, on(manifest, node_name))
    # The first time was when it was bound.
    added = f'"Add event for scheduled pod" pod="{NAMESPACE}/{name}"'
    wait_until(lambda: scheduler.log().count(added) == 2, PATIENCE, f"{name} moved", every=0.02)


def follow(
    cluster: Cluster, kindred: Kindred, scheduler: Scheduler, pods: Sequence[Manifest], run: Mapping[str, str]
) -> dict[str, str]:
    """Place pods one by one, each over the placements of another run, and return the nodes chosen."""
    chosen = {}
    for manifest in pods:
        name = manifest["metadata"]["name"]
        chosen[name] = cluster.place(manifest)
        if chosen[name] != run[name]:
            move(cluster, scheduler, manifest, run[name])
        uid = cluster.api.get(f"{PODS}/{name}")["metadata"]["uid"]
        wait_until(lambda uid=uid: kindred.has_on_a_node(uid), PATIENCE, f"{name} on its node", every=0.02)  # type: ignore[misc]
    return chosen


def compare(there: PodScores, here: PodScores, by: Registration) -> list[int]:
    """Hold the scores of a pod with Kindred against those in-tree, and return InterPodAffinity's, 0..100."""
    affinity = there.plugins.get(INTER_POD_AFFINITY, dict.fromkeys(there.totals, 0))
    scores = {node_name: weighted // 2 for node_name, weighted in affinity.items()}
    assert INTER_POD_AFFINITY not in here.plugins
    assert {name: by.factor * total for name, total in there.others().items()} == here.others()
    assert {name: by.response(score) for name, score in scores.items()} == here.extender
    assert {name: other + STEP * here.extender[name] for name, other in here.others().items()} == here.totals
    return list(scores.values())


@pytest.mark.parametrize(
    "registration", [pytest.param(AS_SHIPPED, id="as-shipped"), pytest.param(WITHOUT_STEPS, id="without-steps")]
)
def test_kindred_scores_as_in_tree_and_the_same_nodes_are_chosen(
    cluster: Cluster, registration: Registration, note: Note
) -> None:
    random = Random(6)  # noqa: S311  # the same pods in each run
    pods = [manifest for number in range(ROUNDS) for manifest in pods_of_a_round(number, random)]
    in_tree = cluster.start_scheduler(in_tree_config(), verbosity=VERBOSITY)
    first = {manifest["metadata"]["name"]: cluster.place(manifest) for manifest in pods}
    in_tree.end()
    cluster.api.delete_all(PODS)

    kindred = cluster.start_kindred(registration.settings())
    offload = cluster.start_scheduler(registration.config(kindred.url), verbosity=VERBOSITY)
    second = follow(cluster, kindred, offload, pods, first)

    there, here = scores_of(in_tree.log()), scores_of(offload.log())
    seen: set[int] = set()
    ties = rounded = blurred = varied = 0
    for name, node_name in second.items():
        in_tree_scores, offload_scores = there[f"{NAMESPACE}/{name}"], here[f"{NAMESPACE}/{name}"]
        scores = compare(in_tree_scores, offload_scores, registration)
        best, totals = in_tree_scores.best(), in_tree_scores.totals
        assert first[name] in best
        assert node_name in offload_scores.best()
        behind = totals[first[name]] - totals[node_name]
        assert registration.factor * behind <= registration.most_lost()
        ties += behind == 0 and node_name != first[name]
        rounded += behind > 0
        blurred += offload_scores.best() != best
        varied += len(set(scores)) > 1
        seen.update(scores)
    note(
        f"of {len(pods)} pods {ties} went to another of several best nodes, {rounded} to one that rounding made as good"
        f" ({blurred} had other best nodes by rounding); {varied} with scores that differ, {len(seen)} scores in all"
    )
    assert blurred == 0 or registration.most_lost()
    # Or nothing was compared.
    assert varied > len(pods) // 2
    assert len(seen) > 20
    assert any(2 * score % STEP for score in seen)
