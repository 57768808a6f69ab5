"""The known minor releases of Kubernetes, and the nearest of them to a version that somebody says."""

import re
from typing import Final, NamedTuple


class Release(NamedTuple):
    """A minor release of Kubernetes."""

    major: int
    minor: int

    def __str__(self) -> str:
        """Return the release as people write it: 1.37."""
        return f"{self.major}.{self.minor}"


RELEASES: Final = (Release(1, 34), Release(1, 35), Release(1, 36), Release(1, 37))
"""The known releases, oldest first."""
DEFAULT_RELEASE: Final = RELEASES[0]
"""What is answered for where nothing says a release.

It is the oldest known one, whose answers were given before releases were told apart: a dump or a recorded decision that
says nothing is from that time, and has to be answered as it was.
"""

_number: Final = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})(?![0-9])")


class Nearest(NamedTuple):
    """The known release that is nearest to what somebody said. `exact` tells whether it is the one that was said."""

    release: Release
    exact: bool
    text: str


def nearest(text: str) -> Nearest:
    """Return the known release for a version such as `v1.36.3`, `1.36+` or `v1.33.5-eks-1a2b`.

    What follows the minor version does not count. For an older or a newer release than all that are known, it is the
    oldest or the newest one; for a text without a version, DEFAULT_RELEASE.
    """
    found = _number.match(text.strip())
    if found is None:
        return Nearest(DEFAULT_RELEASE, exact=False, text=text)
    said = Release(int(found[1]), int(found[2]))
    if said in RELEASES:
        return Nearest(said, exact=True, text=text)
    return Nearest(RELEASES[0] if said < RELEASES[0] else RELEASES[-1], exact=False, text=text)
