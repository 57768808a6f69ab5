"""The plugins that reject each node of a decision, and the requests of nominated pods."""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Final

import msgspec
import numpy as np

from core.diagnosis.amounts.resources import measured_resources
from core.diagnosis.amounts.volumes import claim_users
from core.diagnosis.diagnosis import Diagnosis
from core.mirror.node_info import NO_SLOT
from core.mirror.topology import BoolArray, Int64Array, IntpArray
from core.objects.pod import Pod
from core.plugins.noderesources.columns import PODS


class Room(msgspec.Struct, frozen=True):
    """The free amount of a resource by node, less nominated pods, and whether it is too little for the pod."""

    resource: str
    asked: int
    free: Int64Array
    short: BoolArray


class Obstacles:
    """The plugins that reject each node, each judged independently, with and without the nominated pods."""

    def __init__(self, decision: Diagnosis) -> None:
        self.decision: Final = decision
        refused = {name: codes.copy() for name, codes in decision.refusing.items()}
        for position, refusal in decision.refused_beside.items():
            refused.setdefault(refusal.failure.plugin, np.zeros(len(decision.batch), np.bool_))[position] = True
        self.refused: Final[Mapping[str, BoolArray]] = refused
        self.number: Final[Int64Array] = sum(
            (each.astype(np.int64) for each in refused.values()), np.zeros(len(decision.batch), np.int64)
        )
        """Number of plugins that reject each node."""

    def only(self, plugins: Collection[str]) -> IntpArray:
        """Return the known nodes that only plugins among these reject."""
        these = sum(
            (each.astype(np.int64) for name, each in self.refused.items() if name in plugins),
            np.zeros(len(self.number), np.int64),
        )
        known = self.decision.known
        found: IntpArray = known[(these[known] > 0) & (these[known] == self.number[known])]
        return found

    def some_of(self, positions: IntpArray, number: int) -> Sequence[int]:
        """Return up to `number` of these nodes, at equal distances, because neighbours are often alike."""
        places = np.linspace(0, len(positions) - 1, min(len(positions), number)).astype(np.intp)
        chosen: list[int] = positions[places].tolist()
        return chosen

    def of(self, position: int) -> Sequence[str]:
        """Return the plugins that reject a node, in the order of the profile."""
        names = (plugin.name for plugin in self.decision.profile.filters)
        return [name for name in names if name in self.refused and self.refused[name][position]]

    def rooms(self, positions: IntpArray) -> Sequence[Room]:
        """Return the free amounts of `pods`, then of the pod's resources. Empty without nodes."""
        if not len(positions):
            return ()
        found = []
        for each in measured_resources(self.decision, self.decision.batch.part(positions)):
            free = each.allocatable - each.in_use
            left = (free < each.asked) & ~each.short  # NodeResourcesFit leaves these resources to devices
            for place in np.flatnonzero(np.isin(positions, [*self._nominated])).tolist():
                free[place] -= self._nominated[int(positions[place])].get(each.resource, 0)
            found.append(Room(each.resource, each.asked, free, (free < each.asked) & ~left))
        return found

    @cached_property
    def claim_users(self) -> Mapping[str, Sequence[Pod]]:
        """The pods that use each ReadWriteOncePod claim of the pod, see `claim_users`."""
        return claim_users(self.decision)

    @cached_property
    def _nominated(self) -> Mapping[int, Mapping[str, int]]:
        """Position -> the requests of the nominated pods that count on that node."""
        decision, mirror = self.decision, self.decision.mirror
        slots = [mirror.nodes.slots.get(name, NO_SLOT) for name in mirror.pending.nominated]
        found: dict[int, dict[str, int]] = {}
        for position in np.flatnonzero(np.isin(decision.batch.slots, [each for each in slots if each >= 0])).tolist():
            taken = found.setdefault(position, {})
            for pod in decision.nominated_beside(position):
                for resource, amount in {**mirror.counted(pod).requests, PODS: 1}.items():
                    taken[resource] = taken.get(resource, 0) + amount
        return found
