"""Preemption: the record that `filter` keeps for it, and the evictor, if Kindred itself evicts.

`filter` and the evictor need each other. So both get the queue of pods, and the preemptions in progress.
"""

import random
import time
from typing import NamedTuple

from app.eviction.evaluator import Evaluator
from app.eviction.eviction_api import EvictionApi
from app.eviction.evictor import Evictor, UnschedulablePods
from app.eviction.executor import Executor, Preemptions
from app.server.process import Background
from app.settings.settings import Settings
from app.telemetry.metrics import Metrics
from app.verbs.effects import Nominations, RefusedNodes
from app.watch.freshness import SyncStatus
from app.wiring.cluster import Cluster
from core.mirror.cluster import ClusterMirror
from core.profile import Profile


class Preemption(NamedTuple):
    """The record that `filter` keeps for preemption, and the background work that reads it."""

    refused_nodes: RefusedNodes | None
    """None without preemption."""
    nominations: Nominations
    background: tuple[Background, ...] = ()


def create_preemption(
    settings: Settings, mirror: ClusterMirror, profile: Profile, cluster: Cluster, metrics: Metrics
) -> Preemption:
    """Return the parts that the settings define."""
    clock = time.monotonic
    if settings.preempt == "off":
        return Preemption(None, Nominations(mirror, clock))
    if settings.preempt == "verb" or cluster.client is None:
        return Preemption(RefusedNodes(mirror, clock), Nominations(mirror, clock))
    observe = metrics.requests.observe_preemption
    pods = UnschedulablePods(mirror, clock, observe)
    preemptions = Preemptions(mirror, clock)
    refused_nodes = RefusedNodes(mirror, clock, pods.add)

    def may_evict() -> bool:
        return cluster.freshness.status() is SyncStatus.FRESH and cluster.state.may_decide()

    evictor = Evictor(
        pods,
        preemptions,
        Evaluator(profile, mirror, random.randrange),
        refused_nodes,
        Executor(EvictionApi(cluster.client), preemptions, mirror.pending, may_evict),
        clock=clock,
        observe=observe,
    )
    return Preemption(refused_nodes, Nominations(mirror, clock, preemptions.includes), (evictor.run,))
