"""`kindred version`: the versions of this program and of a running service, as `kubectl version` prints them."""

import platform
from functools import partial
from typing import Any, Unpack

import click
from pydantic import ValidationError

from app import __version__
from app.admin.health_routes import Version
from app.answered_release import ReleaseStatus
from app.commands.admin_client import ACCESS_OPTIONS, NOT_UNDERSTOOD, Access, CannotAskError, asked, refusal
from app.commands.exit_status import exit_with_error
from app.commands.output_format import NO_NAMES, OutputFormat, print_output
from app.commands.shared_options import output_option, with_options
from app.commands.text_columns import wrapped

"""As kubectl ends where it reaches no server, with the client's version printed all the same."""


@click.command("version")
@click.option("--client", "client_only", is_flag=True, help="Print only the version of this program.")
@output_option(NO_NAMES)
@with_options(ACCESS_OPTIONS)
def version_command(*, client_only: bool, output: OutputFormat, **access: Unpack[Access]) -> None:
    """Print the version of this program, and of a running service with the release of Kubernetes that applies.

    --server can be any port of a service. Ends with 2 if no service responds, after the version of
    this program.
    """
    server: Version | None = None
    problem = ""
    if not client_only:
        try:
            server = service_version(access)
        except CannotAskError as error:
            problem = str(error)
    found: dict[str, Any] = {"client": {"version": __version__, "python": platform.python_version()}}
    if server is not None:
        found["server"] = server.model_dump(mode="json")
    print_output(output, found, partial(_text, server))
    if problem:
        exit_with_error(problem)


def service_version(access: Access) -> Version:
    """Return the response of `GET /version`. Raises CannotAskError."""
    response = asked(access, "GET", "/version")
    if not response.is_success:
        raise CannotAskError(f"{access['url']}: {refusal(response)}")
    try:
        return Version.model_validate_json(response.content)
    except ValidationError:
        raise CannotAskError(f"{access['url']}: {NOT_UNDERSTOOD}") from None


def kubernetes_text(version: Version) -> str:
    """Return the release of Kubernetes that a service applies, and its source, as one line."""
    return str(ReleaseStatus(**version.kubernetes.model_dump()))


def _text(server: Version | None, *, wide: bool) -> list[str]:
    lines = [f"Client Version: {__version__}"]
    if wide:
        lines.append(f"Client Python: {platform.python_version()}")
    if server is not None:
        lines.append(f"Server Version: {server.version}")
        if wide:
            lines.append(f"Server Python: {server.python}")
        lines.append(f"Answers as: {kubernetes_text(server)}")
    return [line for text in lines for line in wrapped(text, 2, "")]
