"""How long the reflectors wait."""

import random
import time
from collections.abc import Callable

import msgspec


class Timing(msgspec.Struct, frozen=True):
    """The waits of the reflectors, in seconds. The defaults are client-go's where it has them, but one."""

    backoff_first: float = 0.8
    backoff_longest: float = 10.0
    """client-go: 30. Under faults every few seconds, client-go's value left the mirror without a watch for up to a
    minute, and sometimes stale. The few replicas of Kindred are no load for an API server."""
    probe_every: float = 1.0
    """While most resources fail, one request of all of them together so often, less up to a quarter of jitter."""
    wake_gap: float = 0.05
    """Between two retries when the server answers again, with jitter of up to half of it either way."""
    watch_timeout: int = 300
    """A watch asks the server to end it after this time, up to twice as long, so that not all end at once."""
    shortest_watch: float = 1.0
    """A watch that ends sooner, without events, is an error; one with events is not resumed sooner."""
    initial_events: float = 120.0
    """Longest wait for the end of the initial events: a server that does not know WatchList never tells it."""
    memory: float = 30.0
    """Shortest wait after a sync that there was no memory for, as it has cost seconds of CPU for nothing."""
    absent: float = 300.0
    """Between two looks for a resource that the server does not have. Only an upgrade brings it."""
    clock: Callable[[], float] = time.monotonic
    random: Callable[[], float] = random.random
    """Numbers in [0, 1), for jitter."""
