"""`kindred units`: the groups of pods that a running service places together."""

from functools import partial
from typing import Unpack

import click
import msgspec

from app.admin.cluster_routes import Units
from app.commands.admin_client import ACCESS_OPTIONS, NOT_UNDERSTOOD, Access, CannotAskError, asked, refusal
from app.commands.exit_status import exit_with_error
from app.commands.output_format import NO_NAMES, OutputFormat, print_output
from app.commands.shared_options import output_option, with_options
from app.commands.units_text import units_text
from app.json_text import decode


@click.command("units")
@click.option("--namespace", "-n", metavar="NS", help="Only the units of this namespace.  [default: all namespaces]")
@output_option(NO_NAMES)
@with_options(ACCESS_OPTIONS)
def units_command(*, namespace: str | None, output: OutputFormat, **access: Unpack[Access]) -> None:
    """Print the units (groups of pods that are placed all or none), their members by state, and why they wait.

    Calls the admin port of a running service. With -o wide also attempts and times.
    """
    try:
        answer = _of_service(access, namespace)
        units = decode(answer, Units)
    except CannotAskError as error:
        exit_with_error(error)
    except msgspec.MsgspecError:
        exit_with_error(f"{access['url']}: {NOT_UNDERSTOOD}")
    print_output(output, decode(answer), partial(units_text, units, namespace=namespace))


def _of_service(access: Access, namespace: str | None) -> bytes:
    """Call a running service. Raises CannotAskError."""
    response = asked(access, "GET", "/units", {"namespace": namespace} if namespace is not None else None)
    if not response.is_success:
        raise CannotAskError(f"{access['url']}: {refusal(response)}")
    return response.content
