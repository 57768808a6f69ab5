"""All metrics of one service, and the text of a scrape. What is known elsewhere is looked up there, at the scrape."""

import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, Info, PlatformCollector, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from app import __version__
from app.connections import Connections
from app.metrics.bind_metrics import BindMetrics
from app.metrics.cache_collector import CacheCollector
from app.metrics.connection_collector import ConnectionCollector, TlsCollector
from app.metrics.figure_lines import FigureLines
from app.metrics.gc_pauses import GcPauses
from app.metrics.leader_collector import Elected, LeaderCollector
from app.metrics.mirror_collector import MirrorCollector
from app.metrics.preempt_metrics import PreemptMetrics
from app.metrics.queue_collector import Queue, QueueCollector
from app.metrics.verb_collector import OUTCOMES, VerbCollector
from app.metrics.watch_collector import WatchCollector
from app.tls.reloaded import ReloadedTls
from app.watch.freshness import Freshness
from app.watch.reflector import Reflector
from core.equivalence.cache import EquivalenceCache
from core.mirror.cluster import ClusterMirror

_DELAYS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)  # seconds


class Metrics:
    """The metrics of one service, in a registry of their own."""

    CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4

    def __init__(
        self,
        mirror: ClusterMirror,
        freshness: Freshness,
        clock: Callable[[], float],
        *,
        node_figures: bool = True,
    ) -> None:
        """Take the clock of the freshness; `node_figures` adds the resource figures of every node."""
        self.gc_pauses = GcPauses(clock)
        """Whoever runs the service has to surround that with its `observing`."""
        self._watch = WatchCollector(freshness, clock)
        self._figures = FigureLines(mirror.nodes, of_nodes=node_figures)
        self._registry = CollectorRegistry()
        self._delay = Histogram(
            "kindred_mirror_to_watch_delay_seconds",
            "From a pod's assumption in the mirror to the watch event that confirmed it.",
            registry=self._registry,
            buckets=_DELAYS,
        )
        self._stale_answers = Counter(
            "kindred_stale_answers",
            "Questions that came while the mirror could not be trusted, be they answered or refused.",
            ["verb"],
            registry=self._registry,
        )
        for verb in OUTCOMES:
            self._stale_answers.labels(verb)  # told from the start, as 0
        self.binds = BindMetrics(self._registry)
        """Whoever binds has to tell its `observe`."""
        self.preempts = PreemptMetrics(self._registry)
        """Whoever answers `preempt` has to tell its `observe`."""
        self.verbs = VerbCollector()
        """Whoever answers a question has to call that with its Observation."""
        for collector in (self.verbs, self._watch, MirrorCollector(mirror), self.gc_pauses):
            self._registry.register(collector)
        build = Info("kindred_build", "Which program this is.", registry=self._registry)
        build.info({"version": __version__, "python": platform.python_version()})
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)

    def observe_confirmation(self, seconds: float) -> None:
        """Take note that a pod was confirmed, so long after it was assumed."""
        self._delay.observe(seconds)

    def count_stale_answer(self, verb: str) -> None:
        """Take note of a question that was asked of a mirror which cannot be trusted; verbs are few."""
        self._stale_answers.labels(verb).inc()

    def follow(self, reflectors: Iterable[Reflector]) -> None:
        """Tell also how many objects these know."""
        self._watch.known = {reflector.state.plural: reflector.known for reflector in reflectors}

    def add_cache(self, cache: EquivalenceCache) -> None:
        """Tell also of an equivalence cache; without one there is no word of it."""
        self._registry.register(CacheCollector(cache))

    def add_ports(self, connections: Sequence[Connections], tls: Sequence[ReloadedTls]) -> None:
        """Tell also of the ports; without TLS there is no word of certificates."""
        self._registry.register(ConnectionCollector(connections))
        if tls:
            self._registry.register(TlsCollector(tls))

    def add_queue(self, queue: Queue) -> None:
        """Tell also of the questions that wait."""
        self._registry.register(QueueCollector(queue))

    def add_leadership(self, leadership: Elected) -> None:
        """Tell also of the leader election; without one there is no word of it."""
        self._registry.register(LeaderCollector(leadership))

    def pieces(self) -> Iterator[bytes]:
        """Yield the text format in pieces of which each takes far less than a millisecond to make.

        The mirror may change between two pieces: each is true when it is made.
        """
        for family in self._registry.collect():
            yield generate_latest(_One(family))
        yield from self._figures.pieces()


class _One:
    """A collector of one metric, as the library renders whole registries only."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterable[Metric]:
        return (self._family,)
