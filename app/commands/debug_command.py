"""`kindred debug`: logs the requests of a pod in full, through the admin port of a running service."""

import re
from http import HTTPStatus
from typing import Final, Unpack

import click

from app.commands.admin_client import ACCESS_OPTIONS, NOT_UNDERSTOOD, Access, CannotAskError, asked, members, refusal
from app.commands.command_group import CommandGroup
from app.commands.exit_status import exit_with_error
from app.commands.printer import print_line, print_lines
from app.commands.shared_options import with_options
from app.commands.text_columns import wrapped
from app.telemetry.debugged_pods import MAX_SECONDS

_DURATION: Final = re.compile(r"(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,6})s)?")
_POD: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_UNITS: Final = (3600, 60, 1)


def seconds_of(duration: str) -> float:
    """Return the seconds of a duration such as 90s, 10m or 1h30m. Raises ValueError, whose message has the format."""
    matched = _DURATION.fullmatch(duration)
    seconds = (
        sum(int(number or 0) * unit for number, unit in zip(matched.groups(), _UNITS, strict=True)) if matched else 0
    )
    if not 0 < seconds <= MAX_SECONDS:
        raise ValueError(f"{duration!r}: expected a duration such as 90s, 10m or 1h30m, of 24h at most")
    return seconds


@click.group("debug", cls=CommandGroup)
def debug_group() -> None:
    """Debug a running service."""


@debug_group.command("pod")
@click.argument("pod", metavar="NAMESPACE/NAME")
@click.option("--for", "duration", default="10m", show_default=True, help="Duration, such as 90s, 10m or 1h30m.")
@click.option("--off", is_flag=True, help="Stop logging them in full.")
@with_options(ACCESS_OPTIONS)
def pod_command(pod: str, duration: str, *, off: bool, **access: Unpack[Access]) -> None:
    """Log every request for a pod in full for a while, at any log level.

    The lines contain the requests and responses, and so the pod's spec. Other pods are not affected. The command calls
    one replica: run it for each.
    """
    try:
        if off:
            _asked(access, "DELETE", _path(pod))
            print_line(f"Requests for {pod} are no longer logged in full.")
            return
        until = _asked(access, "PUT", _path(pod), seconds_of(duration))
    except (CannotAskError, ValueError) as error:
        exit_with_error(error)
    text = (
        f"Every request for {pod} is logged in full until {until}, by the logger kindred.debug_pod at level debug. "
        "A line has the request and the response (8 KiB of each), why nodes failed, and the nodes with the highest "
        "scores."
    )
    print_lines(wrapped(text))


def _path(pod: str) -> str:
    if not _POD.fullmatch(pod):
        raise ValueError(f"{pod!r}: expected NAMESPACE/NAME")
    return f"/debug/pods/{pod}"


def _asked(access: Access, method: str, path: str, seconds: float | None = None) -> str:
    """Return the time until which the pod is logged; empty if it is not logged. Raises CannotAskError."""
    response = asked(access, method, path, None if seconds is None else {"for": f"{seconds:g}"})
    if not response.is_success:
        raise CannotAskError(f"{access['url']}: {refusal(response)}")
    if response.status_code == HTTPStatus.NO_CONTENT:
        return ""
    until = members(response).get("until")
    if until is None:
        raise CannotAskError(f"{access['url']}: {NOT_UNDERSTOOD}")
    return str(until)
