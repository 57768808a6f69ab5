"""Names of nodes and pods by a part of them, for a field with completion."""

from collections.abc import Iterator

import msgspec

from app.long_work import LongWork
from app.verbs.recent_pods import RecentPods
from core.diagnosis.pod_names import Sees, every_namespace
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod


class FoundPod(msgspec.Struct, frozen=True):
    """A pod whose name has the text in it."""

    pod: str
    """NAMESPACE/NAME"""
    node: str
    """Empty where it is on none."""


class FoundNames(msgspec.Struct, frozen=True):
    """Names that begin with the text, then names that have it in them, each in the order of the alphabet."""

    nodes: list[str]
    pods: list[FoundPod]
    more: bool
    """Whether there are, or may be, more than the limit."""
    names_hidden: str = ""
    """Why pods are left out that the caller may not see; empty where none are."""


class _Matches:
    """Names with a text in them, up to a limit of each kind: as many that begin with it as there are."""

    def __init__(self, text: str, limit: int) -> None:
        self._text = text
        self._limit = limit
        self._beginning: dict[str, str] = {}  # name -> node
        self._containing: dict[str, str] = {}

    @property
    def full(self) -> bool:
        """Whether nothing better can be found."""
        return len(self._beginning) > self._limit

    def add(self, name: str, short: str, node: str) -> None:
        """Take in a name, if the text is in it; `short` is the part of it that people begin with, too."""
        if name.startswith(self._text) or short.startswith(self._text):
            self._beginning.setdefault(name, node)
        elif self._text in name and len(self._containing) <= self._limit:
            self._containing.setdefault(name, node)

    def found(self) -> tuple[list[tuple[str, str]], bool]:
        """Return (name, node) up to the limit, and whether there are more."""
        ranked = [*sorted(self._beginning.items()), *sorted(self._containing.items())]
        return ranked[: self._limit], len(ranked) > self._limit


class NameSearch:
    """Looks names up in the mirror, among the pods on nodes, pending pods, and the pods of recent requests.

    Names have no index, so a search visits 150,000 pods, unless more of them than the limit begin with the text.
    """

    def __init__(self, mirror: ClusterMirror, recent: RecentPods, work: LongWork) -> None:
        """`work` has the turn that a search takes: others are served in between."""
        self._mirror = mirror
        self._recent = recent
        self._work = work

    async def namespaces(self, text: str) -> set[str]:
        """Return the namespaces of the pods that `find` may return."""
        text = text.strip().lower()
        found: set[str] = set()
        async with self._work.turn():
            for pod in self._pods():
                if pod is not None and text in pod.full_name:
                    found.add(pod.namespace)
                if self._work.over:
                    await self._work.give_way()
        return found

    async def find(self, text: str, limit: int, sees: Sees = every_namespace) -> FoundNames:
        """Return up to `limit` nodes and as many pods, of the namespaces that are seen.

        Names have no capitals, so the text may have.
        """
        text = text.strip().lower()
        nodes, pods = _Matches(text, limit), _Matches(text, limit)
        async with self._work.turn():
            for name in [*self._mirror.nodes.slots]:
                nodes.add(name, name, name)
                if self._work.over:
                    await self._work.give_way()
            for pod in self._pods():
                if pod is not None and sees(pod.namespace):
                    pods.add(pod.full_name, pod.name, pod.node_name)
                if pods.full:
                    break
                if self._work.over:
                    await self._work.give_way()
        (found_nodes, more_nodes), (found_pods, more_pods) = nodes.found(), pods.found()
        return FoundNames(
            [name for name, _ in found_nodes],
            [FoundPod(pod, node) for pod, node in found_pods],
            more_nodes or more_pods,
        )

    def _pods(self) -> Iterator[Pod | None]:
        """Yield pods while the mirror may change: those that wait first, as they are looked for most."""
        yield from [*self._mirror.pending]
        for uid in [*self._mirror.pods.rows]:
            yield self._mirror.get_pod(uid)
        yield from [*self._recent]
