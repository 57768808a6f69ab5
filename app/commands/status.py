"""`kindred status`: the state of a running service on one screen, from several routes of its admin port."""

import sys
from collections.abc import Iterator
from functools import partial
from http import HTTPStatus
from typing import Any, Final, NamedTuple, Unpack

import click
import msgspec

from app.admin.decisions_routes import LastDecisions
from app.admin.equivalence_routes import CacheState, Totals
from app.admin.health_routes import Readiness, ResourceReadiness, Version
from app.commands.admin_client import ACCESS_OPTIONS, Access, get_response, understood
from app.commands.options import EXIT_NO, EXIT_OK, clear_errors, output_option, with_options
from app.commands.output import NO_NAMES, Line, OutputFormat, labelled, print_output, styled, table, wrapped
from app.feeds.freshness import cause_of
from core.explaining.words import counted

_LABELS: Final = 12
"""Columns of the names at the left."""
_MIB: Final = 1024 * 1024
_MAX_LISTED: Final = 4
"""Problems of resources, without -o wide."""
_HEADS: Final = ("RESOURCE", "STATE", "LAST BYTE", "PROBLEM")


@click.command("status")
@output_option(NO_NAMES)
@with_options(ACCESS_OPTIONS)
def status_command(*, output: OutputFormat, **access: Unpack[Access]) -> None:
    """Print the state of a running service: readiness, release, mirror, leader, cache and last decision.

    With -o wide also each watched resource. Ends with 0 if the service is ready, 1 if not, 2 for errors.
    """
    with clear_errors():
        status = service_status(access)
    print_output(output, status.as_json(), partial(status_text, status))
    sys.exit(EXIT_OK if status.readiness.ready else EXIT_NO)


class Status(NamedTuple):
    """The state of a service within a short time: each route is called once."""

    url: str
    readiness: Readiness
    version: Version
    cache: Totals | None
    """None if the equivalence cache is off."""
    decisions: LastDecisions
    """Only the last decision."""

    def as_json(self) -> dict[str, Any]:
        """Return the value for JSON and YAML."""
        decisions = self.decisions
        return {
            "server": self.url,
            "readiness": self.readiness.model_dump(mode="json"),
            "version": self.version,
            "equivalence_cache": self.cache,
            "decisions": {
                "noted": decisions.noted,
                "kept": decisions.kept,
                "last": next(iter(decisions.decisions), None),
            },
        }


def service_status(access: Access) -> Status:
    """Call the admin port. Raises CannotAskError."""
    ready, version = get_response(access, "GET", "/readyz"), get_response(access, "GET", "/version")
    cache, decisions = _cache(access), get_response(access, "GET", "/debug/decisions", {"limit": 1})
    return Status(
        access["url"],
        understood(access["url"], ready, Readiness.model_validate_json, HTTPStatus.SERVICE_UNAVAILABLE),
        understood(access["url"], version, msgspec.json.Decoder(Version).decode),
        cache,
        understood(access["url"], decisions, msgspec.json.Decoder(LastDecisions).decode),
    )


def _cache(access: Access) -> Totals | None:
    response = get_response(access, "GET", "/debug/equivalence", {"limit": 0})
    if response.status_code == HTTPStatus.CONFLICT:  # the cache is off
        return None
    return understood(access["url"], response, msgspec.json.Decoder(CacheState).decode).totals


def status_text(status: Status, *, wide: bool) -> Iterator[Line]:
    """Yield the status as lines."""
    readiness = status.readiness
    yield from _service(status)
    yield from _line("Version", f"{status.version.version}, Python {status.version.python}")
    yield from _line("Release", str(status.version.kubernetes))
    yield from _line("Mirror", _mirror(readiness))
    yield from _resources(readiness, wide=wide)
    yield from _line("Leader", _leader(readiness.leader))
    yield from _line("Cache", _cache_text(status.cache))
    yield from _line("Decisions", _decisions(status))
    if wide and readiness.resources:
        yield ""
        rows = [(name, *_row(resource)) for name, resource in readiness.resources.items()]
        yield from table(_HEADS, rows, 0, wide=True)


_line: Final = partial(labelled, width=_LABELS)


def _service(status: Status) -> Iterator[Line]:
    ready = status.readiness.ready
    lines = _line("Service", f"{status.url}: {'ready' if ready else 'not ready'}")
    yield from styled(lines, "green" if ready else "red", bold=True)
    for problem in status.readiness.problems:
        yield from wrapped(problem, _LABELS)


def _mirror(readiness: Readiness) -> str:
    stored = (
        counted(readiness.nodes, "node"),
        counted(readiness.pods, "pod"),
        f"{readiness.pending:,} pending",
        counted(readiness.namespaces, "namespace"),
    )
    return f"{', '.join(stored)}, at generation {readiness.generation}"


def _resources(readiness: Readiness, *, wide: bool) -> Iterator[Line]:
    if not readiness.resources:
        yield from _line("Resources", "none is watched: the mirror is loaded from a dump")
        return
    behind: dict[tuple[str, str], list[str]] = {}
    for name, each in readiness.resources.items():
        if _is_behind(each):
            state, _, problem = _row(each)
            behind.setdefault((state, cause_of(problem)), []).append(name)
    number = sum(map(len, behind.values()))
    followed = f"{counted(len(readiness.resources), 'resource')} followed"
    yield from _line("Resources", f"{followed}, {f'{number} behind' if number else 'none behind'}")
    if wide:  # the table has them
        return
    by_number = sorted(behind.items(), key=lambda each: -len(each[1]))
    for (state, problem), names in by_number[:_MAX_LISTED]:
        ages = [age for name in names if (age := readiness.resources[name].seconds_since_last_byte) is not None]
        last = f"{state}, {max(ages):.1f} s ago" if ages else state
        yield from wrapped(": ".join(filter(None, (", ".join(names), last, problem))), _LABELS + 2, " " * _LABELS)
    if left := sum(len(names) for _, names in by_number[_MAX_LISTED:]):
        yield from wrapped(f"and {left} more: -o wide", _LABELS)


def _is_behind(resource: ResourceReadiness) -> bool:
    return not resource.absent and (not resource.synced or resource.problem is not None)


def _row(resource: ResourceReadiness) -> tuple[str, str, str]:
    state = "absent" if resource.absent else "synced" if resource.synced else "not synced"
    age = resource.seconds_since_last_byte
    rule = f"missing RBAC rule: {resource.missing_rbac_rule}" if resource.missing_rbac_rule else ""
    problem = "; ".join(filter(None, (resource.problem, rule)))
    return state, "" if age is None else f"{age:.1f} s ago", problem


def _leader(leader: str | None) -> str:
    if leader is None:
        return "no leader election"
    return leader or "none is known"


def _cache_text(totals: Totals | None) -> str:
    if totals is None:
        return "off"
    used = f"{totals.bytes / _MIB:.1f} of {totals.max_bytes / _MIB:,.0f} MiB"
    rate = "no lookup yet" if totals.hit_rate is None else f"hit rate {totals.hit_rate:.1%}"
    wrong = f", {counted(totals.mismatches, 'mismatch', 'mismatches')}" if totals.mismatches else ""
    return f"{counted(totals.classes, 'class', 'classes')}, {used}, {rate}{wrong}"


def _decisions(status: Status) -> str:
    decisions = status.decisions
    text = f"{decisions.noted:,} since the start"
    for last in decisions.decisions:
        of_pod = f" of {last.pod}" if last.pod else ""
        text += f"; the last one, {last.id}: {last.verb}{of_pod} at {last.at}: {last.outcome.value}"
    return text
