"""Labels that differ by a typo, or whose key has been renamed."""

import re
from functools import lru_cache
from typing import Final

_separators: Final = re.compile("[-_.]")
_LONGEST: Final = 317
"""Characters of the longest key of a label. A pod that is only asked about may have longer ones."""
_LONG: Final = 4
"""Shorter texts with one letter more or less are often other words."""
_SAME: Final = ({"", "true"}, {"true", "yes"}, {"false", "no"}, {"amd64", "x86_64"}, {"arm64", "aarch64"})
"""Values that are written for one another."""

RENAMED: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "node-role.kubernetes.io/master": "node-role.kubernetes.io/control-plane",
}
"""Source: k8s.io/api core/v1 well_known_labels.go, and KEP-2067 for the last."""


def mistaken_key(written: str, there: str) -> bool:
    """Return whether a key is probably meant to be another one, which nodes have."""
    return RENAMED.get(written) == there or mistaken(written, there)


def mistaken_value(written: str, there: str) -> bool:
    """Return whether a value is probably meant to be another one, which nodes have."""
    return mistaken(written, there) or any({written, there} == each for each in _SAME)


def mistaken(written: str, there: str) -> bool:
    """Return whether two different texts differ by a typo.

    They differ in case or separators, in one letter more or less, in two neighbours that changed places, or in a letter
    that was repeated instead of its neighbour. Digits tell names apart (zone-1, zone-2), and so does a letter in place
    of another one (eu-1a, eu-1b).
    """
    return max(len(written), len(there)) <= _LONGEST and _mistaken(written, there)


@lru_cache(maxsize=1024)  # many nodes have the same labels
def _mistaken(written: str, there: str) -> bool:
    one, other = (_separators.sub("", each.casefold()) for each in (written, there))
    if written == there or not one or not other:
        return False
    if one == other:
        return True
    start = next((at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), None)
    start = min(len(one), len(other)) if start is None else start
    left, right = one[start:], other[start:]
    if abs(len(one) - len(other)) == 1:
        longer, shorter = (left, right) if len(left) > len(right) else (right, left)
        return longer[1:] == shorter and not longer[0].isdigit() and min(len(one), len(other)) >= _LONG
    if len(one) != len(other) or left[0].isdigit() or right[0].isdigit():
        return False
    if left[2:] == right[2:] and left[:2] == right[:2][::-1]:
        return True
    around = one[max(start - 1, 0) : start] + left[1:2]
    return left[1:] == right[1:] and (left[0] in around or right[0] in around)
