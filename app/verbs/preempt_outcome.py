"""How a call of the verb `preempt` ended."""

from enum import Enum
from typing import NamedTuple


class PreemptOutcome(Enum):
    """What a call was answered with; the values are those of the metric's label."""

    CANDIDATES = "candidates"
    """At least one node where preemption helps."""
    NONE = "none"
    """No node at all, so that nobody is preempted."""
    INVALID = "invalid"
    """The arguments could not be read."""
    OFF = "off"
    """The verb is switched off."""


class PreemptResult(NamedTuple):
    """What a call was answered with."""

    outcome: PreemptOutcome
    added_nodes: int = 0
    """Nodes in the answer that were not offered."""
