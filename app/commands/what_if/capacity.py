"""`kindred capacity`: how many more pods fit, and what stops the next one."""

import sys
from collections.abc import Iterator, Mapping
from typing import Final, Unpack

import click
import msgspec

from app.commands.manifests import one_manifest, read_manifests
from app.commands.options import EXIT_NO, EXIT_OK, with_options
from app.commands.output import Line, labelled, paragraphs, styled, wrapped
from app.commands.what_if.response import QUESTION_OPTIONS, QuestionOptions, printed_response, question_of
from app.commands.what_if.shared_text import assumed_text, chance_text, rejected_text
from app.commands.what_if.source import clear_question_errors, question_settings
from app.simulation.chosen_nodes import QuestionError
from app.simulation.questions import MAX_ADDED, CapacityQuestion
from app.simulation.responses import CapacityResponse
from core.explaining.words import counted
from core.objects.quantity import quantity_text
from core.simulation.capacity import MOST
from core.simulation.orders import Chance
from core.simulation.placing import Fate

_VISIBLE: Final = ("cpu", "memory", "pods")
_MAX_PENDING: Final = 5


class Options(QuestionOptions):
    """All options of the command."""

    of: tuple[str, ...]
    file: tuple[str, ...]
    namespace: str
    replicas: int | None
    mix: str
    add_node_like: str
    in_zone: str


@click.command("capacity", params=question_settings())
@click.argument("of", nargs=-1, metavar="[POD]...")
@click.option("--file", "-f", multiple=True, metavar="FILE", help="Manifest of a pod or a workload. Can be repeated.")
@click.option("--namespace", "-n", default="", metavar="NS", help="Namespace of the names.  [default: any]")
@click.option(
    "--replicas", type=click.IntRange(1, MOST), metavar="N", help="Whether so many fit.  [default: as many as fit]"
)
@click.option(
    "--mix", default="", metavar="N,N", help="How many of each in turn, if there are several.  [default: 1 each]"
)
@click.option("--add-node-like", default="", metavar="NODE", help="Add nodes like this one where a pod fits nowhere.")
@click.option("--in-zone", default="", metavar="ZONE", help="Zone of the added nodes.  [default: that of the node]")
@with_options(QUESTION_OPTIONS)
def capacity_command(**options: Unpack[Options]) -> None:
    """Print how many more pods fit: replicas of a manifest, a workload or a pod, and what stops the next one.

    The pending pods come first. A replica is of TYPE/NAME, such as deploy/web, of a pod NAME, or of a manifest (-f).
    With --add-node-like, prints how many such nodes the replicas need, or without replicas the pending pods. Reads a
    dump (--snapshot, --demo), asks a running service (--server), or lists the cluster of a kubeconfig. Ends with 0 if
    enough fit, 1 if not, 2 for errors.
    """
    with clear_question_errors():
        question = _question(options)
    response = printed_response(options, question, "Placing", CapacityResponse, capacity_text)
    sys.exit(EXIT_OK if response.enough else EXIT_NO)


def _question(options: Options) -> CapacityQuestion:
    """Return the question. Raises QuestionError, and UsageError with the option."""
    namespace = options["namespace"]
    texts = [one_manifest(f"-f {each}", read_manifests("-f", each), namespace=namespace) for each in options["file"]]
    mix = _shares(options["mix"])
    return question_of(CapacityQuestion, {**options, "mix": mix}, manifests=[*map(msgspec.Raw, texts)])


def _shares(text: str) -> list[int]:
    shares = text.split(",") if text else []
    if not all(map(str.isdecimal, shares)):
        raise QuestionError("mix", "expected numbers with commas", text)
    return [*map(int, shares)]


def capacity_text(response: CapacityResponse, *, wide: bool) -> Iterator[Line]:
    """Yield the response as lines."""
    found = response.capacity
    yield from paragraphs(
        [
            _summary(response),
            _pending(response, wide=wide),
            [
                *(labelled("by zone", _counts(found.by_zone)) if found.by_zone else ()),
                *(labelled("by pool", _counts(found.by_pool)) if found.by_pool else ()),
                *(labelled("then", _fill(response, wide=wide)) if found.fill else ()),
            ],
            assumed_text(response.assumed, wide=wide),
        ]
    )


def _summary(response: CapacityResponse) -> Iterator[Line]:
    found = response.capacity
    look = "green" if response.enough else "red"
    if response.of:
        number = f"{found.placed:,}" if found.least == found.most else f"{found.least:,} to {found.most:,}"
        requested = f" of the {response.requested:,} that are asked for" if response.requested is not None else " more"
        of = " and ".join(response.of)
        yield from styled(wrapped(f"{number}{requested} fit: {of}."), look, bold=True)
        if len(response.of) > 1:
            parts = (f"{number:,} of {name}" for number, name in zip(found.by_template, response.of, strict=True))
            yield from wrapped(f"In turn: {', '.join(parts)}.")
    else:
        text = f"{found.pending_placed:,} of {counted(response.pending, 'pending pod')}"
        yield from styled(wrapped(f"{text} find a place."), look, bold=True)
    if found.added:
        zone = f" in zone {found.added_zone}" if found.added_zone else ""
        of_node = found.added[0].rpartition("-copy-")[0]
        needed = "needed" if response.enough else "added"
        most = ", as many as Kindred adds" if len(found.added) == MAX_ADDED else ""
        like = f"{counted(len(found.added), 'node')} like {of_node}{zone}"
        yield from wrapped(f"{like} {'is' if len(found.added) == 1 else 'are'} {needed}{most}.")
    name = response.of[found.stopped_at] if found.stopped_at >= 0 else ""
    if found.rejected is not None:
        has = "may have a place" if found.rejected.fate is Fate.UNKNOWN else "has no place"
        yield from wrapped(f"The next one of {name} {has}: {rejected_text(found.rejected)}.")
    elif found.quota:
        yield from wrapped(f"The next one of {name} is not allowed: {found.quota}.")


def _pending(response: CapacityResponse, *, wide: bool) -> Iterator[Line]:
    found = response.capacity
    unplaced = found.pending_unplaced
    if response.of and response.pending:
        pods = counted(response.pending, "pending pod")
        yield from wrapped(f"Before them, {found.pending_placed:,} of {pods} find a place.")
    for name, why in unplaced if wide else unplaced[:_MAX_PENDING]:
        yield from wrapped(f"{name}: {chance_text(why, Chance.NEVER)}: {rejected_text(why)}", 4, "  ")
    if not wide and len(unplaced) > _MAX_PENDING:
        yield f"  ... and {len(unplaced) - _MAX_PENDING:,} more, see -o wide"


def _counts(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return ", ".join(f"{name or 'none'} {number:,}" for name, number in ordered)


def _fill(response: CapacityResponse, *, wide: bool) -> str:
    fill = response.capacity.fill
    named = {name: each for name, each in fill.items() if (wide or name in _VISIBLE) and each.allocatable}
    return ", ".join(
        f"{name} {100 * each.requested // each.allocatable}% "
        f"({quantity_text(name, each.requested)} of {quantity_text(name, each.allocatable)})"
        for name, each in named.items()
    )
