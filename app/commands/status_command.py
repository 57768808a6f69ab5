"""`kindred status`: one screen about a running service."""

import sys
from functools import partial
from typing import Unpack

import click

from app.commands.admin_client import ACCESS_OPTIONS, Access, CannotAskError
from app.commands.exit_status import EXIT_NO, EXIT_OK, exit_with_error
from app.commands.output_format import NO_NAMES, OutputFormat, print_output
from app.commands.service_status import service_status
from app.commands.shared_options import output_option, with_options
from app.commands.status_text import status_text


@click.command("status")
@output_option(NO_NAMES)
@with_options(ACCESS_OPTIONS)
def status_command(*, output: OutputFormat, **access: Unpack[Access]) -> None:
    """Print the state of a running service: readiness, release, mirror, leader, cache and last decision.

    With -o wide also each watched resource. Ends with 0 if the service is ready, 1 if not, 2 for errors.
    """
    try:
        status = service_status(access)
    except CannotAskError as error:
        exit_with_error(error)
    print_output(output, status.as_json(), partial(status_text, status))
    sys.exit(EXIT_OK if status.readiness.ready else EXIT_NO)
