"""`kindred pending`: the pods without a node, the oldest first, of a running service or of a dump."""

import asyncio
import time
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, Unpack

import click
import msgspec

from app.commands.admin_client import ACCESS_OPTIONS, NOT_UNDERSTOOD, Access, CannotAskError, asked, refusal
from app.commands.dump_explainer import dump_explainer
from app.commands.dump_source import OF_A_DUMP_ALONE, SOURCE_OPTIONS, load_dump
from app.commands.exit_status import exit_with_error
from app.commands.output_format import OutputFormat, pod_name, print_output
from app.commands.pending_text import pending_text
from app.commands.settings_commands import (
    OF_EXPLANATIONS,
    ExplanationFlags,
    flags_of_explanations,
    loaded_settings,
    settings_options,
)
from app.commands.shared_options import output_option, refuse_options, with_options
from app.dump.snapshot_file import SnapshotError
from app.explain.pending import PendingPods, PendingPodsExplainer
from app.json_text import decode, encode
from app.long_work import LongWork
from app.settings import SettingsError
from app.verbs.effects import RecentPods
from app.wiring.engine import check_explained

_OF_A_SERVICE: Final = frozenset(Access.__annotations__)
_PATIENCE: Final = 60.0
"""Seconds. The service judges the classes of pods in steps between scheduler requests."""


class Options(Access, ExplanationFlags):
    """All options of the command."""

    namespace: str | None
    all_namespaces: bool
    output: OutputFormat
    snapshot: BinaryIO | None
    demo: bool
    skip_invalid: bool
    config: Path | None


@click.command("pending", params=settings_options(OF_EXPLANATIONS))
@click.option("--namespace", "-n", metavar="NS", help="Only pods of this namespace.  [default: all namespaces]")
@click.option("--all-namespaces", "-A", is_flag=True, help="Pods of all namespaces; overrides -n.")
@output_option()
@with_options(SOURCE_OPTIONS)
@with_options(ACCESS_OPTIONS)
def pending_command(**options: Unpack[Options]) -> None:
    """Print the pending pods, the oldest first: how many nodes each fits on now, and why not on the others.

    Calls the admin port of a running service (--server), or reads a dump of a cluster (--snapshot, --demo). -o wide
    adds the scheduler and the nominated node.
    """
    of_a_dump = options["demo"] or options["snapshot"] is not None
    if of_a_dump:
        refuse_options(_OF_A_SERVICE, "for a running service, not for a dump")
    else:
        refuse_options(OF_A_DUMP_ALONE, "for a dump (--snapshot or --demo), not for a running service")
    namespace = None if options["all_namespaces"] else options["namespace"]
    try:
        answer = _of_dump(options, namespace) if of_a_dump else _of_service(options, namespace)
        pending = decode(answer, PendingPods)
    except (SettingsError, SnapshotError, CannotAskError) as error:
        exit_with_error(error)
    except msgspec.MsgspecError:
        exit_with_error(f"{options['url']}: {NOT_UNDERSTOOD}")
    names = (pod_name(each.pod) for each in pending.pods)
    print_output(options["output"], decode(answer), partial(pending_text, pending, namespace=namespace), names)


def _of_service(access: Access, namespace: str | None) -> bytes:
    """Call a running service. Raises CannotAskError."""
    query = {"namespace": namespace} if namespace is not None else None
    response = asked(access, "GET", "/pending", query, patience=_PATIENCE)
    if not response.is_success:
        raise CannotAskError(f"{access['url']}: {refusal(response)}")
    return response.content


def _of_dump(options: Options, namespace: str | None) -> bytes:
    """Judge with the code of a service. Raises SettingsError and SnapshotError."""
    settings = loaded_settings(options["config"], flags_of_explanations(options))
    check_explained(settings)  # fails before a large dump is loaded
    dump = load_dump(settings, options["snapshot"], demo=options["demo"], skip_invalid=options["skip_invalid"])
    work = LongWork()
    explainer = PendingPodsExplainer(dump_explainer(settings, dump, RecentPods(), work), work, time.time)
    return encode(explainer.view(asyncio.run(explainer.judge()), namespace).told())
