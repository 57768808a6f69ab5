"""`kindred explain`: why this node, why not that one, asked of a running service or of a dump."""

import asyncio
import sys
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO, Final, NoReturn, Unpack

import click
import msgspec

from app.admin.explain_routes import MAX_SHOWN
from app.commands.admin_client import (
    ACCESS_OPTIONS,
    NOT_UNDERSTOOD,
    Access,
    CannotAskError,
    Query,
    asked,
    members,
    refusal,
)
from app.commands.dump_source import OF_A_DUMP_ALONE, SOURCE_OPTIONS, Dump, load_dump
from app.commands.explain_inquiry import Arguments, Inquiry, inquiry_of
from app.commands.explanation_text import explanation_text
from app.commands.printed_answer import OUTPUT_OPTION, Output, print_answer
from app.commands.settings_commands import OF_ANSWERS, AnswerFlags, flags_of_answers, settings_options
from app.commands.shared_options import refuse_options, with_options
from app.configuration import load_configuration
from app.dump.snapshot_file import SnapshotError
from app.explain.explain_error import ExplainError
from app.explain.explain_request import decode_explain_request
from app.explain.explainer import Detail, Explainer, Explanation
from app.json_text import decode, encode
from app.objects.decode import DecodeError
from app.settings import SettingsError
from app.verbs.incoming_pod import decode_incoming_pod
from app.verbs.recent_pods import RecentPods
from app.watch.freshness import OF_A_DUMP
from app.wiring.engine import create_cache, create_partition, create_profile, explained_profile

EXIT_NOWHERE: Final = 1
EXIT_ERROR: Final = 2
_OF_A_SERVICE: Final = frozenset(Access.__annotations__)


class Options(Arguments, Access, AnswerFlags):
    """All options of the command."""

    snapshot: BinaryIO | None
    demo: bool
    skip_invalid: bool
    config: Path | None
    output: Output


class _RefusedError(Exception):
    """The question was read, and cannot be answered; `field` is where in it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@click.command("explain", params=settings_options(OF_ANSWERS))
@click.argument("pod", metavar="[NAMESPACE/NAME]", required=False)
@click.option(
    "--file",
    "-f",
    metavar="FILE",
    help="Manifest of a pod, or of what has a pod template, or ExtenderArgs, instead of a name; - reads stdin.",
)
@click.option("--why-not", multiple=True, metavar="NODE", help="Tell all of this node. Can be repeated.")
@click.option(
    "--assume", multiple=True, metavar="POD@NODE", help="Suppose a pod, by name or FILE, on a node. Can be repeated."
)
@click.option("--remove", multiple=True, metavar="POD", help="Suppose that a pod is gone. Can be repeated.")
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
    help="Domains, pods and nodes where there may be many.",
)
@click.option(
    "--score",
    type=click.Choice(["fitting", "all"]),
    default="fitting",
    show_default=True,
    help="Which nodes are scored: kube-scheduler asks about those that fit.",
)
@OUTPUT_OPTION
@with_options(SOURCE_OPTIONS)
@with_options(ACCESS_OPTIONS)
def explain_command(**options: Unpack[Options]) -> None:
    """Explain why a pod fits on nodes, and why not, and what would be if.

    Asks the admin port of a running service (--url), or a dump of a cluster without one (--snapshot, --demo). The pod
    is named, or its manifest given (-f). Ends with 0 if it fits somewhere, 1 if nowhere, and 2 for errors.
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
        _end(str(error))
    except _RefusedError as error:
        _end(inquiry.told(error.field, str(error)))
    except DecodeError as error:
        _end(inquiry.told(error.field, error.message))
    except ExplainError as error:
        _end(inquiry.told(error.field, str(error).removeprefix(f"{error.field}: ")))
    try:
        explanation = decode(answer, Explanation)
    except msgspec.MsgspecError:
        _end(f"{options['url']}: {NOT_UNDERSTOOD}")
    print_answer(answer, options["output"], lambda: explanation_text(explanation))
    sys.exit(0 if explanation.summary.fit else EXIT_NOWHERE)


def _end(message: str) -> NoReturn:
    click.echo(f"Error: {message}", err=True)
    sys.exit(EXIT_ERROR)


def _of_service(inquiry: Inquiry, access: Access) -> bytes:
    """Ask a running service. Raises CannotAskError, and _RefusedError."""
    query: Query = {"node": inquiry.nodes, "limit": inquiry.limit, "score": inquiry.score}
    response = asked(access, "POST", "/explain", query, inquiry.body)
    if response.is_success:
        return response.content
    told = members(response)
    field, detail = told.get("field"), told.get("detail")
    if isinstance(field, str) and isinstance(detail, str):
        raise _RefusedError(field, detail.removeprefix(f"{field}: "))
    raise CannotAskError(f"{access['url']}: {refusal(response)}")


def _of_dump(inquiry: Inquiry, options: Options) -> bytes:
    """Answer by the same code as a service. Raises SettingsError, SnapshotError, DecodeError and ExplainError."""
    settings = load_configuration(options["config"], flags_of_answers(options)).settings
    profile = create_profile(settings)  # before a large dump is loaded for nothing
    dump = load_dump(settings, options["snapshot"], demo=options["demo"], skip_invalid=options["skip_invalid"])
    create_partition(settings, dump.mirror)
    cache = create_cache(settings, dump.mirror, profile)
    explainer = Explainer(
        explained_profile(settings, profile),
        dump.mirror,
        cache,
        _waiting_pods(dump, inquiry.pods),
        OF_A_DUMP,
        release=dump.release,
    )
    question = decode_explain_request(inquiry.body, dump.mirror)
    detail = Detail(inquiry.nodes, inquiry.limit, score_all=inquiry.score == "all")
    return encode(asyncio.run(explainer.explain(question, detail)))


def _waiting_pods(dump: Dump, names: Collection[str]) -> RecentPods:
    """Return those of the named pods that are on no node, which most questions are about: no mirror holds them."""
    found = RecentPods()
    for raw in dump.pods(names):
        found.add(decode_incoming_pod(msgspec.Raw(raw)), raw)
    return found
