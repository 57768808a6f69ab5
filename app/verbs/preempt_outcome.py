"""The outcome of a call of the verb `preempt`."""

from enum import Enum
from typing import NamedTuple


class PreemptOutcome(Enum):
    """The outcome of a call. Also the values of the metric's label."""

    CANDIDATES = "candidates"
    """Preemption helps on at least one node."""
    NONE = "none"
    """No node at all, so that no pod is preempted."""
    INVALID = "invalid"
    """The arguments could not be read."""
    OFF = "off"
    """The verb is switched off."""


class PreemptResult(NamedTuple):
    """The response to a call, in numbers."""

    outcome: PreemptOutcome
    added_nodes: int = 0
    """Nodes in the response that were not offered."""
