"""The part of an answer that a caller of few rights may see: pods of other namespaces are counted, and not named.

Numbers stay, such as those of pods without a place, and so do nodes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from app.simulation.assumptions import Assumptions
from app.simulation.packed_moves import PackedMoves
from app.simulation.questions import Response
from app.simulation.responses import CapacityResponse, DrainResponse, LossResponse, RemovalResponse
from core.explaining.pod_names import HIDDEN, Sees
from core.simulation.moves import Move, Rejected, Workload
from core.simulation.removal import NodeRemoval

_WHY_HIDDEN: Final = "the caller may not see its namespace"
T = TypeVar("T")


class Seen(msgspec.Struct, frozen=True):
    """The namespaces whose pods a caller may see."""

    namespaces: frozenset[str] | None
    """None: all."""
    why: str = ""
    """Why some are missing."""


def namespaces_in(response: Response) -> list[str]:
    """Return the namespaces of the pods and owners that an answer names."""
    found: set[str] = set()

    def note(namespace: str) -> bool:
        found.add(namespace)
        return True

    _Part(note).of(response, "")
    return sorted(found)


def seen_part(response: Response, seen: Seen) -> Response:
    """Return an answer without the names that a caller may not see."""
    if seen.namespaces is None:
        return response
    return _Part(seen.namespaces.__contains__).of(response, seen.why)


class _Part:
    def __init__(self, sees: Sees) -> None:
        self._sees = sees
        self._left_out = 0

    def of(self, response: Response, why: str) -> Response:
        match response:
            case CapacityResponse():
                part: Response = self._capacity(response)
            case DrainResponse():
                part = self._drain(response)
            case LossResponse():
                part = self._loss(response)
            case RemovalResponse():
                part = replace(response, nodes=[*map(self._removal, response.nodes)])
        return replace(part, assumed=self._assumed(part.assumed, why))

    def _capacity(self, response: CapacityResponse) -> CapacityResponse:
        capacity = response.capacity
        pending = self._pods(capacity.pending_unplaced, lambda each: each[0])
        named = [(name, self._rejected(rejected)) for name, rejected in pending]
        rejected = None if capacity.rejected is None else self._rejected(capacity.rejected)
        return replace(response, capacity=replace(capacity, pending_unplaced=named, rejected=rejected))

    def _drain(self, response: DrainResponse) -> DrainResponse:
        pods = self._pods(response.pods, lambda each: each.move.pod)
        rejections = [replace(each, pods=self._seen(each.pods, str)) for each in response.rejections]
        return replace(
            response,
            pods=[replace(each, move=self._move(each.move)) for each in pods],
            rejections=rejections,
            workloads=self._workloads(response.workloads),
            together=self._seen(response.together, str),
        )

    def _loss(self, response: LossResponse) -> LossResponse:
        domains = [
            replace(
                each,
                moves=PackedMoves(self._moves(each.moves)),
                workloads=self._workloads(each.workloads),
            )
            for each in response.domains
        ]
        return replace(response, domains=domains)

    def _removal(self, removal: NodeRemoval) -> NodeRemoval:
        if not removal.pod or self._sees(_namespace(removal.pod)):
            rejected = None if removal.rejected is None else self._rejected(removal.rejected)
            return replace(removal, rejected=rejected)
        self._left_out += 1
        return replace(removal, pod=HIDDEN, why=_WHY_HIDDEN, rejected=None)

    def _assumed(self, assumed: Assumptions, why: str) -> Assumptions:
        uncertainties = self._seen(assumed.uncertainties, lambda each: each.owner)
        return replace(assumed, uncertainties=uncertainties, names_hidden=why, left_out=self._left_out)

    def _moves(self, moves: Iterable[Move]) -> Iterator[Move]:
        for move in moves:
            if self._sees(_namespace(move.pod)):
                yield self._move(move)
            else:
                self._left_out += 1

    def _move(self, move: Move) -> Move:
        return move if move.rejected is None else replace(move, rejected=self._rejected(move.rejected))

    def _rejected(self, rejected: Rejected) -> Rejected:
        victims = [each if self._sees(_namespace(each)) else HIDDEN for each in rejected.victims]
        return replace(rejected, victims=victims)

    def _workloads(self, workloads: Sequence[Workload]) -> list[Workload]:
        return self._seen(workloads, lambda each: each.owner)

    def _pods(self, pods: Sequence[T], name: Callable[[T], str]) -> list[T]:
        seen = self._seen(pods, name)
        self._left_out += len(pods) - len(seen)
        return seen

    def _seen(self, values: Iterable[T], name: Callable[[T], str]) -> list[T]:
        return [each for each in values if self._sees(_namespace(name(each)))]


def _namespace(name: str) -> str:
    """Return the namespace of NAMESPACE/NAME, or of KIND NAMESPACE/NAME."""
    return name.rpartition(" ")[2].partition("/")[0]
