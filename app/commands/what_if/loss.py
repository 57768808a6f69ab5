"""`kindred loss`: which zone, rack or node can fail at once, and which pods find no place then."""

import sys
from collections.abc import Iterator
from typing import Final, Unpack

import click

from app.commands.options import EXIT_NO, EXIT_OK, with_options
from app.commands.output import Line, paragraphs, styled, table, wrapped
from app.commands.what_if.response import OPTIONS_OF_MOVES, QuestionOptions, printed_response, question_of
from app.commands.what_if.shared_text import assumed_text, without_place_text
from app.commands.what_if.source import question_settings
from app.simulation.questions import LossQuestion
from app.simulation.responses import DomainResponse, LossResponse
from core.explaining.words import counted
from core.simulation.lost_nodes import NodeState
from core.simulation.moves import Workload, is_sure

_MAX_DOMAINS: Final = 20
_MAX_DETAILS: Final = 2
_MAX_WORKLOADS: Final = 3
_STATES: Final = {NodeState.OUT: "do not answer", NodeState.REMOVED: "are removed"}


class Options(QuestionOptions):
    """All options of the command."""

    by: str
    only: tuple[str, ...]
    strict: bool


@click.command("loss", params=question_settings())
@click.option(
    "--by",
    metavar="zone|region|node|LABEL",
    default="zone",
    show_default=True,
    help="What fails at once: the nodes of a zone, of a region, with one value of a label; or each node by itself.",
)
@click.option("--only", multiple=True, metavar="VALUE", help="Only this zone, or value. Can be repeated.")
@click.option("--strict", is_flag=True, help="End with 1 if the cluster does not survive one of the losses.")
@with_options(OPTIONS_OF_MOVES)
def loss_command(**options: Unpack[Options]) -> None:
    """Print which zone can fail: what its workloads keep, and which of its pods find no place elsewhere.

    Each zone fails by itself and at once, so that budgets do not matter. Reads a dump (--snapshot, --demo), asks a
    running service (--server), or lists the cluster of a kubeconfig. Ends with 0; with --strict, 1 if some pod finds no
    place after some loss; 2 for errors.
    """
    response = printed_response(options, question_of(LossQuestion, options), "Placing", LossResponse, loss_text)
    sys.exit(EXIT_NO if options["strict"] and not response.survived else EXIT_OK)


def loss_text(response: LossResponse, *, wide: bool) -> Iterator[Line]:
    """Yield the response as lines."""
    details = [each for each in response.domains if not each.survived]
    yield from paragraphs(
        [
            _summary(response),
            _domains(response, wide=wide),
            *(_detail(each, wide=wide) for each in (details if wide else details[:_MAX_DETAILS])),
            wrapped(f"Left out: {'; '.join(response.left_out)}."),
            assumed_text(response.assumed, wide=wide),
        ]
    )


def _summary(response: LossResponse) -> Iterator[Line]:
    lost = [each for each in response.domains if not each.survived]
    of = f"{counted(len(response.domains), 'domain')} of {response.topology_key}"
    if not lost:
        yield from styled(wrapped(f"The cluster survives the loss of any one of {of}."), "green", bold=True)
    else:
        text = f"The cluster does not survive the loss of {len(lost):,} of {of}, each by itself: pods find no place"
        unknown = any(each.unknown for each in lost)
        yield from styled(wrapped(f"{text}{', or it is not known' if unknown else ''}."), "red", bold=True)
    if response.nodes_without_key:
        stay = "stays" if response.nodes_without_key == 1 else "stay"
        yield from wrapped(f"{counted(response.nodes_without_key, 'node')} without {response.topology_key} {stay}.")


def _domains(response: LossResponse, *, wide: bool) -> Iterator[Line]:
    visible = response.domains if wide else response.domains[:_MAX_DOMAINS]
    rows = [_row(each) for each in visible]
    yield from table(("LOST", ">NODES", ">PODS", ">NO PLACE", "KEEPS LEAST"), rows, 0, wide=wide)
    if len(visible) < len(response.domains):
        yield f"... and {len(response.domains) - len(visible):,} more, see -o wide"


def _row(domain: DomainResponse) -> tuple[str, ...]:
    least = _keeps(domain.workloads[0]) if domain.workloads else "-"
    return _name(domain), f"{len(domain.nodes):,}", f"{domain.coming:,}", f"{domain.without_place:,}", least


def _name(domain: DomainResponse) -> str:
    return domain.value or '""'


def _keeps(workload: Workload) -> str:
    return f"{workload.remaining:,} of {workload.replicas:,} of {workload.owner}"


def _detail(domain: DomainResponse, *, wide: bool) -> Iterator[Line]:
    yield from styled(wrapped(f"Without {_name(domain)}, whose nodes {_STATES[domain.state]}:"), bold=True)
    unplaced = [each for each in domain.moves if not each.stays_away and not is_sure(each)]
    yield from without_place_text(unplaced, wide=wide)
    fewer = [each for each in domain.workloads if each.remaining < each.replicas]
    for each in fewer if wide else fewer[:_MAX_WORKLOADS]:
        yield from wrapped(f"keeps {_keeps(each)}", 4, "  ")
