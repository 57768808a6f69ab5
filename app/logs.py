"""Logging: one line an event on standard error, by the standard library."""

import logging
from typing import Final

_LONGEST: Final = 2000  # characters of a request's own words in one message


def configure(level: str) -> None:
    """Log from `level` on. Requests are not logged: at thousands a second that would cost more than the decisions."""
    logging.basicConfig(level=level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True)
    # Uvicorn's four lines at start say less than our own one.
    logging.getLogger("uvicorn").setLevel(max(logging.WARNING, logging.getLogger().level))


def one_line(text: str) -> str:
    """Return a text that came with a request as part of a log line: no line breaks or control characters, not long."""
    shown = text[:_LONGEST] + ("..." if len(text) > _LONGEST else "")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in shown)
