"""The cache: (node, predicate, class) -> (fit, reasons), and (node, priority, class) -> raw score.

Source: the equivalence class design. The mirror sends every change to the cache before the next request. The cache
drops the cells that the plugins' rules name.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias

import msgspec

from core.equivalence.cached_evaluation import CachedEvaluation
from core.equivalence.classes import CellLookup, ClassEntry, Classifier, ClassKey, Mode, equivalence_hash
from core.equivalence.ranker import Ranker
from core.equivalence.rows import Miss
from core.equivalence.shadow_check import Difference, ShadowedEvaluation
from core.equivalence.validity import NEVER, Validities
from core.framework.evaluation import Evaluation, FreshEvaluation
from core.framework.interface import AnyFilter, AnyScore, Plugin
from core.mirror.changes import EVERY_CHANGE, Change, RulesChange
from core.mirror.cluster import ClusterMirror
from core.mirror.work import WorkLimitError
from core.objects.pod import Pod

RESULTS: Final = ("hit", "partial", "miss", "none")
"""How a request was served: all, some or no cells were cached, or the pod has no class."""
_REMEMBERED_EVICTIONS: Final = 16384


class CacheOptions(msgspec.Struct, frozen=True):
    """Which pods have a class (see Classifier), and the limits of the cache."""

    mode: Mode = "spec"
    max_bytes: int = 128 * 1024 * 1024
    """Approximate size limit of all classes together."""
    shadow_share: float = 0.0
    """Share of the requests, 0..1, whose results are computed again."""


DEFAULT_OPTIONS: Final = CacheOptions()


class Mismatch(msgspec.Struct, frozen=True, kw_only=True):
    """Wrong cells, with the data that reproduce the error together with a dump of the mirror."""

    equivalence_hash: str
    differences: Sequence[Difference]
    pod: Pod
    first_pod: str
    """NAMESPACE/NAME of the pod for which the class was made."""
    generation: int
    """The mirror's generation."""
    invalidated: dict[str, int]
    """Plugin -> number of changes since an event last invalidated one of its cells."""


OnMismatch: TypeAlias = Callable[[Mismatch], None]
Clock: TypeAlias = Callable[[], float]


class Statistics(msgspec.Struct):
    """Totals since the start. A cell is the result of one plugin for one node."""

    hits: int = 0
    """Cells returned from the cache."""
    misses: Counter[str] = msgspec.field(default_factory=Counter)
    """Cells evaluated, by the name of the Miss."""
    questions: Counter[str] = msgspec.field(default_factory=Counter)
    """Requests by result, see RESULTS."""
    evictions: int = 0
    """Classes evicted to stay within the size limit."""
    checks: int = 0
    """Cells that the shadow check computed again."""
    mismatches: int = 0
    """Checked cells that were wrong. Must be 0."""


