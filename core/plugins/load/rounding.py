"""Rounding as Go's math.Round: half away from zero. All amounts here are 0 or more."""

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from core.mirror.topology import Int64Array

Float64Array: TypeAlias = NDArray[np.float64]

_HALF: Final = 0.5


def rounded(amount: float) -> int:
    """Return the nearest integer."""
    whole = int(amount)
    return whole + (amount - whole >= _HALF)  # not int(amount + 0.5), whose sum may round up


def rounded_all(amounts: Float64Array) -> Int64Array:
    """Return the nearest integers."""
    whole = np.floor(amounts)
    return (whole + (amounts - whole >= _HALF)).astype(np.int64)  # as above
