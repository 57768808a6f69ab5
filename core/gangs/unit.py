"""A unit: a group of pods that are placed together, with its reservations, its members by state, and its status.

A request for a member gets a `GangResponse`.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import msgspec

from core.framework.interface import reasons_text
from core.gangs.attempts import Shortfall
from core.mirror.cluster import ClusterMirror
from core.mirror.pending_pods import Group, Rule
from core.objects.groups import GroupCondition, Packing, PackingWay, PodGroup
from core.objects.pod import Pod

if TYPE_CHECKING:
    from core.gangs.placing import Attempt
    from core.mirror.work import WorkLimitError

Order: TypeAlias = tuple[bool, int, int, str, str]
"""Sort key of a waiting unit: has not started, -priority, timeouts, creation of the oldest member, name."""


class Placed(NamedTuple):
    """The place of a member. The reservation is over: the caller assumes the pod there."""

    node: str


class Rejected(NamedTuple):
    """Why a member has no place."""

    reason: str


class Unfinished(NamedTuple):
    """Why it is not known yet whether a member has a place. The attempt goes on, also without a request."""

    reason: str


GangResponse: TypeAlias = Placed | Rejected | Unfinished | None
"""The result for a member. None: the minimum is scheduled, so the member is an ordinary pod."""


class Stop(NamedTuple):
    """The state in which an attempt failed."""

    generation: int
    """Of the mirror, when the attempt began."""
    version: int
    """Of the group."""
    nodes: int
    """Changes of the set of nodes."""
    others: int
    """Changes of other objects than nodes and pods."""
    of_nodes: bool
    """Whether it failed at the member of the request, which may have been limited to some nodes."""


class Unit:
    """The state of a group besides its members. Times come from the caller's clock."""

    def __init__(self, group: Group) -> None:
        self.group: Final = group
        self.namespace: Final = group.key.partition("/")[0]
        self.requested_at: float | None = None
        self.reserved: dict[str, str] = {}  # uid -> node
        self.reserved_at: float | None = None
        self.deadline = 0.0
        self.version = (0, 0)  # of the group and of the set of nodes, at the last review of the reservations
        self.finished = 0  # members of the group that had finished when its present reservations were made
        self.judged = 0  # generation of the mirror at which the present places fitted
        self.has_begun = False  # a member has been decided for, then or since
        self.scheduled_at: float | None = None
        self.timed_out_at: float | None = None
        self.is_timed_out = False  # timed out, and not tried since
        self.timeouts = 0
        self.attempts = 0
        self.reason = ""
        self.attempt: Attempt | None = None  # in progress
        self.version_tried = 0  # of the group, for the attempt
        self.others = 0  # changes of other objects than nodes and pods, when the attempt began
        self.spent = 0.0  # seconds of CPU, by attempts since the last one failed
        self.parts = 0  # of its attempt, so far
        self.charged = ""  # its attempt, in the ledgers
        self.has_hope = False  # something has changed that can help, or no attempt has been made yet
        self.looked_at = 0.0
        self.shortfall: Shortfall | None = None
        self.error: WorkLimitError | None = None  # in place of a shortfall
        self.stop: Stop | None = None  # of the shortfall or the error
        self.failed_at = 0.0
        self.searched_at: float | None = None
        self.order: Order = (True, 0, 0, "", "")
        self.overtaken = 0  # gangs behind this one that were placed since it did not fit
        self.packing_problem = ""  # the last reported one
        self.holds_until = 0.0  # gangs of its namespace behind this one wait until then
        self.holds_others_until = 0.0  # and those of other namespaces

    def drop_attempt(self) -> None:
        """Begin anew next time. What the attempt has taken counts for its namespace."""
        self.attempt, self.parts, self.spent = None, 0, 0.0

    def nodes(self, mirror: ClusterMirror) -> frozenset[str]:
        """Return the nodes of members that are bound, decided for or reserved, and are not terminating."""
        stored = (mirror.get_pod(uid) for uid, member in self.group.members.items() if not member.terminating)
        return frozenset(pod.node_name for pod in stored if pod is not None)


class Tally(NamedTuple):
    """The members of a group by state."""

    bound: int
    """Without terminating members."""
    assumed: int
    """Decided for, without terminating members. Members with only a reservation are not included."""
    pending: Sequence[Pod]
    """Members that can be placed, in the order of placement."""
    excluded: int
    """Members that cannot be placed: gated, terminating, or of a scheduler that Kindred does not decide for."""
    terminating: int
    """Members of `excluded` that terminate."""

    @property
    def scheduled(self) -> int:
        """Members that count for the minimum without a reservation."""
        return self.bound + self.assumed


