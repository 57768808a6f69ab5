"""`kindred units`: the groups of pods that are placed together, each with its members by state."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, Unpack

import click
import msgspec

from app.admin.cluster_routes import Units
from app.commands.admin_client import ACCESS_OPTIONS, Access, get_response, understood
from app.commands.options import clear_errors, output_option, with_options
from app.commands.output import NO_NAMES, Line, OutputFormat, age_text, print_output, styled, table, wrapped
from core.explaining.words import counted
from core.gangs.unit import PackingStatus, SchedulingStatus, UnitStatus

_HEADS: Final = ("NAMESPACE", "NAME", "STATUS", "SCHEDULED", "RESERVED", "PENDING", "AGE", "REASON")
_MORE_HEADS: Final = (
    "PLACED BY",
    "BOUND",
    "ASSUMED",
    "TERMINATING",
    "ENDED",
    "PRIORITY",
    "ATTEMPTS",
    "RESERVED SINCE",
    "TIMEOUT",
    "PACKING",
    "NODES",
    "CONDITIONS",
)


@click.command("units")
@click.option("--namespace", "-n", metavar="NS", help="Only the units of this namespace.  [default: all namespaces]")
@output_option(NO_NAMES)
@with_options(ACCESS_OPTIONS)
def units_command(*, namespace: str | None, output: OutputFormat, **access: Unpack[Access]) -> None:
    """Print the units (groups of pods that are placed all or none), their members by state, and why they wait.

    Calls the admin port of a running service. With -o wide also attempts and times.
    """
    with clear_errors():
        response = get_response(access, "GET", "/units", {"namespace": namespace} if namespace is not None else None)
        units = understood(access["url"], response, msgspec.json.Decoder(Units).decode)
    print_output(output, units, partial(units_text, units, namespace=namespace))


def units_text(found: Units, *, namespace: str | None, wide: bool) -> Iterator[Line]:
    """Yield the units as lines. With a namespace there is no column for it."""
    units = found.units
    within = f" in namespace {namespace}" if namespace else ""
    if not units:
        yield f"No units{within}."
        return
    by_status = Counter(each.status for each in units)
    parts = [f"{by_status[status]:,} {status.value}" for status in SchedulingStatus if by_status[status]]
    text = f"{counted(len(units), 'unit')}{within}: {', '.join(parts)}"
    yield from styled(wrapped(text, 2, ""), bold=True)
    yield ""
    first = 1 if namespace else 0
    rows = [_row(each, wide=wide)[first:] for each in units]
    yield from table((*_HEADS, *(_MORE_HEADS if wide else ()))[first:], rows, 0, wide=wide)
    for each in units:
        if each.packing is not None and each.packing.problem:
            yield ""
            yield from wrapped(f"{each.unit} is placed as spread: {each.packing.problem}", 2, "")


def _row(unit: UnitStatus, *, wide: bool) -> Sequence[str]:
    of_namespace, _, name = unit.unit.partition("/")
    scheduled = f"{unit.bound + unit.assumed}/{unit.minimum or '?'}"
    cells = [
        of_namespace,
        name,
        unit.status.value,
        scheduled,
        str(unit.reserved),
        str(unit.pending),
        _age(unit.asked),
        unit.reason or "-",
    ]
    if wide:
        cells += [unit.placed_by.value, *map(str, (unit.bound, unit.assumed, unit.terminating))]
        cells += [*_of_kindred(unit), "; ".join(map(str, unit.conditions)) or "-"]
    return cells


def _of_kindred(unit: UnitStatus) -> Sequence[str]:
    """Return the cells from ENDED to NODES. A unit of kube-scheduler has only a priority."""
    packing = unit.packing
    if packing is None:
        return "-", str(unit.priority), "-", "-", "-", "-", "-"
    return (
        *map(str, (unit.ended, unit.priority, unit.attempts)),
        _age(unit.reserved_since),
        f"{unit.timeout:g}s" if unit.timeout else "-",
        packing_text(packing),
        str(packing.nodes),
    )


def packing_text(packing: PackingStatus) -> str:
    """Return how members are packed: the way, and for `near` the topology key and the number of domains."""
    if packing.domains is None:
        return packing.way.value
    return f"{packing.way.value} {packing.topology_key} ({counted(packing.domains, 'domain')})"


def _age(seconds: float | None) -> str:
    return "-" if seconds is None else age_text(seconds)
