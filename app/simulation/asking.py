"""Asks a question about the cluster of a running service, in a forked child: see app/process/forked.py.

A simulation takes seconds to minutes of one CPU, and supposes pods and nodes in the mirror itself. In a copy of the
process it delays no request of a scheduler and no event, and the live mirror, its cache and its metrics never have any
of it. Only one question is asked at a time, because each may take more memory than the service.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Final, NamedTuple, TypeAlias

import msgspec

from app.feeds.freshness import Freshness, SyncStatus
from app.feeds.memory import MemoryWatch, private_bytes, resident_bytes
from app.feeds.release import ReleaseTracker
from app.objects.decode import DecodeError
from app.process.forked import Child, ChildEndedError, Parent, forked
from app.process.json_text import encode
from app.process.logs import raised_at
from app.process.long_work import LongWork
from app.simulation.assumptions import Lack
from app.simulation.chosen_nodes import QuestionError
from app.simulation.comes_again import ClusterFacts
from app.simulation.hidden_names import Seen, namespaces_in, seen_part
from app.simulation.objects_at_hand import TakeObjects
from app.simulation.packed_moves import PackedMoves, response_json
from app.simulation.questions import AnyQuestion, QuestionCluster, Response
from app.simulation.raw_objects import RawObjects
from core.events import Kind
from core.mirror.cluster import ClusterMirror
from core.simulation.placing import Schedulers, Steps, finished

log = logging.getLogger(__name__)

_PATIENCE: Final = 30.0
"""Seconds for which a question waits for the one before it."""
_GROWTH: Final = 1.1
"""The memory that a child may take beside the service, as a share of the service's. Every pod that a simulation looks
at is copied with its page, and so are the counters that it changes. The rest is for what is supposed. For the loss of
each zone in one order it was 1.09, and each further order takes some 0.2 kB for each pod of the zone."""
_LOOKS_EVERY: Final = 0.5
"""Seconds between two looks of a child at its memory, at each of which it says how far it is."""
_FEWER: Final = "ask about fewer nodes, replicas or orders"

_NONE: Final = "", 0.0
"""The key and the share done of no question."""

See: TypeAlias = Callable[[Sequence[str]], Awaitable[Seen]]
"""Returns which of some namespaces a caller may see."""


class Outcome(msgspec.Struct, frozen=True):
    """What a child says before the answer, which follows if the status is 200. With 102 it goes on, and says more."""

    status: int
    detail: str = ""
    field: str = ""
    fault: str = ""
    """What is wrong with the program, for the log."""
    namespaces: Sequence[str] = ()
    """Of the pods in the answer, if the caller may not see all. The child waits for the part that they may see."""
    done: float = 0.0
    """The share of the steps that are taken, from 0 to 1."""


class QuestionRejectedError(Exception):
    """A question without an answer, and the outcome that says why."""

    def __init__(self, status: HTTPStatus, detail: str, field: str = "") -> None:
        super().__init__(detail)
        self.outcome = Outcome(status, detail, field)


_seen_decoder: Final = msgspec.json.Decoder(Seen)
_outcome_decoder: Final = msgspec.json.Decoder(Outcome)


class Simulated(NamedTuple):
    """The cluster of a service, for questions."""

    mirror: ClusterMirror
    freshness: Freshness
    release: ReleaseTracker
    kinds: Sequence[Kind]
    """The kinds that simulations read."""
    schedulers: Callable[[], Schedulers]
    take: TakeObjects

    def cluster(self, question: AnyQuestion) -> QuestionCluster:
        """Return what a question reads. Only for the child, because it changes the mirror's states."""
        raw = RawObjects()
        taken = self.take(question, raw)
        missing = self.freshness.missing_for_explanations()
        kinds = dict.fromkeys((*self.kinds, *question.kinds))
        lacks = [*self._staleness(), *(Lack(*missing[kind]) for kind in kinds if kind in missing), *taken.lacks]
        return QuestionCluster(
            self.mirror,
            ClusterFacts(self.mirror, raw),
            raw,
            self.schedulers(),
            str(self.release.status),
            [*dict.fromkeys(lacks)],
            taken.without_quotas,
            PackedMoves,
        )

    def _staleness(self) -> list[Lack]:
        status = self.freshness.status()
        if status is SyncStatus.FRESH:
            return []
        return [Lack(f"the mirror is {status.value}: {'; '.join(self.freshness.problems())}")]

    def respond(self, question: AnyQuestion, parent: Parent, most: int, *, is_limited: bool) -> None:
        """Ask, and tell the parent the outcome and the answer. With `is_limited`, the parent says who is seen.

        The child may take `most` bytes of memory.
        """
        try:
            running = question.ask(self.cluster(question))
            steps: Steps[Response] = running.steps
            response = finished(steps, _looks(parent, running.length, most))
        except QuestionRejectedError as error:
            parent.send(encode(error.outcome))
            return
        except (QuestionError, DecodeError) as error:
            parent.send(encode(Outcome(HTTPStatus.BAD_REQUEST, str(error), error.field)))
            return
        except Exception as error:  # noqa: BLE001  # logged, and answered
            name = type(error).__name__
            detail, fault = f"internal error: {name}", f"{name} at {raised_at(error)}"
            parent.send(encode(Outcome(HTTPStatus.INTERNAL_SERVER_ERROR, detail, fault=fault)))
            return
        if is_limited:
            parent.send(encode(Outcome(HTTPStatus.OK, namespaces=namespaces_in(response))))
            response = seen_part(response, _seen_decoder.decode(parent.receive()))
        else:
            parent.send(encode(Outcome(HTTPStatus.OK)))
        parent.send_pieces(*response_json(response))


