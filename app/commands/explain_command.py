"""`kindred explain`: why a pod fits on a node or not, from a running service or from a dump."""

import asyncio
import sys
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO, Final, Unpack

import click
import msgspec

from app.admin.explain_routes import MAX_SHOWN
from app.commands.admin_client import ACCESS_OPTIONS, Access, CannotAskError, Query, asked
from app.commands.dump_explainer import dump_explainer
from app.commands.dump_source import OF_A_DUMP_ALONE, SOURCE_OPTIONS, Dump, load_dump
from app.commands.exit_status import exit_with_error
from app.commands.explain_answer import RefusedError, explanation_of, print_explanation, taken
from app.commands.explain_inquiry import Arguments, Inquiry, inquiry_of
from app.commands.output_format import OutputFormat
from app.commands.settings_commands import (
    OF_EXPLANATIONS,
    ExplanationFlags,
    flags_of_explanations,
    loaded_settings,
    settings_options,
)
from app.commands.shared_options import output_option, refuse_options, with_options
from app.dump.snapshot_file import SnapshotError
from app.explain.explain_request import ExplainError
from app.long_work import LongWork
from app.objects.decode import DecodeError
from app.settings import SettingsError
from app.verbs.effects import RecentPods
from app.verbs.wire_in import decode_incoming_pod
from app.wiring.engine import check_explained

_OF_A_SERVICE: Final = frozenset(Access.__annotations__)


class Options(Arguments, Access, ExplanationFlags):
    """All options of the command."""

    snapshot: BinaryIO | None
    demo: bool
    skip_invalid: bool
    config: Path | None
    output: OutputFormat


@click.command("explain", params=settings_options(OF_EXPLANATIONS))
@click.argument("pod", metavar="[NAMESPACE/NAME]", required=False)
@click.option(
    "--file",
    "-f",
    metavar="FILE",
    help="Manifest instead of a name: a pod, an object with a pod template, or ExtenderArgs; - reads stdin.",
)
@click.option("--why-not", multiple=True, metavar="NODE", help="Show all results of this node. Can be repeated.")
@click.option(
    "--assume", multiple=True, metavar="POD@NODE", help="Suppose a pod, by name or FILE, on a node. Can be repeated."
)
@click.option("--remove", multiple=True, metavar="POD", help="Suppose that a pod is deleted. Can be repeated.")
@click.option(
    "--add-node",
    multiple=True,
    metavar="FILE",
    help="Suppose the nodes of a manifest; - reads stdin. Can be repeated.",
)
@click.option(
    "--limit",
    type=click.IntRange(0, MAX_SHOWN),
    default=5,
    show_default=True,
    help="Maximum number of domains, pods and nodes in a list.",
)
@click.option(
    "--score",
    type=click.Choice(["fitting", "all"]),
    default="fitting",
    show_default=True,
    help="Nodes to score. kube-scheduler scores only nodes that fit.",
)
@output_option()
@with_options(SOURCE_OPTIONS)
@with_options(ACCESS_OPTIONS)
def explain_command(**options: Unpack[Options]) -> None:
    """Explain why a pod fits on nodes or does not, also under suppositions.

    Calls the admin port of a running service (--server), or reads a dump of a cluster (--snapshot, --demo). Name the
    pod, or give its manifest (-f). With -o name, prints the nodes with the best scores. Ends with 0 if it fits
    somewhere, 1 if nowhere, and 2 for errors.
    """
    of_a_dump = options["demo"] or options["snapshot"] is not None
    if of_a_dump:
        refuse_options(_OF_A_SERVICE, "for a running service, not for a dump")
    else:
        refuse_options(OF_A_DUMP_ALONE, "for a dump (--snapshot or --demo), not for a running service")
    inquiry = inquiry_of(options)
    try:
        answer = _of_dump(inquiry, options) if of_a_dump else _of_service(inquiry, options)
    except (SettingsError, SnapshotError, CannotAskError) as error:
        exit_with_error(error)
    except RefusedError as error:
        exit_with_error(inquiry.told(error.field, str(error)))
    except DecodeError as error:
        exit_with_error(inquiry.told(error.field, error.message))
    except ExplainError as error:
        exit_with_error(inquiry.told(error.field, str(error).removeprefix(f"{error.field}: ")))
    sys.exit(print_explanation(answer, options["output"]))


def _of_service(inquiry: Inquiry, access: Access) -> bytes:
    """Call a running service. Raises CannotAskError, and RefusedError."""
    query: Query = {"node": inquiry.nodes, "limit": inquiry.limit, "score": inquiry.score}
    return taken(asked(access, "POST", "/explain", query, inquiry.body), access["url"])


def _of_dump(inquiry: Inquiry, options: Options) -> bytes:
    """Explain with the code of a service. Raises SettingsError, SnapshotError, DecodeError and ExplainError."""
    settings = loaded_settings(options["config"], flags_of_explanations(options))
    check_explained(settings)  # fails before a large dump is loaded
    dump = load_dump(settings, options["snapshot"], demo=options["demo"], skip_invalid=options["skip_invalid"])
    explainer = dump_explainer(settings, dump, _waiting_pods(dump, inquiry.pods), LongWork())
    return asyncio.run(explanation_of(explainer, inquiry))


def _waiting_pods(dump: Dump, names: Collection[str]) -> RecentPods:
    """Return the named pods of the dump. The mirror lacks pods that have ended."""
    found = RecentPods()
    for raw in dump.pods(names):
        found.add(decode_incoming_pod(msgspec.Raw(raw)), raw)
    return found
