"""Which requests to the admin port only read. The token for reading is enough for them."""

import re
from typing import Final

_METHODS: Final = frozenset({"GET", "HEAD"})
_ASKED_BY_POST: Final = re.compile(r"/explain(/nodes|/manifest)?")
"""Paths whose POST requests are queries, which change nothing."""


def is_reading(method: str, path: str) -> bool:
    """Return whether a request changes nothing. Unknown requests count as changes."""
    return method in _METHODS or (method == "POST" and _ASKED_BY_POST.fullmatch(path) is not None)
