"""Steady churn of the bench cluster's pods: rollouts and status updates, at a fixed rate of events.

It is deterministic for a seed, except for the batches of the events.
"""

import asyncio
import random
from collections import deque
from typing import Final

from tests.bench import cluster
from tests.fake_apiserver.pod_bytes import PodFacts, Stage, base_pod
from tests.fake_apiserver.resources import PODS
from tests.fake_apiserver.store import Store

TICK: Final = 0.005  # seconds between two batches
_ROLLING: Final = 500  # pods at a time in addition to the bench cluster's
_STAGES: Final[tuple[Stage, ...]] = ("pending", "bound", "running", "ready")
_OF_BASE_PODS: Final = 0.25  # share of events of the bench cluster's pods


class Churn:
    """Changes pods of a bench store. `nodes` and `pods` are the store's numbers."""

    def __init__(self, store: Store, nodes: int, pods: int, seed: int = 1) -> None:
        self._store = store
        self._nodes = nodes
        self._pods = pods
        self._random = random.Random(seed)  # noqa: S311 - no secret
        self._starting: deque[tuple[PodFacts, int]] = deque()  # pod, its stage
        self._alive: deque[PodFacts] = deque()  # pods that are ready, the oldest first
        self._made = 0
        self.done = 0  # events so far

    async def run(self, rate: float, seconds: float | None = None) -> None:
        """Make `rate` events a second, for a time or until cancelled. Late events are caught up."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        made, passed = 0, 0.0
        while seconds is None or passed < seconds:
            await asyncio.sleep(TICK)
            passed = loop.time() - began
            due = int(rate * (passed if seconds is None else min(passed, seconds)))
            for _ in range(due - made):
                self.step()
            made = due

    def step(self) -> None:
        """Make one event."""
        self.done += 1
        if self._random.random() < _OF_BASE_PODS:
            self._change_base_pod()
        elif len(self._alive) >= _ROLLING:
            self._delete_oldest()
        elif self._starting and self._random.random() < (len(_STAGES) - 1) / len(_STAGES):
            self._advance()
        else:
            self._create()

    def _change_base_pod(self) -> None:
        """Change the readiness of a pod, as a kubelet does, and a label."""
        index = self._random.randrange(self._pods)
        facts, _ = base_pod(index, self._pods, self._nodes)
        stage: Stage = "ready" if self._random.random() < 0.9 else "running"
        self._put(facts, stage, self._random.randrange(3))

    def _create(self) -> None:
        self._made += 1
        number = self._pods + self._made
        apps = cluster.app_count(self._pods)
        app = self._random.randrange(apps)
        # A random node, so that pods are spread. A real scheduler would choose.
        node = cluster.node_name(self._random.randrange(self._nodes))
        namespace = f"ns-{app % cluster.NAMESPACES:03d}"
        facts = PodFacts(number, (app, apps), f"churn-{self._made:06d}", namespace, node)
        self._starting.append((facts, 0))
        self._put(facts, _STAGES[0], 0)

    def _advance(self) -> None:
        """Move a pod to its next stage: bound, running, ready."""
        facts, reached = self._starting.popleft()
        stage = reached + 1
        self._put(facts, _STAGES[stage], 0)
        if stage + 1 == len(_STAGES):
            self._alive.append(facts)
        else:
            self._starting.append((facts, stage))

    def _delete_oldest(self) -> None:
        facts = self._alive.popleft()
        self._store.remove(PODS.path, self._store.collections[PODS.path].objects[f"{facts.namespace}/{facts.name}"])

    def _put(self, facts: PodFacts, stage: Stage, label: int) -> None:
        before = self._store.collections[PODS.path].objects.get(f"{facts.namespace}/{facts.name}")
        self._store.put(PODS.path, before, facts.stored(self._store.version + 1, stage, label))
