"""Verdicts of plugins, in upstream's terms (k8s.io/kube-scheduler framework Code and Status)."""

from enum import IntEnum
from typing import Final

import msgspec

from core.objects.go_format import shortened


class Code(IntEnum):
    """The result code of a plugin for a pod, or for a pod on a node."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    """Removing pods (preemption) may help."""
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    """Preemption cannot help."""
    SKIP = 4
    """The plugin does not apply to this pod: as a filter it passes every node, as a score it gives all nodes 0."""

    @property
    def label(self) -> str:
        """The code in Go's spelling, such as `UnschedulableAndUnresolvable`."""
        return "".join(part.capitalize() for part in self.name.split("_"))


class Status(msgspec.Struct, frozen=True, gc=False):
    """A code with its reasons, in upstream's order. Success has no reasons."""

    code: Code
    reasons: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """The reasons as one text, joined as upstream does. A long text is truncated, because each node gets a copy."""
        return shortened(", ".join(self.reasons))


SUCCESS: Final = Status(Code.SUCCESS)
SKIP: Final = Status(Code.SKIP)
