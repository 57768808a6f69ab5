"""`kindred explain`: why a pod fits on a node or not, from a running service or from a dump."""

import asyncio
import re
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Literal, NamedTuple, Unpack

import click
import httpx
import msgspec

from app.admin.explain_routes import MAX_SHOWN
from app.commands.admin_client import (
    ACCESS_OPTIONS,
    NOT_UNDERSTOOD,
    Access,
    CannotAskError,
    asked,
    members,
    refusal,
)
from app.commands.dump import SOURCE_OPTIONS, Source, explainer_of, is_of_dump, load_dump
from app.commands.explanation_text import explanation_text
from app.commands.manifests import all_manifests, one_manifest, read_manifests
from app.commands.options import (
    EXIT_NO,
    EXIT_OK,
    OF_EXPLANATIONS,
    clear_errors,
    explaining_settings,
    output_option,
    settings_options,
    with_options,
)
from app.commands.output import OutputFormat, node_name, print_output
from app.explain.explain_request import decode_explain_request
from app.explain.explainer import Detail, Explainer, Explanation
from app.explain.stored_pod import Objects, no_objects
from app.objects.decode import EXTENDER_ARGS, NULL, DecodeError, members_of
from app.process.json_text import decode, encode
from app.process.long_work import LongWork
from app.verbs.request import RecentPods
from app.verbs.wire_in import decode_incoming_pod
from app.wiring.engine import check_explained

DETAIL_OPTIONS: Final = (
    click.option("--why-not", multiple=True, metavar="NODE", help="Show all results of this node. Can be repeated."),
    click.option(
        "--limit",
        type=click.IntRange(0, MAX_SHOWN),
        default=5,
        show_default=True,
        help="Maximum number of domains, pods and nodes in a list.",
    ),
    output_option(),
)
_OF_FILES: Final = re.compile(r"-|\.{0,2}/.*|.*\.(json|ya?ml)", re.DOTALL)
"""Arguments that are files and not pods, whether the file exists or not."""


class Inquiry(NamedTuple):
    """A request of `POST /explain`."""

    body: bytes
    nodes: Sequence[str]
    limit: int
    score: Literal["fitting", "all"] = "fitting"
    pods: frozenset[str] = frozenset()
    """NAMESPACE/NAME or uid of the pods that it names."""

    @property
    def query(self) -> Mapping[str, Sequence[str]]:
        """The parameters of the URL."""
        return {"node": self.nodes, "limit": [str(self.limit)], "score": [self.score]}


class Options(Access, Source):
    """All options of the command."""

    pod: str | None
    file: str | None
    why_not: tuple[str, ...]
    assume: tuple[str, ...]
    remove: tuple[str, ...]
    add_node: tuple[str, ...]
    limit: int
    score: Literal["fitting", "all"]
    config: Path | None
    output: OutputFormat


@click.command("explain", params=settings_options(OF_EXPLANATIONS))
@click.argument("pod", metavar="[NAMESPACE/NAME]", required=False)
@click.option(
    "--file",
    "-f",
    metavar="FILE",
    help="Manifest: a pod, an object with a pod template, or ExtenderArgs; - reads stdin. The name chooses, if there "
    "are several in it.",
)
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
    "--score",
    type=click.Choice(["fitting", "all"]),
    default="fitting",
    show_default=True,
    help="Nodes to score. kube-scheduler scores only nodes that fit.",
)
@with_options(DETAIL_OPTIONS)
@with_options(SOURCE_OPTIONS)
@with_options(ACCESS_OPTIONS)
def explain_command(**options: Unpack[Options]) -> None:
    """Explain why a pod fits on nodes or does not, also under suppositions.

    Calls the admin port of a running service (--server), or reads a dump of a cluster (--snapshot, --demo). Name the
    pod, or give its manifest (-f). With -o name, prints the nodes with the best scores. Ends with 0 if it fits
    somewhere, 1 if nowhere, and 2 for errors.
    """
    of_a_dump = is_of_dump(options)
    with clear_errors(RefusedError):
        inquiry = inquiry_of(options)
        if of_a_dump:
            explanation = _of_dump(inquiry, options)
        else:
            response = asked(options, "POST", "/explain", inquiry.query, inquiry.body)
            explanation = taken(response, options["url"])
    sys.exit(print_explanation(explanation, options["output"]))


