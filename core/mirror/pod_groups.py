"""The groups of pods that are placed together, derived from the members in the watch."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from core.objects.groups import (
    DEFAULT_TIMEOUT,
    MAX_MINIMUM,
    MAX_TIMEOUT,
    PACKING_ANNOTATION,
    SPREAD,
    Packing,
    PodGroup,
)
from core.objects.pod import Pod, Waiting


class Rule(NamedTuple):
    """How many members of a group are placed together, and for how many seconds places are reserved for them.

    `problem` is why the rule is unknown, in one line. Empty if it is known.
    """

    minimum: int
    timeout: float
    problem: str = ""


class Group:
    """The members of one group. `version` changes with each change of the group that can affect its placement."""

    __slots__ = ("ended", "key", "members", "version")

    def __init__(self, key: str) -> None:
        self.key: Final = key
        """NAMESPACE/NAME"""
        self.members: dict[str, Pod] = {}  # uid -> pod as in the watch, in the order of arrival
        self.ended = 0
        """Members that had a node and were deleted or have ended, since the group first had a member."""
        self.version = 0

    @property
    def by_object(self) -> bool:
        """Whether the group is a PodGroup."""
        return any(pod.group is not None and pod.group.by_object for pod in self.members.values())

    def rule(self, pod_groups: Mapping[str, PodGroup]) -> Rule:
        """Return the rule from the PodGroup or from the annotations of the members.

        If annotations differ, the largest minimum and the shortest timeout apply: no member is placed too early, and no
        place is reserved for too long.
        """
        if self.by_object:
            return _of_object(self.key, pod_groups.get(self.key))
        said = [pod.group for pod in self.members.values() if pod.group is not None]
        problem = next((each.problem for each in said if each.problem), "")
        if problem:
            return Rule(0, 0.0, problem)
        minimum = max((each.minimum for each in said), default=0)
        if not minimum:
            return Rule(0, 0.0, "no member has the annotation kindred.dev/group-minimum")
        return Rule(minimum, min((each.timeout for each in said if each.timeout), default=DEFAULT_TIMEOUT))

    def packing(self, pod_groups: Mapping[str, PodGroup]) -> Packing:
        """Return the packing from the PodGroup or from the annotations of the members, or SPREAD if none is set.

        An invalid annotation, or members that differ, are a `problem`.
        """
        if self.by_object:
            found = pod_groups.get(self.key)
            return SPREAD if found is None else found.packing
        said = [pod.group.packing for pod in self.members.values() if pod.group is not None]
        packings = {each for each in said if each is not None}
        wrong = sorted(each.problem for each in packings if each.problem)
        if wrong:
            return Packing(problem=wrong[0])
        if len(packings) > 1:
            ways = ", ".join(sorted(f"{each.way.value} {each.topology_key}".strip() for each in packings))
            return Packing(problem=f"metadata.annotations[{PACKING_ANNOTATION}]: members differ: {ways}")
        return next(iter(packings), SPREAD)


class PodGroups:
    """NAMESPACE/NAME -> group, for groups with a member. Upstream's own pod groups are not included.

    A group is removed with its last member, so the memory is bounded by the existing pods.
    """

    def __init__(self) -> None:
        self.key_of: Final[dict[str, str]] = {}
        """uid -> NAMESPACE/NAME of the group, for all members."""
        self._groups: dict[str, Group] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[Group]:
        return iter(self._groups.values())

    def get(self, key: str) -> Group | None:
        """Return a group, or None if it has no member."""
        return self._groups.get(key)

    def see(self, pod: Pod, *, deleted: bool) -> None:
        """Apply the state of a pod, which may join a group, leave it, or move to another one."""
        key = "" if deleted or pod.terminal else pod.group_name
        known = self.key_of.get(pod.uid)
        if known is not None and known != key:
            self._leave(known, pod.uid)
        if key:
            self._enter(key, pod)

    def touch(self, key: str) -> None:
        """Mark the group as changed, because its PodGroup was changed or deleted."""
        group = self._groups.get(key)
        if group is not None:
            group.version += 1

    def _enter(self, key: str, pod: Pod) -> None:
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(key)
        before = group.members.get(pod.uid)
        group.members[pod.uid] = pod
        self.key_of[pod.uid] = key
        # Each failed attempt writes the pod's condition, which is no reason to try the gang again.
        if before is None or _placing(before) != _placing(pod):
            group.version += 1

    def _leave(self, key: str, uid: str) -> None:
        group = self._groups[key]
        group.ended += bool(group.members.pop(uid).node_name)
        group.version += 1
        del self.key_of[uid]
        if not group.members:
            del self._groups[key]


def _of_object(key: str, found: PodGroup | None) -> Rule:
    if found is None:
        return Rule(0, 0.0, f"PodGroup {key} does not exist")
    if not 1 <= found.minimum <= MAX_MINIMUM:
        return Rule(0, 0.0, f"PodGroup {key}: spec.minMember must be 1..{MAX_MINIMUM}, got {found.minimum}")
    if not 0 <= found.timeout <= MAX_TIMEOUT:
        problem = f"PodGroup {key}: spec.scheduleTimeoutSeconds must be 1..{MAX_TIMEOUT:.0f}, got {found.timeout}"
        return Rule(0, 0.0, problem)
    return Rule(found.minimum, found.timeout or DEFAULT_TIMEOUT)


def _placing(pod: Pod) -> Pod:
    """Return a pod without the fields that do not affect its placement."""
    return replace(pod, resource_version="", nominated_node_name="", waiting=Waiting(gates=pod.waiting.gates))
