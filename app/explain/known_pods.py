"""Pods by the names that people use: pods of the mirror, and pods of recent requests."""

from collections.abc import Collection

from app.explain.explain_error import UnknownError
from app.long_work import LongWork
from app.verbs.recent_pods import RecentPods
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod


class KnownPods:
    """Finds pods by NAMESPACE/NAME or uid."""

    def __init__(self, mirror: ClusterMirror, recent: RecentPods, work: LongWork) -> None:
        """`work` has the turn in which `find` is called."""
        self._work = work
        self._mirror = mirror
        self._recent = recent

    async def find(self, texts: Collection[str]) -> dict[str, list[Pod]]:
        """Return, for each text, the pods with that name or uid: of the mirror, else pending, else of recent requests.

        The search visits 150,000 pods, because names have no index. So other requests are served in between.
        """
        found: dict[str, list[Pod]] = {text: [] for text in texts}
        names = set()
        for text in texts:
            pod = self._mirror.get_pod(text) or self._mirror.pending.get(text) or self._recent.get(text)
            if pod is not None:
                found[text].append(pod)
            else:
                names.add(text)
        await self._by_name(names, found)
        for pod in self._mirror.pending:
            if pod.full_name in names and not found[pod.full_name]:
                found[pod.full_name].append(pod)
        for pod in self._recent:
            if pod.full_name in names and not found[pod.full_name]:
                found[pod.full_name].append(pod)
        return found

    def namespaces_of(self, text: str, field: str) -> set[str]:
        """Return the namespace in NAMESPACE/NAME, and the namespace of the pod whose uid is the text.

        Raises UnknownError for any other text, because a later pod with that uid may be in any namespace.
        """
        pod = self._mirror.get_pod(text) or self._mirror.pending.get(text) or self._recent.get(text)
        found = {text.partition("/")[0]} if "/" in text else set()
        if pod is not None:
            found.add(pod.namespace)
        if not found:
            raise UnknownError(field, _unknown(text))
        return found

    async def _by_name(self, names: set[str], found: dict[str, list[Pod]]) -> None:
        if not names:
            return
        for uid in list(self._mirror.pods.rows):
            pod = self._mirror.get_pod(uid)
            if pod is not None and pod.full_name in names:
                found[pod.full_name].append(pod)
            if self._work.over:
                await self._work.give_way()


def the_one(found: dict[str, list[Pod]], text: str, field: str) -> Pod:
    """Return the pod that a text names. Raises UnknownError for none, or for several."""
    pods = found[text]
    if not pods:
        raise UnknownError(field, _unknown(text))
    if len(pods) > 1:
        raise UnknownError(field, f"pod {text}: there are several of that name: {', '.join(pod.uid for pod in pods)}")
    return pods[0]


def _unknown(text: str) -> str:
    return f"pod {text}: neither in the mirror nor in a recent request"
