"""Evaluates requests of people: a decision with its parts, with the present mirror or with suppositions."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Final, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from app.explain.explain_request import NOTHING, ContradictionError, ExplainRequest, TooMuchWorkError, UnknownError
from app.explain.known_pods import KnownPods, the_one
from app.explain.pod_names import pod_query
from app.explain.scheduler_profiles import SchedulerProfiles
from app.explain.stored_pod import Completion
from app.feeds.freshness import Freshness
from app.feeds.release import ReleaseStatus, ReleaseTracker
from app.verbs.effects import Effects
from app.verbs.filter import NOBODY, Bypass
from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.explained_profile import NOTHING as NO_RULES
from core.diagnosis.explained_profile import ExplainProfile, every_rule
from core.diagnosis.node_detail import NodeDetail, node_detail
from core.diagnosis.summary import Summary, summary
from core.diagnosis.wakes import AwaitedVictim, awaited_victims
from core.equivalence.cache import EquivalenceCache
from core.equivalence.classes import ClassEntry, PredicateCell, ScoreCell
from core.events import NOT_MISSING, Object
from core.explaining.claim_steps import free_claims
from core.explaining.pod_names import PodName, PodText, Sees, every_namespace, name_of
from core.gangs.scheduling_groups import scheduling_group_status
from core.gangs.unit import UnitStatus
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork, ForkError
from core.mirror.node_info import NodeBatch
from core.mirror.work import WorkLimitError
from core.objects.devices import ResourceSlice
from core.objects.groups import SchedulingGroup
from core.objects.node import Node
from core.objects.pod import Pod
from core.simulation.one_pod import place_on

Seen = TypeVar("Seen")
_EVERY_IN_TREE_RULE: Final = every_rule(NO_RULES)


class Detail(msgspec.Struct, frozen=True):
    """Optional parts beside the summary."""

    nodes: Sequence[str] = ()
    """Nodes to show in detail."""
    limit: int = 5
    """Limit of every list: domains, pods, nodes."""
    score_all: bool = False
    """Whether nodes that do not fit are scored, too."""


class NodeCells(msgspec.Struct, frozen=True):
    """The cells of the equivalence cache for a node and the pod's class, plugin by plugin."""

    predicates: Sequence[PredicateCell]
    scores: Sequence[ScoreCell]


class ExplainedNode(msgspec.Struct, frozen=True):
    """One node: the decision, and its cached cells."""

    decision: NodeDetail
    cells: NodeCells | None
    """None if the cache has no class of the pod, or if the request has suppositions."""


class ClassUse(msgspec.Struct, frozen=True):
    """The pod's equivalence class."""

    hash: str
    kept: bool
    """Whether the cache has results of the class."""
    first_pod: str = ""
    questions: int = 0
    hits: int = 0
    misses: int = 0


class MirrorState(msgspec.Struct, frozen=True):
    """The freshness of the mirror."""

    generation: int
    nodes: int
    pods: int
    standing: str
    """fresh, stale, or not synced"""
    problems: Sequence[str]


class SupposedState(msgspec.Struct, frozen=True):
    """The suppositions."""

    added_nodes: Sequence[str]
    added_slices: Sequence[str]
    """ResourceSlices with devices of the added nodes, or of others."""
    removed: Sequence[str]
    """NAMESPACE/NAME of pods, and of the explained pod itself if it is on a node already."""
    assumed: Sequence[str]
    """NAMESPACE/NAME on NODE"""


class Explanation(msgspec.Struct, frozen=True):
    """The response."""

    summary: Summary
    nodes: Sequence[ExplainedNode]
    equivalence: ClassUse | None
    """None if the cache is off, or the pod has no class."""
    mirror: MirrorState
    kubernetes: ReleaseStatus
    supposed: SupposedState
    unit: UnitStatus | None = None
    """The group that the pod is placed with. None if there is none."""
    waits_for: Sequence[AwaitedVictim] = ()
    manifest: Completion | None = None
    """What the pod of a manifest lacked. None for any other pod."""
    names_hidden: str = ""
    """Why the caller sees `(a pod of another namespace)` instead of some names. Empty if all names are shown."""