def tally(unit: Unit, mirror: ClusterMirror, eligible: Callable[[Pod], bool], incoming: Pod | None = None) -> Tally:
    """Count the members of a unit, except `incoming`. `eligible`: whether this scheduler decides for a pending pod."""
    bound = assumed = excluded = terminating = 0
    pending = []
    for uid, pod in unit.group.members.items():
        if uid in unit.reserved or (incoming is not None and uid == incoming.uid):
            continue
        if pod.terminating:  # no API server binds it any more, although it may be assumed
            terminating += 1
        elif pod.node_name:
            bound += 1
        elif mirror.is_assumed(uid):
            assumed += 1
        elif uid in mirror.pending and not pod.waiting.gates and eligible(pod):
            pending.append(pod)
        else:
            excluded += 1
    pending.sort(key=lambda pod: (-pod.priority, pod.waiting.created, pod.name))
    return Tally(bound, assumed, pending, excluded + terminating, terminating)


def to_place(rule: Rule, counts: Tally, reserved: int, incoming: Pod | None = None) -> tuple[Sequence[Pod], int]:
    """Return the members to place together now, `incoming` first, and how many members are missing.

    If the minimum is scheduled or reserved, there are no members to place. A group that has started does not wait for
    missing members.
    """
    need = rule.minimum - counts.scheduled - reserved
    if need <= 0:
        return (), 0
    members = counts.pending if incoming is None else (incoming, *counts.pending)
    missing = need - len(members)
    if missing > 0 and not counts.scheduled:
        return (), missing
    return members[:need], 0


def order_of(unit: Unit, counts: Tally, incoming: Pod | None = None) -> Order:
    """Return the sort key of a waiting unit."""
    waiting = counts.pending if incoming is None else (incoming, *counts.pending)
    priority = max((pod.priority for pod in waiting), default=0)
    created = min((pod.waiting.created for pod in waiting), default="")
    return (not counts.scheduled, -priority, unit.timeouts, created, unit.group.key)


def waiting_text(rule: Rule, counts: Tally, missing: int) -> str:
    """Return why a unit cannot be tried yet, in one line, or the empty text if it can."""
    if rule.problem:
        return rule.problem
    if not missing:
        return ""
    excluded = f"; {counts.excluded} cannot be placed by this scheduler now" if counts.excluded else ""
    return f"waits for {missing} more member{'s' if missing > 1 else ''} of {rule.minimum}{excluded}"


def shortfall_text(shortfall: Shortfall) -> str:
    """Return why a gang does not fit, in one line."""
    proved = "" if shortfall.is_proved else "; not all other ways were tried"
    return (
        f"{shortfall.placed} of {shortfall.needed} members fit; the next one, {shortfall.pod.full_name}, does not: "
        f"{reasons_text(shortfall.verdicts)}{proved}"
    )


class PlacedBy(Enum):
    """Who places the members of a unit together."""

    KINDRED = "kindred"
    """The unit is a `kindred.dev/group`, or a PodGroup of scheduling.x-k8s.io."""
    KUBE_SCHEDULER = "kube-scheduler"
    """The unit is a PodGroup of scheduling.k8s.io."""


class SchedulingStatus(Enum):
    """The state of a unit. The admin port and the metric's label have these values."""

    PENDING = "pending"
    """Members are missing or have scheduling gates, or the minimum is unknown."""
    SCHEDULING = "scheduling"
    """All members exist, but not all fit, or no request has come for one yet."""
    RESERVED = "reserved"
    """Each member of the minimum has a place, and some have had no request since."""
    SCHEDULED = "scheduled"
    """The minimum is bound or decided for."""
    TIMED_OUT = "timed out"
    """Requests for members did not come in time, so the places were released. The next request places the unit anew."""


class PackingStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How close together the members of a unit are placed: the setting and the result."""

    way: PackingWay = PackingWay.SPREAD
    topology_key: str = ""
    """Set for `near`, else empty."""
    problem: str = ""
    """Why the annotations are not followed, in one line. The unit is then placed as `spread`."""
    nodes: int = 0
    """Nodes of the members that are bound, decided for or reserved, and are not terminating."""
    domains: int | None = None
    """Domains of these nodes. A node without the label is its own domain. None without a topology key."""


class UnitStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A unit with its members by state. Ages are in seconds, and None if the state never occurred."""

    unit: str
    """NAMESPACE/NAME. In Kubernetes 1.35, a unit of kube-scheduler is NAMESPACE/WORKLOAD/PODGROUP[/KEY]."""
    status: SchedulingStatus
    placed_by: PlacedBy = PlacedBy.KINDRED
    reason: str = ""
    """Why the unit waits, in one line. Empty if it does not wait."""
    minimum: int = 0
    """Members that are placed together, or 0 if unknown."""
    timeout: float = 0.0
    """Seconds for which places stay reserved."""
    members: int = 0
    pending: int = 0
    """Members with neither a node nor a place, without terminating ones."""
    reserved: int = 0
    """Members with a place and no request since."""
    assumed: int = 0
    """Members that are decided for and that the watch has not shown bound yet."""
    bound: int = 0
    """Without terminating members."""
    terminating: int = 0
    ended: int = 0
    """Members that had a node and were deleted or have ended, since the group first had a member.

    Kindred counts them, the attempts and the times only for units that it places itself.
    """
    priority: int = 0
    attempts: int = 0
    """How many times placement was tried."""
    asked: float | None = None
    """Age of the first request for a member."""
    reserved_since: float | None = None
    scheduled_since: float | None = None
    timed_out_since: float | None = None
    packing: PackingStatus | None = PackingStatus()
    """None if kube-scheduler places the unit."""
    conditions: Sequence[GroupCondition] = ()
    """The conditions of a PodGroup of scheduling.k8s.io. No decision reads them."""


def status_of(unit: Unit, counts: Tally, rule: Rule, packing: PackingStatus, now: float) -> UnitStatus:
    """Return the status of a unit."""
    _, missing = to_place(rule, counts, len(unit.reserved))
    status = _scheduling_status(unit, counts, rule, missing)
    reason = waiting_text(rule, counts, missing) if status is SchedulingStatus.PENDING else unit.reason
    members = len(unit.group.members)
    return UnitStatus(
        unit=unit.group.key,
        status=status,
        reason="" if status in {SchedulingStatus.RESERVED, SchedulingStatus.SCHEDULED} else reason,
        minimum=rule.minimum,
        timeout=rule.timeout,
        members=members,
        pending=members - counts.scheduled - len(unit.reserved) - counts.terminating,
        reserved=len(unit.reserved),
        assumed=counts.assumed,
        bound=counts.bound,
        terminating=counts.terminating,
        ended=unit.group.ended,
        priority=max((pod.priority for pod in unit.group.members.values()), default=0),
        attempts=unit.attempts,
        asked=_age(unit.requested_at, now),
        reserved_since=_age(unit.reserved_at, now) if unit.reserved else None,
        scheduled_since=_age(unit.scheduled_at, now) if status is SchedulingStatus.SCHEDULED else None,
        timed_out_since=_age(unit.timed_out_at, now),
        packing=packing,
    )


def packing_of(unit: Unit, mirror: ClusterMirror) -> PackingStatus:
    """Return the packing that a unit requests, and the numbers of nodes and domains of its members."""
    packing, names = unit.group.packing(mirror.objects(PodGroup)), unit.nodes(mirror)
    domains = None
    if packing.topology_key:
        nodes = (info.node for name in names if (info := mirror.nodes.infos.get(name)) is not None)
        values = [None if node is None else node.labels.get(packing.topology_key) for node in nodes]
        domains = len({*values} - {None}) + values.count(None)
    return _packing(packing, nodes=len(names), domains=domains)


def status_without_members(group: PodGroup) -> UnitStatus:
    """Return the status of a PodGroup without members."""
    return UnitStatus(
        unit=group.full_name,
        status=SchedulingStatus.PENDING,
        reason="has no members",
        minimum=group.minimum,
        packing=_packing(group.packing),
    )


def _packing(packing: Packing, nodes: int = 0, domains: int | None = None) -> PackingStatus:
    return PackingStatus(
        way=packing.way, topology_key=packing.topology_key, problem=packing.problem, nodes=nodes, domains=domains
    )


def _scheduling_status(unit: Unit, counts: Tally, rule: Rule, missing: int) -> SchedulingStatus:
    if rule.problem:
        return SchedulingStatus.PENDING
    if counts.scheduled >= rule.minimum:
        return SchedulingStatus.SCHEDULED
    if unit.reserved:
        return SchedulingStatus.RESERVED
    if unit.is_timed_out:
        return SchedulingStatus.TIMED_OUT
    return SchedulingStatus.PENDING if missing else SchedulingStatus.SCHEDULING


def _age(at: float | None, now: float) -> float | None:
    return None if at is None else now - at
