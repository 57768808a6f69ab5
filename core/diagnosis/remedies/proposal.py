"""A proposal of a remedy, which is not tried out yet."""

from collections.abc import Sequence
from typing import Final

import msgspec

from core.diagnosis.remedies.remedy import Kind, Step

MAX_STEPS: Final = 8
"""Steps of a remedy. With more steps it would be another pod, or another cluster."""


class Proposal(msgspec.Struct, frozen=True):
    """Steps that should make the pod fit on a node."""

    kind: Kind
    node: str
    steps: Sequence[Step]
