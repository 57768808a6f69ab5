"""`kindred removal`: which nodes could go, and what is in the way of the others."""

import sys
from collections import Counter
from collections.abc import Iterator
from typing import Final, Unpack

import click

from app.commands.options import EXIT_NO, EXIT_OK, with_options
from app.commands.output import Line, paragraphs, styled, table, wrapped
from app.commands.what_if.response import OPTIONS_OF_MOVES, QuestionOptions, printed_response, question_of
from app.commands.what_if.shared_text import assumed_text, chance_text, rejected_text
from app.commands.what_if.source import NODES_OPTIONS, NodesSource, question_settings
from app.simulation.questions import RemovalQuestion
from app.simulation.responses import RemovalResponse
from core.explaining.words import counted, listed
from core.objects.quantity import quantity_text
from core.simulation.lost_nodes import NodeState
from core.simulation.removal import NodeRemoval

_MAX_NODES: Final = 20
_MAX_NAMES: Final = 12


class Options(NodesSource, QuestionOptions):
    """All options of the command."""

    tries: int


@click.command("removal", params=question_settings())
@with_options(NODES_OPTIONS)
@click.option(
    "--tries",
    type=click.IntRange(0),
    default=200,
    show_default=True,
    help="How many nodes the search for a set that can go together tries; 0: none.",
)
@with_options(OPTIONS_OF_MOVES)
def removal_command(**options: Unpack[Options]) -> None:
    """Print which nodes could go, with all their pods placed elsewhere, and what is in the way of the others.

    Each node goes by itself; then a greedy search looks for nodes that can all go. Without NODE, -l and --zone, all
    nodes are tried. Reads a dump (--snapshot, --demo), asks a running service (--server), or lists the cluster of a
    kubeconfig. Ends with 0 if each chosen node could go in every order, or without a choice any node; 1 if not; 2 for
    errors.
    """
    question = question_of(RemovalQuestion, options)
    response = printed_response(options, question, "Removing", RemovalResponse, removal_text)
    can_go = [each.can_go for each in response.nodes]
    sys.exit(EXIT_OK if (all(can_go) if question.has_chosen else any(can_go)) else EXIT_NO)


def removal_text(response: RemovalResponse, *, wide: bool) -> Iterator[Line]:
    """Yield the response as lines."""
    staying = [each for each in response.nodes if not each.can_go]
    visible = staying if wide else staying[:_MAX_NODES]
    rows = [(each.node, each.pod, _why(each)) for each in visible]
    more = [f"... and {len(staying) - len(visible):,} more, see -o wide"] if len(staying) > len(visible) else []
    counts = Counter(map(_rule, staying)).most_common() if more else ()
    rules = [f"{rule} ({counted(number, 'node')})" for rule, number in counts]
    yield from paragraphs(
        [
            _summary(response, wide=wide),
            [*(table(("STAYS", "FOR POD", "BECAUSE"), rows, 0, wide=wide) if rows else ()), *more],
            wrapped(f"In the way: {', '.join(rules)}.") if rules else (),
            assumed_text(response.assumed, wide=wide),
        ]
    )


def _summary(response: RemovalResponse, *, wide: bool) -> Iterator[Line]:
    most = None if wide else _MAX_NAMES
    going = [each.node for each in response.nodes if each.can_go]
    text = f"{len(going):,} of {counted(len(response.nodes), 'node')} could go, each by itself"
    names = f": {listed(going, most)}" if going else ""
    yield from styled(wrapped(f"{text}{names}."), "green" if going else "red", bold=True)
    if response.together:
        saved = " and ".join(f"{quantity_text(name, amount)} of {name}" for name, amount in response.saved.items())
        text = f"Together, {len(response.together):,} could go, which saves {saved}"
        yield from wrapped(f"{text}: {listed(response.together, most)}.")


def _rule(removal: NodeRemoval) -> str:
    """Return what is in the way, without names."""
    return _why(removal).partition(":")[0]


def _why(removal: NodeRemoval) -> str:
    if removal.rejected is None:
        return removal.why
    removed = " once the node is removed" if removal.state is NodeState.REMOVED else ""
    return f"{chance_text(removal.rejected, removal.goes)}{removed}: {rejected_text(removal.rejected)}"
