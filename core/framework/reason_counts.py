"""How many nodes have each reason, as one line."""

from typing import Final

import numpy as np

from core.framework.interface import Verdicts
from core.framework.status import Status

_MAX_REASONS: Final = 20


def status_counts(verdicts: Verdicts) -> list[tuple[Status, int]]:
    """Return each status with the number of nodes that have it."""
    counts = np.bincount(verdicts.codes, minlength=len(verdicts.statuses)).tolist()
    return [(status, nodes) for status, nodes in zip(verdicts.statuses, counts, strict=True) if nodes]


def reasons_text(verdicts: Verdicts) -> str:
    """Return how many nodes have each reason, most frequent first: `4990 Insufficient cpu, 10 ...`."""
    by_reason: dict[str, int] = {}
    for status, nodes in status_counts(verdicts):
        for reason in status.reasons:
            by_reason[reason] = by_reason.get(reason, 0) + nodes
    most = sorted(by_reason.items(), key=lambda each: (-each[1], each[0]))
    told = [f"{nodes} {reason}" for reason, nodes in most[:_MAX_REASONS]]
    if len(most) > _MAX_REASONS:
        told.append(f"and {len(most) - _MAX_REASONS} reasons more")
    return ", ".join(told)
