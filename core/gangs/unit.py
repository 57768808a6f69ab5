"""A unit: a group with its reservations, and its members by state."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from core.framework.interface import reasons_text
from core.gangs.attempts import Shortfall
from core.mirror.cluster import ClusterMirror
from core.mirror.pending_pods import Group, Rule
from core.objects.pod import Pod

Order: TypeAlias = tuple[bool, int, int, str, str]
"""Sort key of a waiting unit: has not started, -priority, timeouts, creation of the oldest member, name."""


class Unit:
    """The state of a group besides its members. Times come from the caller's clock."""

    __slots__ = (
        "asked_at",
        "attempts",
        "deadline",
        "failed_at",
        "group",
        "holds_until",
        "is_timed_out",
        "memo",
        "order",
        "overtaken",
        "packing_problem",
        "reason",
        "reserved",
        "reserved_at",
        "scheduled_at",
        "searched_at",
        "shortfall",
        "timed_out_at",
        "timeouts",
        "version",
    )

    def __init__(self, group: Group) -> None:
        self.group: Final = group
        self.asked_at: float | None = None
        self.reserved: dict[str, str] = {}  # uid -> node
        self.reserved_at: float | None = None
        self.deadline = 0.0
        self.version = 0  # of the group, at the last review of the reservations
        self.scheduled_at: float | None = None
        self.timed_out_at: float | None = None
        self.is_timed_out = False  # timed out, and not tried since
        self.timeouts = 0
        self.attempts = 0
        self.reason = ""
        self.shortfall: Shortfall | None = None
        self.memo: object = None  # the state of the mirror in which the shortfall was found
        self.failed_at = 0.0
        self.searched_at: float | None = None
        self.order: Order = (True, 0, 0, "", "")
        self.overtaken = 0  # gangs behind this one that were placed since it did not fit
        self.packing_problem = ""  # the last reported one
        self.holds_until = 0.0  # gangs behind this one wait until then

    def nodes(self, mirror: ClusterMirror) -> frozenset[str]:
        """Return the nodes of members that are bound, decided for or reserved, and are not terminating."""
        held = (mirror.get_pod(uid) for uid in self.group.members)
        return frozenset(pod.node_name for pod in held if pod is not None and not pod.terminating)


class Tally(NamedTuple):
    """The members of a group by state."""

    bound: int
    """Without terminating members."""
    assumed: int
    """Decided for. Members with only a reservation are not included."""
    pending: Sequence[Pod]
    """Members that can be placed, in the order of placement."""
    kept_out: int
    """Members that cannot be placed: gated, terminating, or of a scheduler that Kindred does not decide for."""
    terminating: int
    """Members of `kept_out` that terminate."""

    @property
    def scheduled(self) -> int:
        """Members that count for the minimum without a reservation."""
        return self.bound + self.assumed


def tally(unit: Unit, mirror: ClusterMirror, eligible: Callable[[Pod], bool]) -> Tally:
    """Count the members of a unit. `eligible` returns whether this scheduler decides for a pending pod."""
    bound = assumed = kept_out = terminating = 0
    pending = []
    for uid, pod in unit.group.members.items():
        if uid in unit.reserved:
            continue
        if pod.node_name and not pod.terminating:
            bound += 1
        elif mirror.is_assumed(uid):
            assumed += 1
        elif uid in mirror.pending and not pod.terminating and not pod.waiting.gates and eligible(pod):
            pending.append(pod)
        else:
            kept_out += 1
            terminating += pod.terminating
    pending.sort(key=lambda pod: (-pod.priority, pod.waiting.created, pod.name))
    return Tally(bound, assumed, pending, kept_out, terminating)


def to_place(rule: Rule, counts: Tally, reserved: int, asked: Pod | None = None) -> tuple[Sequence[Pod], int]:
    """Return the members to place together now, `asked` first, and how many members are missing.

    If the minimum is scheduled or reserved, there are no members to place. A group that has started does not wait for
    missing members.
    """
    need = rule.minimum - counts.scheduled - reserved
    if need <= 0:
        return (), 0
    members = counts.pending
    if asked is not None:
        members = (asked, *(pod for pod in members if pod.uid != asked.uid))
    missing = need - len(members)
    if missing > 0 and not counts.scheduled:
        return (), missing
    return members[:need], 0


def order_of(unit: Unit, counts: Tally, asked: Pod | None = None) -> Order:
    """Return the sort key of a waiting unit."""
    waiting = counts.pending if asked is None else (asked, *counts.pending)
    priority = max((pod.priority for pod in waiting), default=0)
    created = min((pod.waiting.created for pod in waiting), default="")
    return (not counts.scheduled, -priority, unit.timeouts, created, unit.group.key)


def waiting_text(rule: Rule, counts: Tally, missing: int) -> str:
    """Return why a unit cannot be tried yet, in one line, or the empty text if it can."""
    if rule.problem:
        return rule.problem
    if not missing:
        return ""
    kept_out = f"; {counts.kept_out} cannot be placed by this scheduler now" if counts.kept_out else ""
    return f"waits for {missing} more member{'s' if missing > 1 else ''} of {rule.minimum}{kept_out}"


def shortfall_text(shortfall: Shortfall) -> str:
    """Return why a gang does not fit, in one line."""
    proved = "" if shortfall.is_proved else "; not all other ways were tried"
    return (
        f"{shortfall.placed} of {shortfall.wanted} members fit; the next one, {shortfall.pod.full_name}, does not: "
        f"{reasons_text(shortfall.verdicts)}{proved}"
    )
