"""Scores from 0 to 100: the normalisation that most plugins use, and how all of them map many scores at once.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/helper/normalize_score.go (DefaultNormalizeScore).
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from core.mirror.topology import Float64Array, Int64Array

MAX_NODE_SCORE = 100
"""The highest normalised score (upstream MaxNodeScore)."""
NOT_SCORED: Final = -(2**62)
"""Raw score of a node that a plugin excludes from normalisation. The node gets 0."""
_HALF: Final = 0.5
FEW: Final = 256


def mapped(raw: Int64Array, lowest: int, highest: int, scale: Callable[[Int64Array], Int64Array]) -> Int64Array:
    """Return `scale` of the scores. All are in `lowest` to `highest`. `scale` maps each score by itself.

    If there are fewer possible scores than nodes, each possible score is mapped once: 6 us for 5,000 nodes, against 13
    us for a division of all. Of few nodes, or groups of them, a division of all takes half of the calls.
    """
    if len(raw) <= FEW or highest - lowest >= len(raw):
        return scale(raw)
    return scale(np.arange(lowest, highest + 1)).take(raw - lowest)


def rounded(amount: float) -> int:
    """Return the nearest integer to an amount from 0 on, halves up, like Go's math.Round."""
    whole = int(amount)
    return whole + (amount - whole >= _HALF)  # not int(amount + 0.5), whose sum may round up


def rounded_all(amounts: Float64Array) -> Int64Array:
    """Return the nearest integers, halves up."""
    whole = np.floor(amounts)
    return (whole + (amounts - whole >= _HALF)).astype(np.int64)  # as above


def default_normalize(raw: Int64Array, *, reverse: bool = False) -> Int64Array:
    """Scale raw scores so that the highest becomes MAX_NODE_SCORE. `reverse` subtracts each result from MAX_NODE_SCORE.

    If the highest score is 0, scores stay unchanged, or become MAX_NODE_SCORE in reverse. Upstream assumes without a
    check that no score is negative. Here negative scores give the same results as upstream's arithmetic.
    """
    highest = int(raw.max(initial=0))
    if not highest:
        return np.full_like(raw, MAX_NODE_SCORE) if reverse else raw
    return mapped(raw, int(raw.min()), highest, lambda scores: _scaled(scores, highest, reverse=reverse))


def _scaled(raw: Int64Array, highest: int, *, reverse: bool) -> Int64Array:
    product = MAX_NODE_SCORE * raw
    scaled: Int64Array = (product - np.fmod(product, highest)) // highest  # truncated as in Go, not rounded down
    return MAX_NODE_SCORE - scaled if reverse else scaled
