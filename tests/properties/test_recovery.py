"""The law of recovery: 3 s after the API server is well again all resources are followed, and it was never stormed.

Random sequences of faults befall a simulated server, in virtual time. A resource is followed as `followed_at` of its
state has it: a watch stands open, and has for a second, or has told something.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeAlias

import msgspec
import pytest

from app.api_server.client import ApiError, ConnectionFailedError, StatusError
from app.feeds.freshness import ResourceState
from app.feeds.retry import Timing
from app.feeds.watcher import Watcher
from app.objects.resources import RESOURCES
from tests.app.feeds.following import MirrorOnly
from tests.app.feeds.simulated_server import Ending, SimulatedServer
from tests.depth import tries
from tests.virtual_time import run_in_virtual_time

SEQUENCES: Final = tries(default=100, full=300)
MAX_SECONDS: Final = 3.0
WINDOW: Final = 3.0  # seconds
RETRIES: Final = 15  # a second
PROBES: Final = 2
PATIENCE: Final = 60.0  # seconds
MEAN_GAP: Final = 5.0  # seconds between two faults
CUT: Final = ConnectionFailedError("peer closed connection")
REJECTED: Final = ConnectionFailedError("Connection refused")
ENDINGS: Final[tuple[Ending, ...]] = (None, CUT)


def status(code: int, retry_after: float | None = None) -> StatusError:
    """Return a refusal."""
    return StatusError(code, "Reason", "message", retry_after)


def error_event(code: int) -> bytes:
    """Return the line of a watch that ends it."""
    found = {"kind": "Status", "code": code, "reason": "Reason", "message": "message"}
    return msgspec.json.encode({"type": "ERROR", "object": found}) + b"\n"


REJECTIONS: Final = (status(500), status(503), status(429, 1.0), status(401), status(403))
"""Retry-After is 1 s, as that of priority and fairness is at first: a longer one is kept, and then takes longer."""
BREAKS: Final[tuple[Ending, ...]] = (*ENDINGS, b"<html>502 Bad Gateway</html>\n", error_event(410), error_event(500))


@contextmanager
def refusing(server: SimulatedServer, rejection: Callable[[str], ApiError | None]) -> Iterator[None]:
    """Refuse requests in the block."""
    server.rejection = rejection
    try:
        yield
    finally:
        server.rejection = lambda _: None


def duration(chance: random.Random) -> float:
    """Return the seconds of a short fault, or of a long one."""
    return chance.uniform(0.2, 3.0) if chance.random() < 0.5 else chance.uniform(3.0, 60.0)


def some_paths(server: SimulatedServer, least: int) -> list[str]:
    """Return some of the resources that are watched, or all."""
    paths = sorted({watch.path for watch in server.watches})
    return server.chance.sample(paths, server.chance.randint(min(least, len(paths)), len(paths)))


async def no_server(server: SimulatedServer) -> None:
    """Refuse connections."""
    with server.unwell(), refusing(server, lambda _: REJECTED):
        server.end(server.chance.choice(ENDINGS))
        await asyncio.sleep(duration(server.chance))


async def silence(server: SimulatedServer) -> None:
    """Lose all packets."""
    with server.unwell():
        server.is_silent = True
        server.end(CUT)
        await asyncio.sleep(duration(server.chance))
        server.is_silent = False


async def rejections(server: SimulatedServer) -> None:
    """Refuse all requests with one status."""
    error = server.chance.choice(REJECTIONS)
    with server.unwell(), refusing(server, lambda _: error):
        server.end(server.chance.choice(ENDINGS))
        await asyncio.sleep(duration(server.chance))


async def rejections_of_new_requests(server: SimulatedServer) -> None:
    """Refuse all requests, while watches that are open go on, but for two of them or more."""
    error = server.chance.choice(REJECTIONS)
    with server.unwell(), refusing(server, lambda _: error):
        for path in some_paths(server, 2):
            server.end(CUT, path)
        await asyncio.sleep(duration(server.chance))


async def some_rejections(server: SimulatedServer) -> None:
    """Refuse so many requests, and no more."""
    left = server.chance.randint(1, 10) * [server.chance.choice(REJECTIONS)]
    over = asyncio.Event()

    def rejection(_: str) -> ApiError | None:
        if not left:
            over.set()
        return left.pop() if left else None

    with refusing(server, rejection):
        server.end(server.chance.choice(ENDINGS))
        await over.wait()


async def one_of_several_servers(server: SimulatedServer) -> None:
    """Refuse each request with a chance of one half, as a load balancer with a server that is broken."""
    with refusing(server, lambda _: server.chance.choice((status(503), None))):
        server.end(CUT)
        await asyncio.sleep(duration(server.chance))


async def accepted_and_closed(server: SimulatedServer) -> None:
    """Close each watch as soon as it is accepted."""
    with server.unwell():
        server.breaks = True
        server.end(None)
        await asyncio.sleep(duration(server.chance))
        server.breaks = False


async def flapping(server: SimulatedServer) -> None:
    """Come and go."""
    for _ in range(server.chance.randint(2, 8)):
        with server.unwell(), refusing(server, lambda _: REJECTED):
            server.end(server.chance.choice(ENDINGS))
            await asyncio.sleep(server.chance.uniform(0.2, 3.0))
        await asyncio.sleep(server.chance.uniform(0.01, 2.0))


async def broken_watches(server: SimulatedServer) -> None:
    """Break watches off, all for the same reason."""
    ending = server.chance.choice(BREAKS)
    for path in some_paths(server, 2):
        server.end(ending, path)


async def broken_watch(server: SimulatedServer) -> None:
    """Break one watch off."""
    for path in some_paths(server, 1)[:1]:
        server.end(server.chance.choice(BREAKS), path)


Fault: TypeAlias = Callable[[SimulatedServer], Awaitable[None]]
FAULTS: Final[tuple[Fault, ...]] = (
    no_server,
    silence,
    rejections,
    rejections_of_new_requests,
    some_rejections,
    one_of_several_servers,
    accepted_and_closed,
    flapping,
    broken_watches,
    broken_watch,
)


class Outcome(NamedTuple):
    """What came of a sequence of faults."""

    seconds: float
    """From the end of the last fault until all resources were followed."""
    resources: int
    requests: int
    """At most within 3 s, while the server was not well."""
    faults: tuple[str, ...]


async def live_through(seed: int, faults: tuple[Fault, ...]) -> Outcome:
    """Let faults befall a server that is followed."""
    chance = random.Random(seed)  # noqa: S311 - to be the same each time
    loop = asyncio.get_running_loop()
    server = SimulatedServer(chance)
    states = [ResourceState(resource) for resource in list(RESOURCES.values())[: chance.choice((3, 8, None))]]
    watcher = Watcher(server, states, MirrorOnly(), Timing(clock=loop.time, random=chance.random))
    following = asyncio.create_task(watcher.run())
    await asyncio.sleep(chance.choice((0.0, MEAN_GAP, MEAN_GAP)))  # at first it may never have been synced
    sequence = [chance.choice(faults) for _ in range(chance.randint(1, 8))]
    for number, fault in enumerate(sequence):
        await asyncio.sleep(chance.expovariate(1 / MEAN_GAP) if number else 0.0)
        await fault(server)
    well_since = loop.time()
    while not all(not state.problem and server.follows(state.resource.path, state.followed_at) for state in states):
        assert not following.done()
        assert loop.time() - well_since < PATIENCE, [state.problem for state in states]
        await asyncio.sleep(0.01)
    seconds = loop.time() - well_since
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    return Outcome(
        seconds, len(states), server.most_requested_while_unwell(WINDOW), tuple(fault.__name__ for fault in sequence)
    )


def outcomes(faults: tuple[Fault, ...], sequences: int) -> list[Outcome]:
    """Live through random sequences; the slowest comes last."""
    return sorted(run_in_virtual_time(live_through(seed, faults)) for seed in range(sequences))


@pytest.fixture(scope="module")
def after_random_sequences() -> list[Outcome]:
    return outcomes(FAULTS, SEQUENCES)


def test_all_resources_are_followed_within_3_s_of_the_server_being_well(after_random_sequences: list[Outcome]) -> None:
    p99 = after_random_sequences[-1 - SEQUENCES // 100]
    assert p99.seconds <= MAX_SECONDS, after_random_sequences[-5:]


def test_the_server_is_asked_at_most_15_times_a_second_while_it_is_not_well(
    after_random_sequences: list[Outcome],
) -> None:
    # Besides, a watch that ended normally is asked for at once, without a wait.
    worst = max(after_random_sequences, key=lambda outcome: outcome.requests - outcome.resources)
    assert worst.requests <= worst.resources + (RETRIES + PROBES) * WINDOW, worst


async def requests_of_a_forbidden_resource(seed: int, faults: tuple[Fault, ...]) -> tuple[int, int, float]:
    """Let faults befall a server that never admits to one resource.

    Return how often that was asked for, how many faults there were, and the seconds.
    """
    chance = random.Random(seed)  # noqa: S311 - to be the same each time
    loop = asyncio.get_running_loop()
    server = SimulatedServer(chance)
    forbidden, *others = [ResourceState(resource) for resource in RESOURCES.values()]
    server.never = {forbidden.resource.path: status(403)}
    watcher = Watcher(server, [forbidden, *others], MirrorOnly(), Timing(clock=loop.time, random=chance.random))
    following = asyncio.create_task(watcher.run())
    await asyncio.sleep(60.0)
    assert not any(state.problem for state in others)
    before, began = len(server.requested), loop.time()
    sequence = [chance.choice(faults) for _ in range(chance.randint(1, 8))] if faults else []
    for fault in sequence:
        await fault(server)
        await asyncio.sleep(30.0)
        assert not any(state.problem for state in others), fault
    if not sequence:
        await asyncio.sleep(3600.0)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    requested = sum(each.path == forbidden.resource.path for each in server.requested[before:])
    return requested, len(sequence), loop.time() - began


def test_a_resource_that_is_always_refused_keeps_its_backoff_beside_others_that_are_followed() -> None:
    requested, _, seconds = run_in_virtual_time(requests_of_a_forbidden_resource(1, ()))
    assert seconds / 20 <= requested <= seconds / 15  # the longest wait, with jitter


@pytest.mark.parametrize("fault", [no_server, silence, rejections, broken_watches], ids=lambda fault: fault.__name__)
def test_a_resource_that_is_always_refused_is_asked_for_no_more_often_than_others_while_the_server_is_unwell(
    fault: Fault,
) -> None:
    for seed in range(tries(default=5, full=20)):
        requested, faults, seconds = run_in_virtual_time(requests_of_a_forbidden_resource(seed, (fault,)))
        well = 30.0 * faults
        # And some more until most others are followed again.
        assert requested <= well / 15 + (seconds - well) / 1.275 + 4 * faults + 1