class EquivalenceCache:
    """The results of all plugins of a profile for the most recently requested classes of pods.

    The size is bounded in bytes. The least recently requested class is evicted first.
    """

    hears: Final = EVERY_CHANGE

    def __init__(
        self,
        mirror: ClusterMirror,
        plugins: Sequence[Plugin],
        options: CacheOptions = DEFAULT_OPTIONS,
        on_mismatch: OnMismatch = lambda _: None,
        clock: Clock = lambda: 0.0,
    ) -> None:
        """Listen to the mirror from the first class on, so that the first list of pods costs nothing here.

        Raises ClassFieldError for a plugin that declares a field that pods do not have.

        `clock` gives the time of a class's last request, for reports only.
        """
        self.statistics = Statistics()
        self.validities = Validities(plugins, mirror.nodes.extent)
        self.nbytes = 0
        self.max_bytes: Final = options.max_bytes
        self._mirror = mirror
        self._classifier = Classifier(plugins, options.mode)
        self._entries: OrderedDict[ClassKey, ClassEntry] = OrderedDict()
        self._of_objects: dict[tuple[int, ...], ClassEntry] = {}
        """The ids of the parts of a class's last pod -> the class, which keeps these parts."""
        self._evicted: OrderedDict[int, None] = OrderedDict()  # hashes of the classes that were evicted last
        self._shadow_share = options.shadow_share
        self._due = 0.0  # sum of the shares since the last checked request: these are at even distances
        self._ranker: Ranker | None = None
        self._on_mismatch = on_mismatch
        self._clock = clock
        self._listens = False

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[ClassEntry]:
        """Yield the classes, least recently requested first."""
        yield from self._entries.values()

    def changed(self, change: Change) -> None:
        """Handle a change that the mirror has made."""
        if isinstance(change, RulesChange):
            self.clear()  # the cached results are for other rules
        else:
            self.validities.changed(change, self._mirror.nodes.extent)

    def evaluation(self, pod: Pod) -> Evaluation:
        """Return the evaluation for a pod. It uses the cache if the pod has a class."""
        pod = self._mirror.counted(pod)
        entry = self._entry(pod)
        if entry is None:
            return FreshEvaluation(self._mirror, pod)
        cached = CachedEvaluation(self._mirror, pod, entry, self.validities, self)
        self._due += self._shadow_share
        if self._due < 1.0:
            return cached
        self._due -= 1.0
        return ShadowedEvaluation(
            cached,
            FreshEvaluation(self._mirror, pod),
            lambda cells, differences: self._checked(entry, pod, cells, differences),
            self._mirror.work,
        )

    def class_of(self, pod: Pod) -> tuple[str, ClassEntry | None]:
        """Return the hash of a pod's class and its entry, without counting a request. An empty hash means no class."""
        key = self._classifier.key(self._mirror, self._mirror.counted(pod))
        if key is None:
            return "", None
        entry = self._entries.get(key)
        return f"{equivalence_hash(key):016x}" if entry is None else entry.hash_text, entry

    def find(self, class_hash: int) -> ClassEntry | None:
        """Return the class with a hash. If two classes share it, return the least recently requested.

        Loops over all classes.
        """
        return next((entry for entry in self if entry.hash == class_hash), None)

    def lookup(self, entry: ClassEntry, node: str) -> CellLookup | None:
        """Return the cells of a class on a node, or None if the mirror does not have the node."""
        if node not in self._mirror.nodes.slots:
            return None
        return CellLookup(self._mirror, self.validities, entry, node)

    def finish(self, evaluation: Evaluation) -> str:
        """Count a completed request, and return the source of its results (Evaluation.source)."""
        source = evaluation.source
        self.statistics.questions[source.partition(" ")[0]] += 1
        return source

    def clear(self) -> None:
        """Drop all classes."""
        for entry in self._entries.values():
            entry.in_cache = False
        self._entries.clear()
        self._of_objects.clear()
        self.nbytes = 0

    # Reports of evaluations.

    def update_size(self, entry: ClassEntry) -> None:
        """Update the size of a class. Evict classes over the limit, if need be this class."""
        if not entry.in_cache:
            return
        before, entry.nbytes = entry.nbytes, entry.update_size()
        self.nbytes += entry.nbytes - before
        while self.nbytes > self.max_bytes:
            self._evict()

    def ranker(self, filters: Sequence[AnyFilter], scores: Sequence[tuple[AnyScore, int]]) -> Ranker:
        """Return the maker of rankings. The plugins are the same at every call."""
        if self._ranker is None or not self._ranker.ranks(filters, scores):
            self._ranker = Ranker(filters, scores, self.validities)
        return self._ranker

    def _entry(self, pod: Pod) -> ClassEntry | None:
        """Return the class of a pod, which is made if it is new. None: the pod has no class.

        The pods of a controller mostly have their parts in common, as the same objects. Then none is hashed, and what
        they refer to is looked up again only after a change of anything but a pod. Each takes 3 us. Parts that are much
        larger than the key are not kept.
        """
        parts, others_at = self._classifier.parts(pod), self.validities.others_at
        objects = tuple(map(id, parts))
        entry = self._of_objects.get(objects)
        if entry is None or entry.bound_at != others_at:
            bound = self._classifier.bound(self._mirror, pod)
            if entry is None or entry.key.bound != bound:
                key = self._classifier.key_of(pod, bound)
                if key is None:
                    return None
                entry = self._entries.get(key) or self._added(key, pod)
                if entry.in_cache and entry.has_room_for(pod.demand):
                    self._of_objects.pop(entry.objects, None)
                    entry.parts, entry.objects = parts, objects
                    self._of_objects[objects] = entry
            entry.bound_at = others_at if self._classifier.binds_alike(bound) else NEVER
        if entry.in_cache:
            self._entries.move_to_end(entry.key)
        entry.questions += 1
        entry.requested_at = self._clock()
        return entry

    def _added(self, key: ClassKey, pod: Pod) -> ClassEntry:
        if not self._listens:
            self._listens = True
            self.validities.grow(self._mirror.nodes.extent)
            self._mirror.listen(self)
        entry = ClassEntry(key, pod, self._classifier.representative(self._mirror, pod), self._clock())
        if entry.hash in self._evicted:
            del self._evicted[entry.hash]
            entry.miss = Miss.EVICTED
        self._entries[key] = entry
        self.update_size(entry)
        return entry

    def _evict(self) -> None:
        _, entry = self._entries.popitem(last=False)
        entry.in_cache = False
        self._of_objects.pop(entry.objects, None)
        self.nbytes -= entry.nbytes
        self.statistics.evictions += 1
        self._evicted[entry.hash] = None
        if len(self._evicted) > _REMEMBERED_EVICTIONS:
            self._evicted.popitem(last=False)

    def _checked(self, entry: ClassEntry, pod: Pod, cells: int, differences: Sequence[Difference]) -> None:
        self.statistics.checks += cells
        if not differences:
            return
        self.statistics.mismatches += len(differences)
        now = self.validities.now
        self._on_mismatch(
            Mismatch(
                equivalence_hash=entry.hash_text,
                differences=differences,
                pod=pod,
                first_pod=entry.first_pod,
                generation=self._mirror.generation,
                invalidated={name: now - validity.last_at for name, validity in self.validities.of.items()},
            )
        )
        self.clear()  # if one cell is wrong, none can be trusted


