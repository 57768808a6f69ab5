"""A verb that decides over a small mirror, and an API server that has some pods."""

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from app.objects.decode_pod import decode_pod
from app.verbs.decide import Decider, InTreeNeeds
from app.verbs.effects import Effects, Nominations
from app.verbs.filter import Extender
from app.verbs.pods import BindingArgs, PodApi, PodLookup
from app.verbs.request import Request, VerbResponse
from app.verbs.scopes import DecideScope, DecideScopes
from core.equivalence.cache import CacheOptions, EquivalenceCache, Evaluations
from core.events import Action, ClusterEvent
from core.gangs.gangs import Gangs
from core.gangs.placing import Placer
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import IntpArray
from core.objects.pod import Pod
from core.profile import Profile, full_profile
from tests.builders import PodBuilder


class FakePods(PodApi):
    """The pods that an API server has, whether the watch has shown them or not."""

    def __init__(self) -> None:
        self.live: dict[str, Pod] = {}  # NAMESPACE/NAME -> pod
        self.error: Exception | None = None
        self.requested = 0

    async def get(self, args: BindingArgs, *, limited: bool = True) -> Pod | None:
        assert limited
        self.requested += 1
        if self.error is not None:
            raise self.error
        return self.live.get(args.full_name)


class DecidingSetting:
    """A decider with what it sees and changes."""

    def __init__(  # noqa: PLR0913  # what a decision depends on
        self,
        mirror: ClusterMirror,
        scope: DecideScope = DecideScope.LISTED_NODES,
        profile: Profile | None = None,
        *,
        cached: bool = True,
        claims_scheduler: str = "",
        groups_scheduler: str = "",
        preempt_verb_enabled: bool = True,
        gangs: bool = False,
    ) -> None:
        """Decide for all pods in one scope; among equals the first one is taken, unless `turn` is set."""
        self.mirror = mirror
        self.pods = FakePods()
        self.now = 0.0
        self.turn = 0
        self.rejection = ""
        profile = profile or full_profile()
        cache = EquivalenceCache(mirror, profile.plugins, CacheOptions(mode="spec")) if cached else None
        evaluations, scopes = Evaluations(profile.plugins, mirror, cache), DecideScopes(scope)
        needs = InTreeNeeds(mirror, claims_scheduler, groups_scheduler=groups_scheduler)
        placer = Placer(mirror, profile, partial(evaluations.begin, cached=True), self._choose)
        self.decider = Decider(
            profile,
            evaluations,
            scopes,
            needs=needs,
            choose=self._choose,
            rejection=lambda: self.rejection,
            preempt_verb_enabled=preempt_verb_enabled,
        )
        self.effects = Effects(
            mirror,
            lambda: self.now,
            PodLookup(mirror, self.pods, lambda: self.now),
            nominations=Nominations(mirror, lambda: self.now),
            gangs=Gangs(mirror, placer, self.decider.decides_for) if gangs else None,
            waiting_schedulers=frozenset({claims_scheduler, groups_scheduler} - {""}),
        )
        self.extender = Extender(profile, mirror, cache, decider=self.decider)

    def _choose(self, _: NodeBatch, best: IntpArray) -> int:
        return int(best[self.turn % len(best)])

    def tell_object(self, pod: dict[str, Any]) -> None:
        """Show a pod in the watch, as JSON."""
        self.mirror.apply(ClusterEvent("Update", decode_pod(json.dumps(pod).encode())))

    def tell(self, pod: PodBuilder, action: Action = "Update") -> None:
        """Show a pod in the watch."""
        self.mirror.apply(ClusterEvent(action, decode_pod(json.dumps(written(pod)).encode())))

    def ask(self, pod: PodBuilder, names: Sequence[str], *, dry_run: bool = False) -> VerbResponse:
        """Ask as kube-scheduler does."""
        return self.extender.filter(Request(args(pod, names), cached=not dry_run), None if dry_run else self.effects)

    def ask_again(self, pod: PodBuilder, names: Sequence[str]) -> VerbResponse:
        """Ask about a pod that was decided for, once the API server has shown that it has no node."""
        live = decode_pod(json.dumps(written(pod)).encode())
        self.pods.live[live.full_name] = live
        assert asyncio.run(self.effects.lookup.ask(live)) == ""
        return self.ask(pod, names)

    def decide(self, pod: PodBuilder, names: Sequence[str]) -> str:
        """Ask about a pod that the watch shows; return the node that was answered, or nothing."""
        self.tell(pod)
        return node_of(self.ask(pod, names))

    def counts(self) -> dict[str, int]:
        """Return what came of decisions, without zeros."""
        return {decision.value: count for decision, count in self.effects.decisions.items() if count}

    def assumed(self) -> dict[str, str]:
        """Return uid -> node of the assumed pods."""
        return {uid: each.pod.node_name for uid, each in self.mirror.assumed.items()}


def written(pod: PodBuilder) -> dict[str, Any]:
    """Return a pod as an API server has written it."""
    made: dict[str, Any] = pod.obj()
    made["metadata"]["resourceVersion"] = "7"
    return made


def args(pod: PodBuilder, names: Sequence[str]) -> bytes:
    """Return ExtenderArgs of a pod that an API server has written."""
    return json.dumps({"Pod": written(pod), "Nodes": None, "NodeNames": list(names)}).encode()


def node_of(response: VerbResponse) -> str:
    """Return the one node of an answer, in either form. Empty if there is none."""
    result = json.loads(response.body)
    assert not result["Error"], result
    names = result["NodeNames"]
    if names is None:
        names = [item["metadata"]["name"] for item in result["Nodes"]["items"]]
    assert len(names) <= 1
    return names[0] if names else ""
