"""The supported minor releases of Kubernetes, and the nearest of them to a given version."""

import re
from typing import Final, NamedTuple


class Release(NamedTuple):
    """A minor release of Kubernetes."""

    major: int
    minor: int

    def __str__(self) -> str:
        """Return the release in its usual form, such as 1.37."""
        return f"{self.major}.{self.minor}"


RELEASES: Final = (Release(1, 34), Release(1, 35), Release(1, 36), Release(1, 37))
"""The supported releases, oldest first."""
DEFAULT_RELEASE: Final = RELEASES[0]
"""The release to apply if none is given: the oldest one.

Kindred applied the rules of this release before it distinguished releases. A dump or a recorded decision without a
release is from that time, and must be evaluated by these rules.
"""

_number: Final = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})(?![0-9])")


class Nearest(NamedTuple):
    """The supported release that is nearest to a given version. `exact` is true if both are the same."""

    release: Release
    exact: bool
    text: str


def nearest(text: str) -> Nearest:
    """Return the nearest supported release for a version such as `v1.36.3`, `1.36+` or `v1.33.5-eks-1a2b`.

    The part after the minor version is ignored. A version older or newer than all supported releases gives the oldest
    or the newest one. A text without a version gives DEFAULT_RELEASE.
    """
    found = _number.match(text.strip())
    if found is None:
        return Nearest(DEFAULT_RELEASE, exact=False, text=text)
    said = Release(int(found[1]), int(found[2]))
    if said in RELEASES:
        return Nearest(said, exact=True, text=text)
    return Nearest(RELEASES[0] if said < RELEASES[0] else RELEASES[-1], exact=False, text=text)
