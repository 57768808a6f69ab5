"""Pods by the names that people use: pods of the mirror, and pods of recent requests. Also by a part of their names."""

from collections.abc import AsyncIterator, Collection, Iterator
from itertools import chain
from typing import Final

import msgspec
from msgspec.structs import replace

from app.explain.explain_request import UnknownError
from app.explain.pod_names import PodQuery, pod_query
from app.process.long_work import LongWork
from app.verbs.request import RecentPods
from core.explaining.pod_names import Sees, every_namespace
from core.explaining.words import listed
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod

UNKNOWN_POD: Final = "neither in the mirror nor in a recent request"
_MAX_LISTED: Final = 10  # pods of one name that an error names
_NOT_SEEN: Final = (
    ", or in a namespace whose pods this caller may not list. The response to NAMESPACE/NAME names a missing right"
)


class KnownPods:
    """Finds pods by [NAMESPACE/][TYPE/]NAME or uid."""

    def __init__(self, mirror: ClusterMirror, recent: RecentPods, work: LongWork | None = None) -> None:
        """`work` has the turn in which `find` is called, which all long jobs of the process share."""
        self.mirror: Final = mirror
        self.work: Final = work if work is not None else LongWork()
        self._recent = recent

    async def find(self, texts: Collection[str], sees: Sees | None = None) -> dict[str, list[Pod]]:
        """Return, for each text, the pod with that uid, or those with that name: of the mirror, or recent requests.

        For a workload, it is the pending pod that has waited longest in each namespace. Pods of namespaces that `sees`
        rejects are not found, and a search for a hidden uid takes as long as for an unknown one.
        """
        found: dict[str, list[Pod]] = {}
        searched: dict[str, list[str]] = {}  # name -> texts
        for text in texts:
            query = pod_query(text)
            seen = await self._waiting(query) if query.kind else self._of_uid(query.name)
            found[text] = [pod for pod in seen if sees is None or sees(pod.namespace)]
            if not query.kind and (sees is not None or not found[text]):
                searched.setdefault(query.key, []).append(text)
        if not searched:
            return found
        by_uid = {text for text, pods in found.items() if pods}
        # Pending pods come first: one that is bound meanwhile is found twice, and not missed.
        pending = [pod async for pod in self._pending() if pod.full_name in searched or pod.name in searched]
        placed = await placed_pods(self.mirror, searched, self.work)
        for number, pod in enumerate(chain(placed, pending, self._recent)):
            for text in (*searched.get(pod.full_name, ()), *searched.get(pod.name, ())):
                is_new = number < len(placed) or all(each.full_name != pod.full_name for each in found[text])
                if is_new and text not in by_uid and (sees is None or sees(pod.namespace)):
                    found[text].append(pod)
        return found

    async def _waiting(self, query: PodQuery) -> Collection[Pod]:
        oldest: dict[str, Pod] = {}
        async for pod in self._pending():
            if query.has(pod):
                known = oldest.get(pod.namespace, pod)
                oldest[pod.namespace] = min(known, pod, key=lambda each: (each.waiting.created, each.name))
        return oldest.values()

    async def _pending(self) -> AsyncIterator[Pod]:
        """Yield the pods that were pending at the call. Other requests are served in between."""
        for pod in [*self.mirror.pending]:
            yield pod
            if self.work.over:
                await self.work.checkpoint()

    def without_foreign_uid(self, pod: Pod) -> Pod:
        """Return the pod of a manifest. Its uid counts only if the mirror has that uid under the same name.

        Otherwise a manifest with the uid of a hidden pod would get another response than one with an unknown uid.
        """
        stored = self.mirror.get_pod(pod.uid) or self.mirror.pending.get(pod.uid)
        is_it = stored is not None and stored.full_name == pod.full_name
        return pod if is_it else replace(pod, uid=pod.full_name)  # as the decoder does without a uid

    def _of_uid(self, uid: str) -> Collection[Pod]:
        found = self.mirror.get_pod(uid) or self.mirror.pending.get(uid) or self._recent.get(uid)
        return [] if found is None else [found]


async def placed_pods(mirror: ClusterMirror, names: Collection[str], work: LongWork) -> list[Pod]:
    """Return the pods on nodes that have one of these names, with or without a namespace, within a turn of `work`.

    The search visits 150,000 pods, because names have no index. So other requests are served in between.
    """
    found = []
    for uid in list(mirror.pods.rows):
        pod = mirror.get_pod(uid)
        if pod is not None and (pod.full_name in names or pod.name in names):
            found.append(uid)
        if work.over:
            await work.checkpoint()
    present = map(mirror.get_pod, found)  # pods may have changed in between
    return [pod for pod in present if pod is not None]


def the_one(found: dict[str, list[Pod]], text: str, field: str, *, is_limited: bool = False) -> Pod:
    """Return the pod that a text names. Raises UnknownError for none, or for several.

    `is_limited`: the caller may not see all pods. Then the error is the same for an unknown pod and for a hidden one.
    """
    pods, query = found[text], pod_query(text)
    if not pods:
        hint = _NOT_SEEN if is_limited and not query.namespace else ""
        if query.kind:
            why = f"no pending pod is of it{hint}; its manifest explains the next one"
            raise UnknownError(field, f"{query.kind} {query.key}: {why}")
        then = "; it may have ended, and a manifest explains a pod that does not exist" if field == "pod" else ""
        raise UnknownError(field, f"pod {text}: {UNKNOWN_POD}{hint}{then}")
    if len(pods) > 1:
        names = {pod.full_name: pod for pod in pods}
        several = sorted(names) if len(names) == len(pods) else [pod.uid for pod in pods]
        raise UnknownError(field, f"pod {text}: there are several of that name: {listed(several, _MAX_LISTED)}")
    return pods[0]


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
                    await self._work.checkpoint()
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
                    await self._work.checkpoint()
            for pod in self._pods():
                if pod is not None and sees(pod.namespace):
                    pods.add(pod.full_name, pod.name, pod.node_name)
                if pods.full:
                    break
                if self._work.over:
                    await self._work.checkpoint()
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