@contextmanager
def set_apart(mirror: ClusterMirror, pod: Pod) -> Iterator[bool]:
    """Suppose in a `with` block that a pod is on no node, because it must not count for its own decision.

    Yields whether it was on a known node. If so, no kept result may be read or written in the block.
    """
    stored = mirror.get_pod(pod.uid)
    if stored is None or stored.node_name not in mirror.nodes.slots:
        yield False
        return
    with mirror.fork() as fork:
        fork.remove(stored)
        yield True


MAX_HEAVY_CLASSES: Final = 256
"""How many rejected classes are kept. One holds the fields of its pod: up to 10 times the bytes of the JSON."""


class Evaluations:
    """Begins and ends the evaluations of one verb.

    It keeps the classes whose evaluation took too much work, so that a repeated request costs no evaluation:
    kube-scheduler repeats the request for a rejected pod after every event of the cluster.
    """

    def __init__(self, plugins: Sequence[Plugin], mirror: ClusterMirror, cache: EquivalenceCache | None) -> None:
        """Evaluate by plugins. Without a cache every evaluation is fresh."""
        self.mirror: Final = mirror
        self._cache = cache
        # Pods without a controller are recorded, too: their requests may be as heavy and as frequent.
        self._classifier = Classifier(plugins, "spec")
        self._heavy: OrderedDict[ClassKey | None, tuple[WorkLimitError, int, int]] = OrderedDict()
        """Class -> its error, and the nodes and pods of the mirror then. The least recently used class is first."""

    def begin(self, pod: Pod, *, cached: bool) -> Evaluation:
        """Return the evaluation of a pod. With `cached` false, no kept result is read or written.

        Raises WorkLimitError for a pod of a class that recently took too much work, unless `cached` is false.
        """
        if cached and self._heavy:  # usually empty: an ordinary pod costs nothing here
            self._check(pod)
        if self._cache is None or not cached:
            return FreshEvaluation(self.mirror, pod)
        return self._cache.evaluation(pod)

    def finish(self, evaluation: Evaluation, *, cached: bool) -> str:
        """End an evaluation. Return the source of its results, see VerbResponse.source."""
        if self._cache is None:
            return ""
        return self._cache.finish(evaluation) if cached else "off"

    def rejected(self, pod: Pod, error: WorkLimitError, *, cached: bool) -> None:
        """Record that the evaluation of a pod took too much work, unless `cached` is false."""
        if not cached:
            return
        nodes, pods = len(self.mirror.nodes.slots), len(self.mirror.pods)
        self._heavy[self._key(pod)] = error.with_traceback(None), nodes, pods
        if len(self._heavy) > MAX_HEAVY_CLASSES:
            self._heavy.popitem(last=False)

    def _check(self, pod: Pod) -> None:
        """Raise WorkLimitError for a pod of a rejected class.

        The work grows with the numbers of nodes and pods in the mirror. A rejection applies until either decreases.
        """
        key = self._key(pod)
        rejected = self._heavy.get(key)
        if rejected is None:
            return
        error, nodes, pods = rejected
        if len(self.mirror.nodes.slots) < nodes or len(self.mirror.pods) < pods:
            del self._heavy[key]
            return
        self._heavy.move_to_end(key)
        raise error

    def _key(self, pod: Pod) -> ClassKey | None:
        return self._classifier.key(self.mirror, pod)
