"""The evaluation of a pod for a verb, from the equivalence cache or fresh, unless its class takes too much work."""

from collections.abc import Iterator
from contextlib import contextmanager

from core.equivalence.cache import EquivalenceCache
from core.equivalence.heavy_pods import HeavyPods
from core.framework.evaluation import Evaluation, FreshEvaluation
from core.mirror.cluster import ClusterMirror
from core.mirror.work import WorkLimitError
from core.objects.pod import Pod
from core.profile import Profile


@contextmanager
def set_apart(mirror: ClusterMirror, pod: Pod) -> Iterator[bool]:
    """Suppose in a `with` block that a pod is on no node, because it must not count for its own decision.

    Yields whether it was on a known node. If so, no kept result may be read or written in the block.
    """
    held = mirror.get_pod(pod.uid)
    if held is None or held.node_name not in mirror.nodes.slots:
        yield False
        return
    with mirror.suppose() as supposed:
        supposed.remove(held)
        yield True


class Evaluations:
    """Begins and ends the evaluations of one verb."""

    def __init__(self, profile: Profile, mirror: ClusterMirror, cache: EquivalenceCache | None) -> None:
        """Evaluate by the plugins of a profile. Without a cache every evaluation is fresh."""
        self._mirror = mirror
        self._cache = cache
        self._heavy = HeavyPods(mirror, profile.plugins)

    def begin(self, pod: Pod, *, cached: bool) -> Evaluation:
        """Return the evaluation of a pod. With `cached` false, no kept result is read or written.

        Raises WorkLimitError for a pod of a class that recently took too much work, unless `cached` is false.
        """
        if cached:
            self._heavy.check(pod)
        if self._cache is None or not cached:
            return FreshEvaluation(self._mirror, pod)
        return self._cache.evaluation(pod)

    def finish(self, evaluation: Evaluation, *, cached: bool) -> str:
        """End an evaluation. Return the source of its results, see VerbResponse.source."""
        if self._cache is None:
            return ""
        return self._cache.finish(evaluation) if cached else "off"

    def refused(self, pod: Pod, error: WorkLimitError, *, cached: bool) -> None:
        """Record that the evaluation of a pod took too much work, unless `cached` is false."""
        if cached:
            self._heavy.remember(pod, error)
