"""A proposal of a remedy that has not been tried yet."""

from collections.abc import Sequence
from typing import Final

import msgspec

from core.diagnosis.remedies.remedy import Kind, Step

MAX_STEPS: Final = 8
"""How many steps a remedy may have. More steps would make it another pod, or another cluster."""


class Proposal(msgspec.Struct, frozen=True):
    """Steps that should make the pod fit on a node."""

    kind: Kind
    node: str
    steps: Sequence[Step]
