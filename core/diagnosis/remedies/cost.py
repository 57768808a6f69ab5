"""A rough order of remedies, by how likely an operator is to choose each."""

from collections.abc import Mapping, Sequence
from typing import Final

from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.remedies.remedy import Kind, LowerRequest, RemovePod, Step, TolerateTaint
from core.diagnosis.remedies.supposing import NODE_CONDITIONS

_OF_KIND: Final[Mapping[Kind, int]] = {
    Kind.LOWER_REQUESTS: 0,
    Kind.UNCORDON_NODE: 20,
    Kind.TOLERATE_TAINTS: 30,
    Kind.RAISE_MAX_SKEW: 30,
    Kind.CHANGE_HOST_PORTS: 30,
    Kind.RELAX_SPREAD: 40,
    Kind.DROP_NODE_NAME: 40,
    Kind.RUN_POD: 50,
    Kind.LABEL_NODE: 40,
    Kind.DROP_REQUIREMENTS: 50,
    Kind.COMBINED: 50,
    Kind.REMOVE_POD: 60,
    Kind.ADD_NODE: 80,
}
_OF_MORE_STEPS: Final = 20
_OF_UNWELL_NODE: Final = 60
"""Cost of tolerating a taint of node.kubernetes.io: the node is not ready, or short of a resource."""
_OF_WHOLE_REQUEST: Final = 100
_OF_FORBIDDEN_EVICTION: Final = 30


def cost(decision: Diagnosis, kind: Kind, steps: Sequence[Step]) -> int:
    """Return the cost of the steps: of the kind, of each step after the first, and of the reduced share of requests."""
    found = _OF_KIND[kind] + _OF_MORE_STEPS * (len(steps) - 1)
    requests = decision.mirror.counted(decision.pod).requests
    for step in steps:
        if isinstance(step, LowerRequest):
            found += _OF_WHOLE_REQUEST * step.by // max(requests.get(step.resource, 0), 1)
        elif isinstance(step, TolerateTaint) and step.key.startswith(NODE_CONDITIONS):
            found += _OF_UNWELL_NODE
        elif isinstance(step, RemovePod) and step.budgets:
            found += _OF_FORBIDDEN_EVICTION
    return found
