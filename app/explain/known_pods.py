"""Pods by the names that people use: pods of the mirror, and pods of recent requests."""

from collections.abc import Collection, Iterator
from typing import Final

from msgspec.structs import replace

from app.explain.explain_error import UnknownError
from app.long_work import LongWork
from app.verbs.recent_pods import RecentPods
from core.diagnosis.pod_names import Sees
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod

_NOT_SEEN: Final = (
    ", or in a namespace whose pods this caller may not list. The response to NAMESPACE/NAME names a missing right"
)


class KnownPods:
    """Finds pods by NAMESPACE/NAME or uid."""

    def __init__(self, mirror: ClusterMirror, recent: RecentPods, work: LongWork) -> None:
        """`work` has the turn in which `find` is called."""
        self._work = work
        self._mirror = mirror
        self._recent = recent

    async def find(self, texts: Collection[str], sees: Sees | None = None) -> dict[str, list[Pod]]:
        """Return, for each text, the pods with that name or uid: of the mirror, else pending, else of recent requests.

        Pods of namespaces that `sees` rejects are not found by uid. The search by name visits 150,000 pods, because
        names have no index. So other requests are served in between.
        """
        found: dict[str, list[Pod]] = {text: [] for text in texts}
        names = set()
        for text in texts:
            pod = next((pod for pod in self._of_uid(text) if sees is None or sees(pod.namespace)), None)
            if pod is not None:
                found[text].append(pod)
            elif "/" in text:  # an unknown uid is not searched for, so that it takes no longer than a hidden one
                names.add(text)
        await self._by_name(names, found)
        for pod in self._mirror.pending:
            if pod.full_name in names and not found[pod.full_name]:
                found[pod.full_name].append(pod)
        for pod in self._recent:
            if pod.full_name in names and not found[pod.full_name]:
                found[pod.full_name].append(pod)
        return found

    def namespaces_of(self, uid: str) -> Iterator[str]:
        """Yield the namespaces of the pods with a uid."""
        return (pod.namespace for pod in self._of_uid(uid))

    def without_foreign_uid(self, pod: Pod) -> Pod:
        """Return the pod of a manifest. Its uid counts only if the mirror has that uid under the same name.

        Otherwise a manifest with the uid of a hidden pod would get another response than one with an unknown uid.
        """
        held = self._mirror.get_pod(pod.uid) or self._mirror.pending.get(pod.uid)
        is_it = held is not None and held.full_name == pod.full_name
        return pod if is_it else replace(pod, uid=pod.full_name)  # as the decoder does without a uid

    def _of_uid(self, uid: str) -> Iterator[Pod]:
        found = (self._mirror.get_pod(uid), self._mirror.pending.get(uid), self._recent.get(uid))
        return (pod for pod in found if pod is not None)

    async def _by_name(self, names: set[str], found: dict[str, list[Pod]]) -> None:
        if not names:
            return
        for uid in list(self._mirror.pods.rows):
            pod = self._mirror.get_pod(uid)
            if pod is not None and pod.full_name in names:
                found[pod.full_name].append(pod)
            if self._work.over:
                await self._work.give_way()


def the_one(found: dict[str, list[Pod]], text: str, field: str, *, is_limited: bool = False) -> Pod:
    """Return the pod that a text names. Raises UnknownError for none, or for several.

    `is_limited`: the caller may not see all pods. Then the error is the same for an unknown uid and for a hidden pod.
    """
    pods = found[text]
    if not pods:
        hint = _NOT_SEEN if is_limited and "/" not in text else ""
        raise UnknownError(field, f"pod {text}: neither in the mirror nor in a recent request{hint}")
    if len(pods) > 1:
        raise UnknownError(field, f"pod {text}: there are several of that name: {', '.join(pod.uid for pod in pods)}")
    return pods[0]
