"""`--dry-run-create`: pods that come again as the API server makes them.

An option, because questions only read otherwise. A dry run stores nothing, but it needs the right to create pods, calls
webhooks, and stands in the audit log as a request that creates.
"""

from typing import Final

import click

from app.api_server.client import ApiClient
from app.commands.kubeconfig import client_of, credentials_of
from app.commands.what_if.source import QuestionSource
from app.simulation.dry_runs import DryRuns

dry_run_create_option: Final = click.option(
    "--dry-run-create",
    is_flag=True,
    help="Ask the API server to create the pods that come again, with dryRun=All: nothing is stored. It adds what"
    " webhooks, policies and LimitRanges add. Needs the right to create pods.",
)


class CreatingSource(QuestionSource):
    """The value of the option, too."""

    dry_run_create: bool


def creator_of(options: CreatingSource) -> DryRuns | None:
    """Return what asks the API server of a kubeconfig until the command ends, None unless it is wanted."""
    if not options["dry_run_create"]:
        return None

    async def connect() -> ApiClient:
        return client_of(await credentials_of(options), options)

    dry_runs = DryRuns(connect)
    click.get_current_context().call_on_close(dry_runs.close)
    return dry_runs
