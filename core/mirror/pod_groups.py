"""The groups of pods that are placed together, made from the members that the watch shows."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from core.objects.pod import Pod
from core.objects.pod_group import (
    DEFAULT_TIMEOUT,
    MAX_MINIMUM,
    MAX_TIMEOUT,
    PACKING_ANNOTATION,
    SPREAD,
    Packing,
    PodGroup,
)
from core.objects.waiting import Waiting


class Rule(NamedTuple):
    """How many members of a group are placed together, and for how many seconds places are reserved for them.

    `problem` is why that is not known, one line; empty if it is.
    """

    minimum: int
    timeout: float
    problem: str = ""


class Group:
    """The members of one group. `version` changes with everything in them that can matter to placing them."""

    __slots__ = ("ended", "key", "members", "version")

    def __init__(self, key: str) -> None:
        self.key: Final = key
        """NAMESPACE/NAME"""
        self.members: dict[str, Pod] = {}  # uid -> pod as the watch has it, in the order in which they came
        self.ended = 0
        """Members that had a node and were deleted, or have ended, since the first of the present ones came."""
        self.version = 0

    @property
    def by_object(self) -> bool:
        """Whether the group is a PodGroup."""
        return any(pod.group is not None and pod.group.by_object for pod in self.members.values())

    def rule(self, pod_groups: Mapping[str, PodGroup]) -> Rule:
        """Return the rule that the PodGroup or the annotations of the members have.

        Where annotations differ, the largest minimum and the shortest timeout hold: no member is placed too early, and
        no place is held for too long.
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
        """Return the packing that the PodGroup or the annotations of the members have; SPREAD where there is none.

        A wrong annotation, and members that differ, are a `problem`.
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
    """NAMESPACE/NAME -> group, for the groups that have a member. Upstream's own groups are not in here.

    A group and its data go with its last member, so the memory is bounded by the pods that exist.
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
        """Return a group; None if it has no member."""
        return self._groups.get(key)

    def see(self, pod: Pod, *, deleted: bool) -> None:
        """Take over the state of a pod: a member, one no more, or of another group than before."""
        key = "" if deleted or pod.terminal else pod.group_name
        known = self.key_of.get(pod.uid)
        if known is not None and known != key:
            self._leave(known, pod.uid)
        if key:
            self._enter(key, pod)

    def touch(self, key: str) -> None:
        """Take note that the PodGroup of that name is another one than before, or gone."""
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
        # Each failed attempt writes the condition of the pod, which is no reason to try the gang again.
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
    """Return a pod without the fields that do not affect where it can go."""
    return replace(pod, resource_version="", nominated_node_name="", waiting=Waiting(gates=pod.waiting.gates))
