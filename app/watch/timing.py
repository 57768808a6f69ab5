"""The waits of the reflectors."""

import random
import time
from collections.abc import Callable

import msgspec


class Timing(msgspec.Struct, frozen=True):
    """The waits of the reflectors, in seconds. Defaults are client-go's, if it has them, except `backoff_longest`."""

    backoff_first: float = 0.8
    backoff_longest: float = 10.0
    """client-go: 30. With faults every few seconds, client-go's value left the mirror without a watch for up to a
    minute, and sometimes stale. The few replicas of Kindred are no load for an API server."""
    probe_every: float = 1.0
    """Time between two requests of all resources together while most of them fail, less up to a quarter of jitter."""
    wake_gap: float = 0.05
    """Time between two retries after the server has recovered, with jitter of up to half of it either way."""
    watch_timeout: int = 300
    """Requested duration of a watch: from this time to twice as long, so that not all watches end at once."""
    shortest_watch: float = 1.0
    """A watch without events that ends sooner is an error. A watch with events is not resumed sooner."""
    initial_events: float = 120.0
    """Longest wait for the end of the initial events. A server without WatchList never sends it."""
    memory: float = 30.0
    """Shortest wait after a sync that failed for lack of memory, because it wasted seconds of CPU."""
    absent: float = 300.0
    """Time between two checks for a resource that the server lacks. Only an upgrade can add it."""
    clock: Callable[[], float] = time.monotonic
    random: Callable[[], float] = random.random
    """Numbers in [0, 1), for jitter."""