def _looks(parent: Parent, length: int, most: int) -> Callable[[], None]:
    """Return what tells the parent how many of about `length` steps are taken, when it is called after each of them.

    It raises QuestionRejectedError above `most` bytes of memory. How many pods fit is in no proportion to the pods that
    are there, and each that is placed takes about 0.7 kB.
    """
    taken, looks_at = 0, time.monotonic() + _LOOKS_EVERY

    def look() -> None:
        nonlocal taken, looks_at
        taken += 1
        if time.monotonic() >= looks_at:
            looks_at = time.monotonic() + _LOOKS_EVERY
            if private_bytes() > most:
                why = f"the answer takes more than the {most >> 20} MiB that are left: {_FEWER}"
                raise QuestionRejectedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why)
            parent.send(encode(Outcome(HTTPStatus.PROCESSING, done=taken / max(taken, length))))

    return look


class Asker:
    """Asks questions one at a time, each for at most some seconds."""

    def __init__(self, simulated: Simulated, work: LongWork, memory: MemoryWatch, seconds: float) -> None:
        """`work` has the turn in which a process may fork, because that holds the event loop."""
        self._simulated = simulated
        self._work = work
        self._memory = memory
        self._seconds = seconds
        self._turn = asyncio.Lock()
        self._running = _NONE

    def done(self, key: str) -> float | None:
        """Return the share done, from 0 to 1, of the question that was asked with a key. None: it does not run now.

        Without its key nobody learns how far a question is.
        """
        of, done = self._running
        return done if key and key == of else None

    @asynccontextmanager
    async def running(self, question: AnyQuestion, see: See | None = None, key: str = "") -> AsyncIterator[Child]:
        """Ask, and yield the child, whose next message is the answer. The child ends with the block.

        `see` says which of some namespaces the caller may see. None: all. `key` is for `done`. Raises
        QuestionRejectedError, also if the answer takes too long.
        """
        async with AsyncExitStack() as stack:
            await self._take_turn()
            stack.callback(self._end_turn)
            room = self._room()
            until = asyncio.get_running_loop().time() + self._seconds
            work = partial(self._simulated.respond, question, most=room, is_limited=see is not None)
            try:
                async with self._work.exclusive():
                    child = await stack.enter_async_context(forked(work, self._seconds))
                outcome = await self._outcome(child, key)
            except OSError as error:
                raise QuestionRejectedError(
                    HTTPStatus.SERVICE_UNAVAILABLE, f"no process for it: {error.strerror}"
                ) from None
            except ChildEndedError:
                raise self._ended(until) from None
            if outcome.fault:
                log.error("a question failed: %s", outcome.fault)
            if outcome.status != HTTPStatus.OK:
                raise QuestionRejectedError(HTTPStatus(outcome.status), outcome.detail, outcome.field)
            if see is not None:
                await child.send(encode(await see(outcome.namespaces)))
            try:
                yield child
            except ChildEndedError:
                raise self._ended(until) from None

    async def _take_turn(self) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._turn.acquire()
        except TimeoutError:
            raise QuestionRejectedError(
                HTTPStatus.SERVICE_UNAVAILABLE, f"another question has not been answered within {_PATIENCE:g} s"
            ) from None

    def _end_turn(self) -> None:
        self._running = _NONE
        self._turn.release()

    async def _outcome(self, child: Child, key: str) -> Outcome:
        """Return the last outcome of a child. Raises ChildEndedError."""
        outcome = Outcome(HTTPStatus.PROCESSING)
        while outcome.status == HTTPStatus.PROCESSING:
            self._running = key, outcome.done
            outcome = _outcome_decoder.decode(await child.receive())
        return outcome

    def _room(self) -> int:
        """Return the bytes that a child may take: with more, the kernel would end the service, too.

        Raises QuestionRejectedError if an answer may need more.
        """
        needed, room = int(resident_bytes() * _GROWTH), self._memory.room()
        if room < needed:
            why = f"too little memory: an answer may take {needed >> 20} MiB, and {room >> 20} MiB are left"
            raise QuestionRejectedError(HTTPStatus.SERVICE_UNAVAILABLE, why)
        return room

    def _ended(self, until: float) -> QuestionRejectedError:
        if asyncio.get_running_loop().time() >= until:
            why = f"the answer takes longer than {self._seconds:g} s: {_FEWER}"
            return QuestionRejectedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why)
        why = "the process that looked for the answer has ended without one: there may be too little memory"
        return QuestionRejectedError(HTTPStatus.SERVICE_UNAVAILABLE, why)
