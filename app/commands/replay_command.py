"""`kindred replay`: evaluates a recent decision again, in the service as it is now or with a dump."""

import re
import sys
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, Unpack

import click
import msgspec

from app.admin.decisions_routes import MAX_SHOWN
from app.commands.admin_client import ACCESS_OPTIONS, NOT_UNDERSTOOD, Access, CannotAskError, asked, refusal
from app.commands.dump_source import OF_A_DUMP_ALONE, SOURCE_OPTIONS, load_dump
from app.commands.exit_status import EXIT_NO, EXIT_OK, exit_with_error
from app.commands.manifests import read_manifests
from app.commands.output_format import OutputFormat, node_name, print_output
from app.commands.replay_text import replay_text
from app.commands.saved_decision import decode_decision
from app.commands.settings_commands import OF_ANSWERS, AnswerFlags, flags_of_answers, loaded_settings, settings_options
from app.commands.shared_options import output_option, refuse_options, with_options
from app.dump.snapshot_file import SnapshotError
from app.explain.decisions import RecordedDecision
from app.explain.replay import NotReplayableError, Replay
from app.json_text import decode, encode
from app.objects.decode import DecodeError
from app.settings import SettingsError
from app.wiring.engine import create_profile, create_replayer

_NUMBER: Final = re.compile(r"[0-9]+")
_OF_A_SERVICE: Final = frozenset(Access.__annotations__)


class Options(Access, AnswerFlags):
    """All options of the command."""

    decision: str
    limit: int
    output: OutputFormat
    snapshot: BinaryIO | None
    demo: bool
    skip_invalid: bool
    config: Path | None


@click.command("replay", params=settings_options(OF_ANSWERS))
@click.argument("decision")
@click.option(
    "--limit",
    type=click.IntRange(0, MAX_SHOWN),
    default=20,
    show_default=True,
    help="Maximum number of differing nodes to print.",
)
@output_option()
@with_options(SOURCE_OPTIONS)
@with_options(ACCESS_OPTIONS)
def replay_command(**options: Unpack[Options]) -> None:
    """Evaluate a recent decision again, and print the differences.

    DECISION is the number of a decision that a running service keeps (--server), or a file with the response of GET
    /debug/decisions/N of the admin port; - reads stdin. The service evaluates it with its present state, or the command
    with a dump (--snapshot, --demo). A file needs a dump. Ends with 0 if the result is the same, 1 if it differs, and 2
    for errors.
    """
    of_a_dump = options["demo"] or options["snapshot"] is not None
    _refuse_contradictions(options, of_a_dump=of_a_dump)
    try:
        answer = _of_dump(options) if of_a_dump else _of_service(options)
    except (SettingsError, SnapshotError, CannotAskError) as error:
        exit_with_error(error)
    try:
        replay = decode(answer, Replay)
    except msgspec.MsgspecError:
        exit_with_error(f"{options['url']}: {NOT_UNDERSTOOD}")
    text = partial(replay_text, replay, of_a_dump=of_a_dump)
    differing = map(node_name, (each.node for each in replay.differences))
    print_output(options["output"], decode(answer), text, differing)
    sys.exit(EXIT_OK if replay.same else EXIT_NO)


def _refuse_contradictions(options: Options, *, of_a_dump: bool) -> None:
    """Reject options that exclude each other. Raises UsageError."""
    decision, snapshot = options["decision"], options["snapshot"]
    if not _NUMBER.fullmatch(decision):
        refuse_options(_OF_A_SERVICE, "for a decision by its number, not from a file")
        if not of_a_dump:
            raise click.UsageError(
                f"DECISION {decision}: not a number, so a file. A file needs a dump: give --snapshot FILE or --demo."
            )
    if not of_a_dump:
        refuse_options(OF_A_DUMP_ALONE, "for a dump (--snapshot or --demo), not for a running service")
    if decision == "-" and snapshot is sys.stdin.buffer:
        raise click.UsageError("DECISION -: --snapshot reads standard input already.")


def _of_service(options: Options) -> bytes:
    """Evaluate it again in the running service. Raises CannotAskError."""
    path = f"/debug/decisions/{options['decision']}/replay"
    response = asked(options, "POST", path, {"limit": options["limit"]})
    if not response.is_success:
        raise CannotAskError(f"{options['url']}: {refusal(response)}")
    return response.content


def _of_dump(options: Options) -> bytes:
    """Evaluate it again over a dump. Raises SettingsError, SnapshotError and CannotAskError."""
    settings = loaded_settings(options["config"], flags_of_answers(options))
    create_profile(settings)  # fails before a large dump is loaded
    decision = _told(options) if _NUMBER.fullmatch(options["decision"]) else _saved(options["decision"])
    dump = load_dump(settings, options["snapshot"], demo=options["demo"], skip_invalid=options["skip_invalid"])
    if decision.release:
        dump.release.take(decision.release, "decision")
    try:
        return encode(create_replayer(settings, dump.mirror).replay(decision, options["limit"]))
    except NotReplayableError as error:
        raise CannotAskError(f"decision {decision.number}: {error}") from None


def _told(options: Options) -> RecordedDecision:
    response = asked(options, "GET", f"/debug/decisions/{options['decision']}")
    if not response.is_success:
        raise CannotAskError(f"{options['url']}: {refusal(response)}")
    try:
        return decode_decision(response.content)
    except DecodeError:
        raise CannotAskError(f"{options['url']}: {NOT_UNDERSTOOD}") from None


def _saved(file: str) -> RecordedDecision:
    try:
        return decode_decision(read_manifests("DECISION", file))
    except DecodeError as error:
        raise click.UsageError(f"DECISION {file}: {error}; expected the response of GET /debug/decisions/N.") from None
