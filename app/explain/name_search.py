"""Names of nodes and pods by a part of them, for a field with completion."""

from collections.abc import Iterator

import msgspec

from app.long_work import LongWork
from app.verbs.recent_pods import RecentPods
from core.diagnosis.pod_names import Sees, every_namespace
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod


class FoundPod(msgspec.Struct, frozen=True):
    """A pod whose name contains the text."""

    pod: str
    """NAMESPACE/NAME"""
    node: str
    """Empty without a node."""


class FoundNames(msgspec.Struct, frozen=True):
    """Names that begin with the text, then names that contain it, each in alphabetical order."""

    nodes: list[str]
    pods: list[FoundPod]
    more: bool
    """Whether there are, or may be, more names than the limit."""
    names_hidden: str = ""
    """Why pods that the caller may not see are left out. Empty if none are."""


class _Matches:
    """Names that contain a text, up to a limit. Names that begin with the text go first."""

    def __init__(self, text: str, limit: int) -> None:
        self._text = text
        self._limit = limit
        self._beginning: dict[str, str] = {}  # name -> node
        self._containing: dict[str, str] = {}

    @property
    def full(self) -> bool:
        """Whether no further name can improve the result."""
        return len(self._beginning) > self._limit

    def add(self, name: str, short: str, node: str) -> None:
        """Add a name if it contains the text. `short`: the end of the name that people also begin with."""
        if name.startswith(self._text) or short.startswith(self._text):
            self._beginning.setdefault(name, node)
        elif self._text in name and len(self._containing) <= self._limit:
            self._containing.setdefault(name, node)

    def found(self) -> tuple[list[tuple[str, str]], bool]:
        """Return (name, node) up to the limit, and whether there are more."""
        ranked = [*sorted(self._beginning.items()), *sorted(self._containing.items())]
        return ranked[: self._limit], len(ranked) > self._limit


class NameSearch:
    """Searches the names of nodes, and of pods: on nodes, pending, and of recent requests.

    Names have no index, so a search visits 150,000 pods. It ends early if more names than the limit begin with the
    text.
    """

    def __init__(self, mirror: ClusterMirror, recent: RecentPods, work: LongWork) -> None:
        """`work` has the turn of a search. Other requests are served in between."""
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
        """Return up to `limit` nodes, and up to `limit` pods of the namespaces that `sees` allows.

        The text may have capitals, which names never have.
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
        """Yield pods, also while the mirror changes. Pending pods come first, because they are searched most often."""
        yield from [*self._mirror.pending]
        for uid in [*self._mirror.pods.rows]:
            yield self._mirror.get_pod(uid)
        yield from [*self._recent]
