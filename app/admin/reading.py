"""Which requests to the admin port only read, and so are for the bearer of the token for reading, too."""

import re
from typing import Final

_METHODS: Final = frozenset({"GET", "HEAD"})
_ASKED_BY_POST: Final = re.compile(r"/explain(/nodes|/manifest)?|/debug/decisions/[^/]+/replay")
"""Their bodies are questions: nothing is changed by them."""


def is_reading(method: str, path: str) -> bool:
    """Tell whether a request leaves everything as it is. What is not known to is taken to change something."""
    return method in _METHODS or (method == "POST" and _ASKED_BY_POST.fullmatch(path) is not None)
