"""`kindred doctor`: its options, and its exit status (app/commands/options.py)."""

import sys
from functools import partial
from pathlib import Path
from typing import Final, Unpack

import click

from app.commands.doctor.examination import Inputs, examine
from app.commands.doctor.findings import report_text
from app.commands.options import EXIT_NO, EXIT_OK, clear_errors, output_option
from app.commands.output import NO_NAMES, OutputFormat, print_output

_FILE: Final = click.Path(path_type=Path, dir_okay=False)


@click.command("doctor")
@click.option("--scheduler-config", type=_FILE, help="File of a KubeSchedulerConfiguration, YAML or JSON.")
@click.option("--extender", default="", help="Beginning of the urlPrefix of the extender that is Kindred.")
@click.option(
    "--scheduler-feature-gates",
    metavar="TEXT",
    help="Value of kube-scheduler's --feature-gates, or an empty text if it has no such flag.",
)
@click.option("--url", default="", help="URL of a running Kindred to check.")
@click.option("--ca-file", type=_FILE, help="Certificate authorities of the URL, PEM.  [default: the machine's]")
@click.option("--cert-file", type=_FILE, help="Certificate of this client, PEM.")
@click.option("--key-file", type=_FILE, help="Key of that certificate, PEM.")
@click.option("--config", type=_FILE, help="File of Kindred's settings (KINDRED_CONFIG); the environment overrides it.")
@click.option("--kubeconfig", help="Kubeconfig file of the cluster, to check the rights of Kindred.")
@click.option("--context", help="Context of the kubeconfig.  [default: its current context]")
@click.option("--service-account", default="kindred/kindred", show_default=True, help="NAMESPACE/NAME of Kindred.")
@output_option(NO_NAMES)
@click.option("--strict", is_flag=True, help="End with 1 for warnings, too.")
def doctor_command(*, output: OutputFormat, strict: bool, **options: Unpack[Inputs]) -> None:
    """Check a registration or a running service, and print errors with their fixes.

    Ends with 0 if no error was found, 1 if one was, and 2 for input that cannot be read.
    """
    if not (options["scheduler_config"] or options["url"] or options["kubeconfig"] or options["context"]):
        raise click.UsageError("Give --scheduler-config FILE, --url URL, --kubeconfig FILE, or several of them.")
    with clear_errors():
        report = examine(options)
    print_output(output, report, partial(report_text, report))
    count = report.summary
    sys.exit(EXIT_NO if count.errors or (strict and count.warnings) else EXIT_OK)