class RequestNamespaces(NamedTuple):
    """The namespaces of the pods in a request."""

    named: set[str]
    """Namespaces that the request names itself: with a pod's name and in manifests."""
    of_others: list[str]
    """Namespaces of the pods that the request names without a namespace, in the order of the request."""


class _Found(msgspec.Struct, frozen=True):
    """A request with its names resolved."""

    pod: Pod
    gone: Sequence[Pod]
    placed: Sequence[tuple[Pod, str]]
    replaced: Sequence[Pod] = ()
    made: Sequence[Object] = ()


class Explainer:
    """Explains the decision for a pod by all rules and by the serving profile. It changes no state."""

    def __init__(  # noqa: PLR0913  # the sources of an explanation
        self,
        explained: ExplainProfile,
        known: KnownPods,
        cache: EquivalenceCache | None,
        freshness: Freshness,
        *,
        release: ReleaseTracker,
        schedulers: SchedulerProfiles | None = None,
        effects: Effects | None = None,
        bypass: Bypass = NOBODY,
        untouched: ExplainProfile = _EVERY_IN_TREE_RULE,
    ) -> None:
        """Explain the pods of a mirror, in the turns of `known`. Kindred passes those that `bypass` covers untouched.

        `schedulers` are the profiles of the scheduler's configuration. None: the configuration is unknown, and all pods
        are explained by `explained`, and those that pass by `untouched`. `effects` show which group Kindred places a
        pod with, and which victims the pod waits for. None: there is no service.
        """
        self.explained: Final = explained
        self.mirror: Final = known.mirror
        self._cache = cache
        self._known = known
        self._freshness = freshness
        self._release = release
        self._schedulers = schedulers
        self._effects = effects
        self._bypass = bypass
        self._untouched = untouched

    def explained_of(self, pod: Pod) -> ExplainProfile:
        """Return the plugins that explain a pod."""
        explained = self.explained if self._schedulers is None else self._schedulers.of(pod)
        if explained.configured is None and self._bypass.covers(pod):
            explained = replace(self._untouched, scheduler=explained.scheduler)
        return explained.of_pod(self.mirror, pod)

    def unit_of(self, pod: Pod) -> UnitStatus | None:
        """Return the status of the group that a pod is placed with. None if there is none."""
        if pod.in_scheduling_group:
            unread = self._freshness.missing_for_explanations().get(SchedulingGroup, NOT_MISSING).why
            return scheduling_group_status(self.mirror, pod.scheduling_group, unread)
        if self._effects is None or self._effects.gangs is None:
            return None
        return self._effects.gangs.unit_status(pod.group_key, self._effects.clock())

    def victims_of(self, pod: Pod) -> Sequence[AwaitedVictim]:
        """Return the victims of preemption that a pod waits for."""
        return awaited_victims(self.mirror, pod, self._effects.clock()) if self._effects is not None else ()

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Hold the turn for `explain` and `look`. A scheduler's request waits for at most one explanation."""
        return self._known.work.exclusive()

    async def namespaces_of(self, request: ExplainRequest) -> RequestNamespaces:
        """Return the namespaces that a caller must be allowed to see for the pods in a request."""
        what_if = request.what_if
        pods = [request.pod, *what_if.remove, *(each.pod for each in what_if.assume)]
        texts = [pod for pod in pods if isinstance(pod, str)]
        found = await self._known.find(texts, every_namespace)
        named = {pod_query(text).namespace for text in texts} | {pod.namespace for pod in pods if isinstance(pod, Pod)}
        return RequestNamespaces(named - {""}, [pod.namespace for text in texts for pod in found[text]])

    async def explain(self, request: ExplainRequest, detail: Detail, sees: Sees | None = None) -> Explanation:
        """Evaluate a request. No event may have been applied since it was decoded. Raises ExplainError.

        Pods of namespaces that `sees` rejects are unknown. None: the caller sees all pods.
        """
        found = await self._found(request, sees)
        # No await from here on: a decision needs one state of the mirror.
        victims = self.victims_of(found.pod)  # by the mirror without suppositions
        with self.mirror.fork() as fork, _work_is_limited():
            self._change(fork, request, found)
            return replace(self._explained(request, found, detail), waits_for=victims)

    async def look(
        self,
        request: ExplainRequest,
        at: Callable[[Diagnosis], Seen],
        *,
        score_all: bool = False,
        sees: Sees | None = None,
    ) -> Seen:
        """Return `at` of the decision. It is stale after the next event. `sees`: as in `explain`.

        Raises ExplainError.
        """
        found = await self._found(request, sees)
        with self.mirror.fork() as fork, _work_is_limited():
            self._change(fork, request, found)
            return at(self._diagnosis(found.pod, self._batch(request), score_all=score_all))

    def _change(self, fork: Fork, request: ExplainRequest, found: _Found) -> None:
        _add_nodes(self.mirror, fork, request.what_if.add_nodes)
        for place, pod in enumerate(found.gone):
            with _named(f"remove[{place}]" if place < len(request.what_if.remove) else "pod"):
                fork.remove(pod)
            if place < len(request.what_if.remove):
                free_claims(self.mirror, fork, pod)
        for pod in found.replaced:
            fork.remove(pod)
            free_claims(self.mirror, fork, pod)
        for each in found.made:
            fork.add_object(each)
        for place, (pod, node_name) in enumerate(found.placed):
            with _named(f"assume[{place}]"):
                place_on(self.mirror, fork, self.explained_of(pod).profile, pod, node_name)

    def look_at(self, pod: Pod, at: Callable[[Diagnosis], Seen]) -> Seen:
        """Return `at` of the decision for a pending pod and all nodes. Raises ExplainError."""
        with _work_is_limited():
            return at(self._diagnosis(pod, self.mirror.batch([*self.mirror.nodes.slots]), score_all=False))

    async def _found(self, request: ExplainRequest, sees: Sees | None) -> _Found:
        what_if, known = request.what_if, self._known
        texts = {*what_if.remove, *(each.pod for each in what_if.assume if isinstance(each.pod, str))}
        if isinstance(request.pod, str):
            texts.add(request.pod)
        pods = await known.find(texts, sees)
        if request.batch is None:  # a batch is invalid after the next event
            await self._known.work.wait_until_idle()

        def one(pod: Pod | str, field: str) -> Pod:
            if isinstance(pod, str):
                return the_one(pods, pod, field, is_limited=sees is not None)
            return pod if sees is None else known.without_foreign_uid(pod)

        pod = one(request.pod, "pod")
        gone = [one(text, f"remove[{place}]") for place, text in enumerate(what_if.remove)]
        if request.batch is None and self._is_placed(pod):  # ExtenderArgs are explained unchanged
            if pod.uid not in {each.uid for each in gone}:
                gone.append(pod)  # else the pod would conflict with itself
            pod = replace(pod, node_name="")  # else NodeName would reject all other nodes
        placed = [(one(each.pod, f"assume[{place}].pod"), each.node) for place, each in enumerate(what_if.assume)]
        manifest, uids = request.manifest, {each.uid for each in gone}
        if manifest is None:
            return _Found(pod, gone, placed)
        # Events may have been applied since it was decoded.
        replaced = [each for each in manifest.replaced if each.uid not in uids and self._is_placed(each)]
        made = [each for each in manifest.made if each.full_name not in self.mirror.objects(type(each))]
        return _Found(pod, gone, placed, replaced, made)

    def _is_placed(self, pod: Pod) -> bool:
        stored = self.mirror.get_pod(pod.uid)
        return stored is not None and stored.node_name in self.mirror.nodes.slots

    def _explained(self, request: ExplainRequest, found: _Found, detail: Detail) -> Explanation:
        batch = self._batch(request)
        places = {name: batch.position(name) for name in detail.nodes}
        for name, place in places.items():
            if place < 0:
                raise UnknownError("node", f"node {name}: not among the nodes of the request")
        decision = self._diagnosis(found.pod, batch, score_all=detail.score_all)
        what_if = SupposedState(
            [each.name for each in request.what_if.add_nodes if isinstance(each, Node)],
            [each.name for each in request.what_if.add_nodes if isinstance(each, ResourceSlice)],
            [name_of(pod) for pod in found.gone],
            [PodText(name_of(pod), f" on {node}") for pod, node in found.placed],
        )
        equivalence, entry = self._class_use(found.pod)
        if request.what_if != NOTHING or what_if.removed or found.replaced or found.made:
            entry = None  # cached cells belong to the mirror without suppositions
        placed_on = next((each.node_name for each in found.gone if each.uid == found.pod.uid), "")
        result = summary(decision, detail.limit, placed_on)
        manifest = request.manifest
        return Explanation(
            summary=result,
            nodes=[
                ExplainedNode(node_detail(decision, places[name], detail.limit), self._cells(entry, name))
                for name in detail.nodes
            ],
            equivalence=equivalence,
            mirror=self.mirror_state(),
            kubernetes=self._release.status,
            supposed=what_if,
            unit=self.unit_of(found.pod),
            manifest=manifest.completion(fits=result.fit > 0) if manifest is not None else None,
        )

    def _diagnosis(self, pod: Pod, batch: NodeBatch, *, score_all: bool) -> Diagnosis:
        missing = self._freshness.missing_for_explanations()
        return Diagnosis(self.explained_of(pod), self.mirror, pod, batch, score_all=score_all, missing=missing)

    def _batch(self, request: ExplainRequest) -> NodeBatch:
        if request.batch is not None:
            return request.batch
        return self.mirror.batch(request.names if request.names is not None else [*self.mirror.nodes.slots])

    def _class_use(self, pod: Pod) -> tuple[ClassUse | None, ClassEntry | None]:
        hash_text, entry = self._cache.class_of(pod) if self._cache is not None else ("", None)
        if not hash_text:
            return None, None
        if entry is None:
            return ClassUse(hash_text, kept=False), None
        use = ClassUse(
            hash_text,
            kept=True,
            first_pod=PodName(entry.first_pod),
            questions=entry.questions,
            hits=entry.hits,
            misses=entry.misses,
        )
        return use, entry

    def _cells(self, entry: ClassEntry | None, node: str) -> NodeCells | None:
        lookup = self._cache.lookup(entry, node) if self._cache is not None and entry is not None else None
        if lookup is None:
            return None
        profile = self.explained.served.under(self.mirror.rules)
        return NodeCells(
            [lookup.predicate(plugin) for plugin in profile.filters],
            [lookup.score(plugin) for plugin, _ in profile.scores],
        )

    def mirror_state(self) -> MirrorState:
        """Return the present freshness of the mirror."""
        return MirrorState(
            generation=self.mirror.generation,
            nodes=len(self.mirror.nodes.slots),
            pods=self.mirror.pod_count(),
            standing=self._freshness.status().value,
            problems=self._freshness.problems(),
        )


def _add_nodes(mirror: ClusterMirror, fork: Fork, added: Sequence[Node | ResourceSlice]) -> None:
    """Suppose more nodes, and then their devices."""
    for place, each in enumerate(added):
        if isinstance(each, Node):
            with _named(f"add_nodes[{place}]"):
                fork.add_node(each)
    for place, each in enumerate(added):
        if isinstance(each, ResourceSlice):
            node = each.nodes.node_name
            if node and node not in mirror.nodes.slots:
                raise UnknownError(f"add_nodes[{place}].spec.nodeName", f"node {node}: neither known nor added")
            with _named(f"add_nodes[{place}]"):
                fork.add_object(each)


@contextmanager
def _work_is_limited() -> Iterator[None]:
    try:
        yield
    except WorkLimitError as error:
        raise TooMuchWorkError(error.field, error.reason) from None


@contextmanager
def _named(field: str) -> Iterator[None]:
    try:
        yield
    except ForkError as error:
        raise ContradictionError(field, str(error)) from None
