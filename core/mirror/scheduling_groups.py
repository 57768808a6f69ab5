"""The members of the groups that kube-scheduler schedules together, and the minimums that each group has had."""

from collections import deque
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from core.objects.groups import SchedulingGroup
from core.objects.pod import Pod

_MAX_LEFT: Final = 10_000
_NONE: Final[Mapping[str, Pod]] = MappingProxyType({})


class SchedulingGroups:
    """Pod.scheduling_group -> members, as the watch shows them: with or without a node, and while they terminate.

    The memory is bounded by the existing pods and PodGroups.
    """

    def __init__(self) -> None:
        self.key_of: Final[dict[str, str]] = {}
        """uid -> group, for all members."""
        self._members: dict[str, dict[str, Pod]] = {}
        self._present: set[str] = set()
        self._smallest: dict[str, int] = {}
        self._left: deque[str] = deque(maxlen=_MAX_LEFT)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the groups that have a member."""
        return iter(self._members)

    def members(self, key: str) -> Mapping[str, Pod]:
        """Return uid -> member of a group, in the order of arrival."""
        return self._members.get(key, _NONE)

    def smallest_minimum(self, key: str) -> int:
        """Return the smallest minimum that the PodGroup has had, or 1 if it is unknown.

        kube-scheduler may schedule by an earlier state of the PodGroup than the watch shows.
        """
        return self._smallest.get(key, 1)

    def take_left(self) -> list[str]:
        """Return the groups of members that counted on a node and left since the last call, one entry for each."""
        left = [*self._left]
        self._left.clear()
        return left

    def see(self, pod: Pod, *, deleted: bool, counted: bool) -> None:
        """Apply the state of a pod. `counted`: the mirror has counted it on a node up to now."""
        key = "" if deleted or pod.terminal else pod.scheduling_group
        known = self.key_of.get(pod.uid)
        if known is not None and known != key:
            self._leave(known, pod.uid, counted=counted)
        if key:
            self.key_of[pod.uid] = key
            self._members.setdefault(key, {})[pod.uid] = pod

    def see_group(self, group: SchedulingGroup, *, deleted: bool) -> None:
        """Apply the state of a PodGroup."""
        key = group.full_name
        if deleted:
            self._present.discard(key)
            self._forget_unused(key)
            return
        self._present.add(key)
        self._smallest[key] = min(group.minimum, self._smallest.get(key, group.minimum))

    def _leave(self, key: str, uid: str, *, counted: bool) -> None:
        members = self._members[key]
        del members[uid], self.key_of[uid]
        if counted:
            self._left.append(key)
        if not members:
            del self._members[key]
            self._forget_unused(key)

    def _forget_unused(self, key: str) -> None:
        if key not in self._present and key not in self._members:
            self._smallest.pop(key, None)
