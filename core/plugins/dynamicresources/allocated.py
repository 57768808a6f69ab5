"""What claims have of devices."""

from collections import Counter
from collections.abc import Sequence

from core.objects.devices import AllocatedDevice, ResourceClaim


class Shares:
    """What several claims consume of a shared device. `consumed` is None if no claim states an amount."""

    __slots__ = ("amounts", "holders", "stating")

    def __init__(self) -> None:
        self.holders = 0
        self.stating = 0
        self.amounts: Counter[str] = Counter()

    @property
    def consumed(self) -> tuple[tuple[str, int], ...] | None:
        """The sums of the consumed amounts."""
        return tuple(sorted(self.amounts.items())) if self.stating else None


def devices_had_by(claim: ResourceClaim | None) -> Sequence[AllocatedDevice]:
    """Return the devices that a claim has, but those with admin access, which others may have, too."""
    allocation = None if claim is None else claim.allocation
    return [] if allocation is None else [each for each in allocation.devices if not each.admin_access]
