"""`kindred drain`: what `kubectl drain` would refuse and evict, and where the pods would go."""

import sys
from collections.abc import Iterator, Mapping
from typing import Final, Unpack

import click

from app.commands.options import EXIT_NO, EXIT_OK, with_options
from app.commands.output import Line, paragraphs, styled, table, wrapped
from app.commands.what_if.response import OPTIONS_OF_MOVES, QuestionOptions, printed_response, question_of
from app.commands.what_if.shared_text import assumed_text, places_text, without_place_text
from app.commands.what_if.source import NODES_OPTIONS, NodesSource, question_settings
from app.simulation.questions import DrainQuestion, Flag
from app.simulation.responses import DrainResponse
from core.explaining.words import counted, listed
from core.simulation.drain import DELETE_LOCAL_DATA, FORCE, IGNORE_DAEMON_SETS, DrainedPod
from core.simulation.orders import Chance

_MAX_PODS: Final = 20
_MAX_NAMES: Final = 4
_FLAGS: Final[Mapping[str, Flag]] = {
    "ignore_daemonsets": IGNORE_DAEMON_SETS,
    "delete_emptydir_data": DELETE_LOCAL_DATA,
    "force": FORCE,
}


class Options(NodesSource, QuestionOptions):
    """All options of the command."""

    ignore_daemonsets: bool
    delete_emptydir_data: bool
    force: bool


@click.command("drain", params=question_settings())
@with_options(NODES_OPTIONS)
@click.option(IGNORE_DAEMON_SETS, is_flag=True, help="As kubectl: leave the pods of DaemonSets.")
@click.option(DELETE_LOCAL_DATA, is_flag=True, help="As kubectl: also evict pods with emptyDir volumes.")
@click.option(FORCE, is_flag=True, help="As kubectl: also evict pods without a controller.")
@with_options(OPTIONS_OF_MOVES)
def drain_command(**options: Unpack[Options]) -> None:
    """Print what `kubectl drain` would refuse and evict, and where the pods would go. Nothing is changed.

    The nodes are given by name, by labels (-l) or by zone. Reads a dump (--snapshot, --demo), asks a running service
    (--server), or lists the cluster of a kubeconfig. Ends with 0 if kubectl refuses nothing, each pod is evicted, and
    all that come again find a place; 1 if not; 2 for errors.
    """
    flags = [flag for name, flag in _FLAGS.items() if options[name]]  # type: ignore[literal-required]  # keys of it
    question = question_of(DrainQuestion, options, flags=flags)
    response = printed_response(options, question, "Draining", DrainResponse, drain_text)
    sys.exit(EXIT_OK if response.ok else EXIT_NO)


def drain_text(response: DrainResponse, *, wide: bool) -> Iterator[Line]:
    """Yield the response as lines."""
    yield from paragraphs(
        [
            _summary(response),
            _rejections(response, wide=wide),
            _blocked(response),
            _without_place(response, wide=wide),
            _moves(response, wide=wide),
            _remarks(response, wide=wide),
            [response.command],  # one line, to be copied
            assumed_text(response.assumed, wide=wide),
        ]
    )


def _summary(response: DrainResponse) -> Iterator[Line]:
    coming = [each for each in response.pods if each.comes_again]
    placed = sum(not each.is_unplaced for each in coming)
    nodes = response.nodes[0] if len(response.nodes) == 1 else counted(len(response.nodes), "node")
    ends = f" ends in {response.rounds} rounds" if response.rounds > 1 else " ends"
    if response.ends is not Chance.ALWAYS:
        ends = " does not end" if response.ends is Chance.NEVER else " ends in some orders only"
    if response.assumed.left_out:
        ends = ", of whose pods you see some"
    find = "finds" if len(coming) == 1 else "find"
    text = f"The drain of {nodes}{ends}; {placed} of {counted(len(coming), 'pod')} {find} a place"
    rejected = ", but kubectl refuses it without more flags" if response.rejections else ""
    yield from styled(wrapped(f"{text}{rejected}."), "green" if response.ok else "red", bold=True)


def _rejections(response: DrainResponse, *, wide: bool) -> Iterator[Line]:
    for each in response.rejections:
        names = listed(each.pods, None if wide else _MAX_NAMES)  # empty: the caller may see none of them
        yield from wrapped(": ".join(filter(None, (each.message, names))), 4, "  ")


def _blocked(response: DrainResponse) -> Iterator[Line]:
    found = [each for each in response.pods if each.blocked]
    if found:
        yield from styled(["Not evicted, so that the drain does not end"], bold=True)
    for each in found:
        chance = "" if each.evicted is Chance.NEVER else "in some orders: "
        why = f"{chance}{each.blocked} ({', '.join(each.budgets)})"
        yield from wrapped(f"{each.move.pod} on {each.move.from_node}: {why}", 4, "  ")


def _without_place(response: DrainResponse, *, wide: bool) -> Iterator[Line]:
    moves = [each.move for each in response.pods if each.is_unplaced]
    if moves:
        yield from styled(["Evicted, and without a place"], bold=True)
        yield from without_place_text(moves, wide=wide)


def _moves(response: DrainResponse, *, wide: bool) -> Iterator[Line]:
    found = [each for each in response.pods if each.comes_again and not each.is_unplaced]
    visible = found if wide else found[:_MAX_PODS]
    columns = {
        "NODE": [each.move.from_node for each in visible] if len(response.nodes) > 1 else [],
        "POD": [each.move.pod for each in visible],
        ">ROUND": [str(each.round) for each in visible] if response.rounds > 1 else [],
        "GOES TO": [*map(_to, visible)],
    }
    filled = {head: cells for head, cells in columns.items() if cells}
    if filled:
        yield from table([*filled], [*zip(*filled.values(), strict=True)], 0, wide=wide)
    if len(found) > len(visible):
        yield f"... and {len(found) - len(visible):,} more, see -o wide"


def _to(pod: DrainedPod) -> str:
    zones = f", stays in {' or '.join(pod.move.zones)} with its volumes" if pod.move.zones is not None else ""
    return f"{places_text(pod.move.nodes)}{zones}"


def _remarks(response: DrainResponse, *, wide: bool) -> Iterator[Line]:
    stay = sum(each.stays for each in response.pods)
    if stay:
        yield from wrapped(f"{counted(stay, 'pod')} of DaemonSets, or static, {'stays' if stay == 1 else 'stay'}.")
    gone = [each.move for each in response.pods if each.move.stays_away and not each.stays and not each.blocked]
    by_reason: dict[str, list[str]] = {}
    for each in gone:
        by_reason.setdefault(each.stays_away, []).append(each.pod)
    for why, pods in by_reason.items():
        yield from wrapped(f"Do not come again: {listed(pods, None if wide else _MAX_NAMES)}: {why}.")
    for owner in response.together:
        yield from styled(wrapped(f"Warning: all replicas of {owner} end on one node."), "yellow")
