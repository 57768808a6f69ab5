"""The demo cluster and its requests, as package data, for trying `kindred`."""

import re
from datetime import UTC, datetime
from importlib import resources
from typing import Final

DEMO: Final = resources.files("app") / "demo"
_TAKEN: Final = datetime(2025, 10, 6, 2, 18, tzinfo=UTC)
"""The moment of the dump. Its pods have waited for 3, 6 and 9 minutes."""
_TIME: Final = re.compile(rb"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def demo_cluster(now: float) -> bytes:
    """Return the dump of the demo cluster, as if it was taken at `now`, which is in seconds since 1970."""
    passed = datetime.fromtimestamp(int(now), UTC) - _TAKEN

    def moved(time: re.Match[bytes]) -> bytes:
        return f"{datetime.fromisoformat(time[0].decode()) + passed:%Y-%m-%dT%H:%M:%SZ}".encode()

    return _TIME.sub(moved, (DEMO / "cluster.json").read_bytes())
