"""Arguments of `kindred explain` to a request of `POST /explain`, and fields of the request back to arguments."""

import asyncio
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, NamedTuple, TypedDict, Unpack

import click
import httpx
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
from app.commands.dump import OF_A_DUMP_ALONE, SOURCE_OPTIONS, Dump, dump_explainer, load_dump
from app.commands.explanation_text import explanation_text
from app.commands.manifests import all_manifests, one_manifest, read_manifests
from app.commands.options import (
    EXIT_NO,
    EXIT_OK,
    OF_EXPLANATIONS,
    ExplanationFlags,
    exit_with_error,
    flags_of_explanations,
    loaded_settings,
    output_option,
    refuse_options,
    settings_options,
    with_options,
)
from app.commands.output import OutputFormat, node_name, print_output
from app.dump.snapshot_file import SnapshotError
from app.explain.explain_request import ExplainError, decode_explain_request
from app.explain.explainer import Detail, Explainer, Explanation
from app.objects.decode import NULL, DecodeError
from app.objects.go_struct import EXTENDER_ARGS, members_of
from app.process.json_text import decode, encode
from app.process.long_work import LongWork
from app.settings.settings import SettingsError
from app.verbs.effects import RecentPods
from app.verbs.wire_in import decode_incoming_pod
from app.wiring.engine import check_explained

_OF_FILES: Final = re.compile(r"-|\.{0,2}/.*|.*\.(json|ya?ml)", re.DOTALL)
"""Arguments that are files and not pods, whether the file exists or not."""


class Arguments(TypedDict):
    """The arguments that make the request."""

    pod: str | None
    file: str | None
    why_not: tuple[str, ...]
    assume: tuple[str, ...]
    remove: tuple[str, ...]
    add_node: tuple[str, ...]
    limit: int
    score: Literal["fitting", "all"]


class Inquiry(NamedTuple):
    """A request, with the source of each part."""

    body: bytes
    pods: frozenset[str]
    """NAMESPACE/NAME or uid of the pods that it names."""
    nodes: Sequence[str]
    limit: int
    score: Literal["fitting", "all"]
    pod_from: str
    """The argument that has the pod, and every field that `origins` lacks."""
    origins: Mapping[str, str]
    """Field -> the argument that it is from."""

    def told(self, field: str, message: str) -> str:
        """Return the error of a field, with the argument that it is from."""
        for begin, origin in self.origins.items():
            rest = field.removeprefix(begin)
            if field.startswith(begin) and rest[:1] in {"", "."}:
                return ": ".join(filter(None, (origin, rest.removeprefix("."), message)))
        return ": ".join(filter(None, (self.pod_from, field, message)))


class _Supposed:
    """The suppositions of the request while it is built: its members, with their sources."""

    def __init__(self, arguments: Arguments) -> None:
        self.members: dict[str, list[Any]] = {}
        self.origins: dict[str, str] = {"add_nodes": "--add-node", "remove": "--remove", "assume": "--assume"}
        self.pods: set[str] = set()
        for file in arguments["add_node"]:
            self._add_nodes(file)
        for text in arguments["remove"]:
            self._add("remove", _utf_8("--remove", text), "--remove")
            self.pods.add(text)
        for text in arguments["assume"]:
            self._assume(_utf_8("--assume", text))

    def _add_nodes(self, file: str) -> None:
        option = f"--add-node {file}"
        for manifest in all_manifests(option, read_manifests("--add-node", file)):
            self._add("add_nodes", msgspec.Raw(manifest), option)

    def _assume(self, text: str) -> None:
        pod, _, node = text.rpartition("@")
        if not pod or not node:
            raise click.UsageError(f"--assume {text}: expected POD@NODE or FILE@NODE.")
        if not _OF_FILES.fullmatch(pod):
            self.pods.add(pod)
            self._add("assume", {"pod": pod, "node": node}, "--assume", ".pod")
            return
        option = f"--assume {text}"
        manifest = one_manifest(option, read_manifests("--assume", pod))
        self._add("assume", {"pod": msgspec.Raw(manifest), "node": node}, option, ".pod")

    def _add(self, member: str, value: object, origin: str, below: str = "") -> None:
        place = f"{member}[{len(self.members.setdefault(member, []))}]"
        self.members[member].append(value)
        self.origins.update({f"{place}{below}": origin, place: origin})  # longer first: `told` takes the first match


def inquiry_of(arguments: Arguments) -> Inquiry:
    """Return the request. Raises UsageError, which names the argument."""
    pod, file = arguments["pod"], arguments["file"]
    if (pod is None) == (file is None):
        raise click.UsageError("Give either NAMESPACE/NAME (or a uid), or -f FILE.")
    supposed = _Supposed(arguments)
    if file is not None:
        pod_from = f"-f {file}"
        body = _of_file(pod_from, one_manifest(pod_from, read_manifests("-f", file)), supposed.members)
    else:
        pod_from = "POD"
        supposed.pods.add(_utf_8(pod_from, pod or ""))
        body = encode({"pod": pod, **supposed.members})
    return Inquiry(
        body,
        frozenset(supposed.pods),
        [_utf_8("--why-not", name) for name in arguments["why_not"]],
        arguments["limit"],
        arguments["score"],
        pod_from,
        {"pod": pod_from, "node": "--why-not", **supposed.origins},
    )


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


def _utf_8(argument: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise click.UsageError(f"{argument}: not UTF-8.") from None
    return text


class RefusedError(Exception):
    """The request was read, but cannot be evaluated. `field` is the wrong field."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def taken(response: httpx.Response, where: str) -> bytes:
    """Return the explanation in a service's response, as JSON. Raises RefusedError, CannotAskError."""
    if response.is_success:
        try:
            decode(response.content, Explanation)
        except msgspec.MsgspecError:
            raise CannotAskError(f"{where}: {NOT_UNDERSTOOD}") from None
        return response.content
    told = members(response)
    field, detail = told.get("field"), told.get("detail")
    if isinstance(field, str) and isinstance(detail, str):
        raise RefusedError(field, detail.removeprefix(f"{field}: "))
    raise CannotAskError(f"{where}: {refusal(response)}")


async def explanation_of(explainer: Explainer, inquiry: Inquiry) -> bytes:
    """Explain with the code of a service. Raises DecodeError and ExplainError."""
    question = decode_explain_request(inquiry.body, explainer.mirror)
    detail = Detail(inquiry.nodes, inquiry.limit, score_all=inquiry.score == "all")
    return encode(await explainer.explain(question, detail))


def print_explanation(answer: bytes, output: OutputFormat) -> int:
    """Print an explanation and return the exit status: 0 if the pod fits somewhere, 1 if nowhere."""
    explanation = decode(answer, Explanation)
    best = map(node_name, (each.node for each in explanation.summary.best))
    print_output(output, decode(answer), partial(explanation_text, explanation), best)
    return EXIT_OK if explanation.summary.fit else EXIT_NO


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
