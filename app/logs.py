"""Logging: one line an event on standard error, by the standard library."""

import logging


def configure(level: str) -> None:
    """Log from `level` on. Requests are not logged: at thousands a second that would cost more than the decisions."""
    logging.basicConfig(level=level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True)
    # Uvicorn's four lines at start say less than our own one.
    logging.getLogger("uvicorn").setLevel(max(logging.WARNING, logging.getLogger().level))
