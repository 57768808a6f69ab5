"""`kindred doctor`: its options, and its exit status."""

import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import click

from app.api_server.credentials import ConfigurationError
from app.commands.doctor.examination import Inputs, examine
from app.commands.doctor.findings import Report
from app.commands.doctor.report_text import report_text
from app.commands.doctor.service import TlsFiles
from app.commands.output_format import NO_NAMES, OutputFormat, print_output
from app.commands.shared_options import output_option
from app.scheduler_configuration.scheduler_config import UnreadableError
from app.settings import SettingsError

EXIT_ERRORS: Final = 1
EXIT_UNREADABLE: Final = 2
EXIT_WARNINGS: Final = 3


def diagnose(inputs: Inputs, output: OutputFormat, *, strict: bool) -> int:
    """Print the report, and return the exit status."""
    if not (inputs.scheduler_config or inputs.url or inputs.kubeconfig or inputs.context):
        raise click.UsageError("Give --scheduler-config FILE, --url URL, --kubeconfig FILE, or several of them.")
    try:
        report = examine(inputs, time.monotonic, datetime.now(UTC))
    except (UnreadableError, SettingsError, ConfigurationError) as error:
        click.echo(f"Error: {error}", err=True)
        return EXIT_UNREADABLE
    print_output(output, report, partial(report_text, report))
    return exit_status(report, strict=strict)


def exit_status(report: Report, *, strict: bool) -> int:
    """Return 1 where there are errors, 3 where there are only warnings and these count, else 0."""
    if report.summary.errors:
        return EXIT_ERRORS
    return EXIT_WARNINGS if strict and report.summary.warnings else 0


_FILE: Final = click.Path(path_type=Path, dir_okay=False)


@click.command("doctor")
@click.option("--scheduler-config", type=_FILE, help="File of a KubeSchedulerConfiguration, YAML or JSON.")
@click.option("--extender", default="", help="Which extender is Kindred: how its urlPrefix begins.")
@click.option("--scheduler-profile", default="", help="Look at this profile of kube-scheduler alone, by schedulerName.")
@click.option("--url", default="", help="A running Kindred to ask.")
@click.option("--ca-file", type=_FILE, help="Whom to trust for --url and --admin-url, PEM.  [default: the machine's]")
@click.option("--cert-file", type=_FILE, help="Certificate of this client, PEM.")
@click.option("--key-file", type=_FILE, help="Key of that certificate, PEM.")
@click.option("--config", type=_FILE, help="File of Kindred's settings (KINDRED_CONFIG); the environment wins over it.")
@click.option("--admin-url", default="", help="Admin port of a running Kindred, to take its settings from.")
@click.option("--admin-token-file", type=_FILE, help="File with the bearer token of the admin port.")
@click.option("--kubeconfig", help="Kubeconfig file of the cluster, to see whether Kindred's rights are enough.")
@click.option("--context", help="Context of the kubeconfig.  [default: its current one]")
@click.option("--service-account", default="kindred/kindred", show_default=True, help="NAMESPACE/NAME of Kindred's.")
@output_option(NO_NAMES)
@click.option("--strict", is_flag=True, help="End with 3 where there are warnings and no errors.")
def doctor_command(  # noqa: PLR0913  # its options
    *,
    ca_file: Path | None,
    cert_file: Path | None,
    key_file: Path | None,
    output: OutputFormat,
    strict: bool,
    scheduler_config: Path | None,
    config: Path | None,
    admin_token_file: Path | None,
    kubeconfig: str | None,
    context: str | None,
    **names: str,
) -> None:
    """Say what is wrong with a registration or a running service, and how to mend it.

    Ends with 0 if nothing is, 1 for errors, 2 for input that cannot be read, and with --strict 3 for warnings.
    """
    inputs = Inputs(
        scheduler_config=scheduler_config,
        tls=TlsFiles(ca_file, cert_file, key_file),
        config=config,
        admin_token_file=admin_token_file,
        kubeconfig=kubeconfig,
        context=context,
        **names,
    )
    raise SystemExit(diagnose(inputs, output, strict=strict))