def inquiry_of(options: Options) -> Inquiry:
    """Return the request. Raises UsageError, which names the argument."""
    pod, file = options["pod"], options["file"]
    if pod is None and file is None:
        raise click.UsageError("Give NAMESPACE/NAME (or a uid), or -f FILE.")
    nodes = [
        msgspec.Raw(manifest)
        for each in options["add_node"]
        for manifest in all_manifests(f"--add-node {each}", read_manifests("--add-node", each))
    ]
    removed = options["remove"]
    assumed = [_assumed(text) for text in options["assume"]]
    supposed = {"add_nodes": nodes, "remove": removed, "assume": assumed}
    supposed = {name: values for name, values in supposed.items() if values}
    named = {*removed, *(each["pod"] for each in assumed if isinstance(each["pod"], str))}
    if file is not None:
        body = _of_file(f"-f {file}", one_manifest(f"-f {file}", read_manifests("-f", file), pod or ""), supposed)
    else:
        named.add(pod or "")
        body = encode({"pod": pod, **supposed})
    return Inquiry(body, options["why_not"], options["limit"], options["score"], frozenset(named))


def _assumed(text: str) -> dict[str, str | msgspec.Raw]:
    pod, _, node = text.rpartition("@")
    if not pod or not node:
        raise click.UsageError(f"--assume {text}: expected POD@NODE or FILE@NODE.")
    if not _OF_FILES.fullmatch(pod):
        return {"pod": pod, "node": node}
    return {"pod": msgspec.Raw(one_manifest(f"--assume {text}", read_manifests("--assume", pod))), "node": node}


def _of_file(option: str, manifest: bytes, supposed: Mapping[str, object]) -> bytes:
    try:
        fields = EXTENDER_ARGS.fields_of(members_of(manifest))
    except DecodeError as error:
        raise click.UsageError(f"{option}: {error}") from None
    if not fields.keys() & {"Nodes", "NodeNames"}:
        return encode({"pod": msgspec.Raw(manifest), **supposed})
    if not supposed:
        return manifest  # ExtenderArgs are a request already
    names = fields.get("NodeNames", NULL)
    if names == NULL:
        raise click.UsageError(
            f"{option}: NodeNames: required (not Nodes) in ExtenderArgs beside --assume, --remove and --add-node."
        )
    return encode({"pod": fields.get("Pod", NULL), "node_names": names, **supposed})


def _of_dump(inquiry: Inquiry, options: Options) -> Explanation:
    """Explain with the code of a service. Raises SettingsError, SnapshotError, DecodeError and ExplainError."""
    settings = explaining_settings(options)
    check_explained(settings)  # fails before a large dump is loaded
    dump = load_dump(settings, options)
    waiting = RecentPods()
    for raw in dump.pods(inquiry.pods):  # the mirror lacks pods that have ended
        waiting.add(decode_incoming_pod(msgspec.Raw(raw)), raw)
    return asyncio.run(explanation_of(explainer_of(settings, dump, waiting, LongWork()), inquiry, dump.others()))


class RefusedError(Exception):
    """The request was read, but cannot be evaluated. The message names the field."""


def taken(response: httpx.Response, where: str) -> Explanation:
    """Return the explanation in a service's response. Raises RefusedError, CannotAskError."""
    if response.is_success:
        try:
            return decode(response.content, Explanation)
        except msgspec.MsgspecError:
            raise CannotAskError(f"{where}: {NOT_UNDERSTOOD}") from None
    told = members(response)
    if isinstance(told.get("field"), str) and isinstance(detail := told.get("detail"), str):
        raise RefusedError(detail)
    raise CannotAskError(f"{where}: {refusal(response)}")


async def explanation_of(explainer: Explainer, inquiry: Inquiry, others: Objects = no_objects) -> Explanation:
    """Explain with the code of a service. Raises DecodeError and ExplainError."""
    question = decode_explain_request(inquiry.body, explainer.mirror, others)
    detail = Detail(inquiry.nodes, inquiry.limit, score_all=inquiry.score == "all")
    return await explainer.explain(question, detail)


def print_explanation(explanation: Explanation, output: OutputFormat) -> int:
    """Print an explanation and return the exit status: 0 if the pod fits somewhere, 1 if nowhere."""
    best = map(node_name, (each.node for each in explanation.summary.best))
    print_output(output, explanation, partial(explanation_text, explanation), best)
    return EXIT_OK if explanation.summary.fit else EXIT_NO
