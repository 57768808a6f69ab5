"""`kindred diff`: compares the mirror of a running service with the lists of the API server."""

import sys
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final, Unpack

import click
import msgspec

from app.commands.admin_client import ACCESS_OPTIONS, NOT_UNDERSTOOD, Access, CannotAskError, asked, refusal
from app.commands.diff_text import diff_text
from app.commands.exit_status import EXIT_NO, EXIT_OK, exit_with_error
from app.commands.output_format import OutputFormat, print_output
from app.commands.shared_options import output_option, with_options
from app.json_text import decode
from app.objects.resources import RESOURCES
from core.mirror.comparer import Differences

_PATIENCE: Final = 600.0
"""Seconds. In a large cluster the service takes minutes: it lists twice, in steps between scheduler requests."""
_NAMES: Final[Mapping[str, str]] = {
    each.name: ".".join(filter(None, (each.api_kind.lower(), each.group))) for each in RESOURCES.values()
}
"""Resource -> prefix of its object names in kubectl: `storageclass.storage.k8s.io`."""


@click.command("diff")
@click.option(
    "--settle",
    type=click.FloatRange(0, 60),
    default=1.0,
    show_default=True,
    help="Seconds that a difference must last.",
)
@output_option()
@with_options(ACCESS_OPTIONS)
def diff_command(*, settle: float, output: OutputFormat, **access: Unpack[Access]) -> None:
    """Print the differences between the mirror of a running service and new lists of the API server.

    Ends with 0 if nothing differs, 1 if something does, and 2 for errors.
    """
    try:
        found = _found(access, settle)
    except CannotAskError as error:
        exit_with_error(error)
    print_output(output, found, partial(diff_text, found), _names(found))
    sys.exit(EXIT_NO if any(found.values()) else EXIT_OK)


def _found(access: Access, settle: float) -> dict[str, Differences]:
    """Return the differences by resource. Raises CannotAskError."""
    response = asked(access, "GET", "/debug/mirror/diff", {"settle": f"{settle:g}"}, patience=_PATIENCE)
    if not response.is_success:
        raise CannotAskError(f"{access['url']}: {refusal(response)}")
    try:
        return decode(response.content, dict[str, Differences])
    except msgspec.MsgspecError:
        raise CannotAskError(f"{access['url']}: {NOT_UNDERSTOOD}") from None


def _names(found: Mapping[str, Differences]) -> Iterator[str]:
    for resource, differences in found.items():
        for each in (*differences.missed, *differences.redundant, *differences.differing):
            yield f"{_NAMES.get(resource, resource)}/{each.name.rpartition('/')[2]}"
