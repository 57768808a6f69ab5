"""The claims whose devices wait to be bound.

The mirror has no clock, so a claim does not become unbindable by itself. A caller with a clock marks it. The mark is a
change of the object like any other, with its generation and its invalidations.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from core.mirror.changes import ObjectChange
from core.mirror.cluster import ClusterMirror
from core.objects.devices import ResourceClaim


class WaitingClaims:
    """The claims with devices that must be bound by some time. A derived state."""

    hears: Final = (ObjectChange,)

    def __init__(self, mirror: ClusterMirror) -> None:
        self._waiting: dict[str, tuple[float, ResourceClaim]] = {}
        for claim in mirror.objects(ResourceClaim).values():
            self._see(claim)

    def changed(self, change: ObjectChange) -> None:
        """Take over a change of a claim."""
        if change.kind is ResourceClaim:
            if change.before is not None:
                self._waiting.pop(change.before.full_name, None)
            if change.after is not None:
                self._see(change.after)

    def _see(self, claim: ResourceClaim) -> None:
        allocation = claim.allocation
        if allocation is not None and allocation.binds_until is not None and not allocation.unbindable:
            self._waiting[claim.full_name] = allocation.binds_until, claim

    def overdue(self, now: float) -> Sequence[ResourceClaim]:
        """Return the claims whose devices are not bound in time, marked as such. The caller must update the mirror.

        `now` is in seconds since 1970.
        """
        late = [claim for until, claim in self._waiting.values() if until < now]
        return [replace(each, allocation=replace(each.allocation, unbindable=True)) for each in late if each.allocation]
