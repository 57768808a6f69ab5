"""All metrics of one service, and the text of a scrape. Collectors read other components at the scrape."""

import platform
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, Info, PlatformCollector, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from app import __version__
from app.telemetry.metrics.bind_metrics import BindMetrics
from app.telemetry.metrics.figure_lines import FigureLines, cluster_text
from app.telemetry.metrics.gc_pauses import GcPauses
from app.telemetry.metrics.loop_holds import LoopHolds
from app.telemetry.metrics.mirror_collector import MirrorCollector
from app.telemetry.metrics.preempt_metrics import PreemptMetrics
from app.telemetry.metrics.verb_collector import OUTCOMES, VerbCollector
from app.verbs.observation import Observation, VerbResult
from app.verbs.preempt_outcome import PreemptResult
from core.mirror.cluster import ClusterMirror

_DELAYS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)  # seconds


class Metrics:
    """The metrics of one service, in a registry of their own."""

    CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4

    def __init__(self, mirror: ClusterMirror, clock: Callable[[], float], *, node_figures: bool = False) -> None:
        """Start all counters at 0. `node_figures` adds the resource figures of every node."""
        self.gc_pauses = GcPauses(clock)
        """The caller that runs the service wraps it in `observing`."""
        self._mirror = mirror
        self._figures = FigureLines(mirror.nodes) if node_figures else None
        self._registry = CollectorRegistry()
        self._delay = Histogram(
            "kindred_mirror_to_watch_delay_seconds",
            "Seconds from assuming a pod to the watch event that confirmed it.",
            registry=self._registry,
            buckets=_DELAYS,
        )
        self._stale_answers = Counter(
            "kindred_stale_requests",
            "Requests received while the mirror was stale or not synced, answered or refused.",
            ["verb"],
            registry=self._registry,
        )
        for verb in OUTCOMES:
            self._stale_answers.labels(verb)  # exported as 0 from the start
        self.loop_holds = LoopHolds(self._registry)
        """The watch of the event loop calls its `observe`."""
        self._binds = BindMetrics(self._registry)
        self.preempts = PreemptMetrics(self._registry)
        """The evictor calls its `observe_preemption`."""
        self._verbs = VerbCollector()
        for collector in (self._verbs, MirrorCollector(mirror), self.gc_pauses):
            self._registry.register(collector)
        build = Info(
            "kindred_build", "Build information: version and Python version. Always 1.", registry=self._registry
        )
        build.info({"version": __version__, "python": platform.python_version()})
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)

    def observe(self, observation: Observation) -> None:
        """Count a request to a verb, after its response."""
        self._verbs.count(observation)
        if observation.result is not None and not observation.dry_run:
            self._count_result(observation.result)

    def _count_result(self, result: VerbResult) -> None:
        if isinstance(result, PreemptResult):
            self.preempts.observe(result)
        else:
            self._binds.observe(result)

    def observe_confirmation(self, seconds: float) -> None:
        """Record the seconds from assuming a pod to the watch event that confirmed it."""
        self._delay.observe(seconds)

    def count_stale_answer(self, verb: str) -> None:
        """Count a request that arrived while the mirror was stale or not synced. There are few verbs."""
        self._stale_answers.labels(verb).inc()

    def register(self, collector: Collector) -> None:
        """Add the metrics of a collector. The module that creates the collector calls this."""
        self._registry.register(collector)

    def pieces(self) -> Iterator[bytes]:
        """Yield the text format in pieces, all of one generation of the mirror. Each piece takes a short time to make.

        The first pieces are empty: in these steps the figures of nodes follow the mirror. The next step reads all
        values, which takes 2 ms. After it the mirror may change.
        """
        for _ in self._steps():
            yield b""
        families = list(self._registry.collect())
        of_nodes = self._figures.text() if self._figures is not None else []
        of_cluster = self._mirror.figures
        for family in families:
            yield generate_latest(_One(family))
        yield from of_nodes
        yield cluster_text(of_cluster)

    def _steps(self) -> Iterator[None]:
        if self._figures is not None:
            yield from self._figures.steps()
        yield from self._mirror.follow_figures()


class _One:
    """A collector of one metric, as the library renders whole registries only."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterable[Metric]:
        return (self._family,)
