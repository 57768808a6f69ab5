"""Packed moves are the moves, and the JSON of a response with them is that of the response."""

import tracemalloc

import msgspec
import pytest
from msgspec.structs import replace

from app.simulation.assumptions import Assumptions
from app.simulation.packed_moves import PackedMoves, response_json
from app.simulation.responses import DomainResponse, LossResponse
from core.simulation.lost_nodes import NodeState
from core.simulation.moves import Move, Rejected, Workload
from core.simulation.orders import Chance
from core.simulation.placing import Fate

TRICKY = '"moves":[]"domains":[]'
"""What a label may not have, and a message may."""


def moves(number: int) -> list[Move]:
    placed = [
        Move(pod=f"shop/web-{each}", uid=f"u{each}", from_node="n1", placed=Chance.ALWAYS, node="é", nodes={"é": 1})
        for each in range(number)
    ]
    why = Rejected(fate=Fate.UNSCHEDULABLE, nodes=3, reasons={TRICKY: 3}, victims=["a/b"])
    return [replace(each, rejected=why, zones=["z"]) if not at % 5 else each for at, each in enumerate(placed)]


def response(*numbers: int) -> LossResponse:
    workloads = [Workload(owner=f"Deployment shop/{TRICKY}", replicas=2, left=1, again=1, surely_again=0)]
    domains = [
        DomainResponse(
            value=TRICKY,
            survived=False,
            nodes=[TRICKY, "moves"],
            state=NodeState.OUT,
            coming=number,
            without_place=0,
            unknown=0,
            workloads=workloads,
            moves=moves(number),
        )
        for number in numbers
    ]
    assumed = Assumptions(TRICKY, ["s"], 100, 1, [], [])
    return LossResponse(
        topology_key=TRICKY, survived=False, domains=domains, nodes_without_key=1, left_out=[TRICKY], assumed=assumed
    )


@pytest.mark.parametrize("number", [0, 1, 255, 256, 257, 1000])
def test_packed_moves_are_the_moves(number: int) -> None:
    made = moves(number)
    packed = PackedMoves(iter(made))
    assert [*packed] == [*packed] == made, "as often as they are read"
    assert len(packed) == number
    text = b"".join(packed.json())
    assert b"[%b]" % text == msgspec.json.encode(made)
    assert packed.json_bytes == len(text)
    assert all(each in packed for each in made[-1:])
    assert replace(moves(1)[0], uid="other") not in packed


@pytest.mark.parametrize("numbers", [(), (0,), (3, 0, 700)])
def test_the_json_of_a_response_with_packed_moves_is_that_of_the_response(numbers: tuple[int, ...]) -> None:
    plain = response(*numbers)
    packed = replace(plain, domains=[replace(each, moves=PackedMoves(each.moves)) for each in plain.domains])
    for each in (plain, packed):
        length, pieces = response_json(each)
        text = b"".join(pieces)
        assert text == msgspec.json.encode(plain)
        assert length == len(text)


def test_no_piece_is_large() -> None:
    assert max(map(len, response_json(response(10_000))[1])) < 200_000


def test_moves_take_less_than_a_tenth_of_their_json() -> None:
    made = moves(10_000)
    tracemalloc.start()
    try:
        packed = PackedMoves(made)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0 < taken < packed.json_bytes / 10
