"""Verdicts of plugins, in upstream's terms (k8s.io/kube-scheduler framework Code and Status)."""

from enum import IntEnum
from typing import Final

import msgspec

from core.objects.go_format import shortened


class Code(IntEnum):
    """How a plugin ended for a pod, or for a pod on a node."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    """Removing pods (preemption) may help."""
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    """Nothing that preemption does can help."""
    SKIP = 4
    """The plugin has nothing to say about this pod: filtered by it, every node passes; scored by it, all get 0."""

    @property
    def label(self) -> str:
        """Go's spelling, `UnschedulableAndUnresolvable`."""
        return "".join(part.capitalize() for part in self.name.split("_"))


class Status(msgspec.Struct, frozen=True, gc=False):
    """A code with its reasons, in upstream's order; no reasons on success."""

    code: Code
    reasons: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """The reasons as one text, joined as upstream joins them; a long text is cut short, as each node gets it."""
        return shortened(", ".join(self.reasons))


SUCCESS: Final = Status(Code.SUCCESS)
SKIP: Final = Status(Code.SKIP)
