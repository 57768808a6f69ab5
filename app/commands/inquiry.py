"""The request of `POST /explain` that a command line means, and the explanation in the response."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypedDict

import click
import httpx
import msgspec

from app.admin.explain_routes import MAX_LISTED
from app.commands.admin_client import members, understood
from app.commands.manifests import all_manifests, one_manifest, read_manifests
from app.explain.explain_request import decode_explain_request
from app.explain.explainer import Detail, Explainer, Explanation
from app.explain.pod_names import pod_query
from app.explain.stored_pod import Objects, member, no_objects, rendered
from app.explain.workloads import split
from app.objects.decode import EXTENDER_ARGS, NULL, DecodeError, members_of
from app.process.json_text import decode, encode

_OF_FILES: Final = re.compile(r"-|\.{0,2}/.*|.*\.(json|ya?ml)", re.DOTALL)
"""Arguments that are files and not pods, whether the file exists or not."""

INQUIRY_OPTIONS: Final = (
    click.option(
        "--file",
        "-f",
        metavar="FILE",
        help="Manifest: a pod, an object with a pod template, or ExtenderArgs; - reads stdin. The name chooses, if "
        "there are several in it.",
    ),
    click.option(
        "--namespace", "-n", metavar="NS", help="Namespace of the pod.  [default: any, but of a kubeconfig its own]"
    ),
    click.option("--all-namespaces", "-A", is_flag=True, help="Search the pod in all namespaces."),
    click.option(
        "--assume",
        multiple=True,
        metavar="POD@NODE",
        help="Suppose a pod, by name or FILE, on a node. Can be repeated.",
    ),
    click.option("--remove", multiple=True, metavar="POD", help="Suppose that a pod is deleted. Can be repeated."),
    click.option(
        "--add-node",
        multiple=True,
        metavar="FILE",
        help="Suppose the nodes of a manifest, and the devices of its ResourceSlices; - reads stdin. Can be repeated.",
    ),
    click.option(
        "--score",
        type=click.Choice(["fitting", "all"]),
        default="fitting",
        show_default=True,
        help="Nodes to score. kube-scheduler scores only nodes that fit.",
    ),
    click.option("--why-not", multiple=True, metavar="NODE", help="Show all results of this node. Can be repeated."),
    click.option(
        "--limit",
        type=click.IntRange(0, MAX_LISTED),
        default=5,
        show_default=True,
        help="Maximum number of domains, pods and nodes in a list.",
    ),
)


class InquiryOptions(TypedDict):
    """The values of INQUIRY_OPTIONS, and the words of the argument."""

    pod: tuple[str, ...]
    file: str | None
    namespace: str | None
    all_namespaces: bool
    assume: tuple[str, ...]
    remove: tuple[str, ...]
    add_node: tuple[str, ...]
    score: Literal["fitting", "all"]
    why_not: tuple[str, ...]
    limit: int


class Inquiry(NamedTuple):
    """A request of `POST /explain`."""

    body: bytes
    nodes: Sequence[str]
    limit: int
    score: Literal["fitting", "all"]
    pods: frozenset[str]
    """The texts of pods that it names."""

    @property
    def query(self) -> Mapping[str, Sequence[str]]:
        """The parameters of the URL."""
        return {"node": self.nodes, "limit": [str(self.limit)], "score": [self.score]}


def inquiry_of(options: InquiryOptions, of_context: str = "") -> Inquiry:
    """Return the request. `of_context` is the namespace of names, and of manifests, without one.

    Raises UsageError with the argument.
    """
    if options["namespace"] is not None and options["all_namespaces"]:
        raise click.UsageError("Give either -n or -A.")
    words, file = "/".join(options["pod"]), options["file"]
    if options["namespace"] and pod_query(words).namespace not in {"", options["namespace"]}:
        raise click.UsageError(f"{words} is not of the namespace of -n.")
    namespace = "" if options["all_namespaces"] else options["namespace"] or of_context
    nodes = [
        msgspec.Raw(manifest)
        for each in options["add_node"]
        for manifest in all_manifests(f"--add-node {each}", read_manifests("--add-node", each))
    ]
    removed = [_within(namespace, text) for text in options["remove"]]
    of_files = options["namespace"] or of_context
    assumed = [_assumed(namespace, of_files, text) for text in options["assume"]]
    what_if = {"add_nodes": nodes, "remove": removed, "assume": assumed}
    what_if = {name: values for name, values in what_if.items() if values}
    named = {*removed, *(each["pod"] for each in assumed if isinstance(each["pod"], str))}
    if file is not None:
        manifest = one_manifest(f"-f {file}", read_manifests("-f", file), words, of_files)
        if options["namespace"]:
            _refuse_other(f"-f {file}", manifest, options["namespace"])
        body = _of_file(f"-f {file}", manifest, what_if)
    else:
        named.add(pod := _within(namespace, words))
        body = encode({"pod": pod, **what_if})
    return Inquiry(body, options["why_not"], options["limit"], options["score"], frozenset(named))


def _within(namespace: str, text: str) -> str:
    if not namespace or pod_query(text).namespace:
        return text
    within = f"{namespace}/{text}"
    return within if pod_query(within).namespace else f"{namespace}/pod/{text}"  # the namespace has a type's name


def _refuse_other(option: str, manifest: bytes, namespace: str) -> None:
    """Refuse a manifest of another namespace than that of -n, as kubectl does. Raises UsageError."""
    own = member(split(manifest)[0], "metadata").get("namespace")
    if own is None:
        raise click.UsageError(f"{option} has no namespace for -n: the pod of ExtenderArgs has its own.")
    if own != namespace:
        raise click.UsageError(f"{option} is of the namespace {rendered(own)}, not of that of -n.")


def _assumed(namespace: str, of_files: str, text: str) -> dict[str, str | msgspec.Raw]:
    pod, _, node = text.rpartition("@")
    if not pod or not node:
        raise click.UsageError(f"--assume {text}: expected POD@NODE or FILE@NODE.")
    if not _OF_FILES.fullmatch(pod):
        return {"pod": _within(namespace, pod), "node": node}
    manifest = one_manifest(f"--assume {text}", read_manifests("--assume", pod), namespace=of_files)
    return {"pod": msgspec.Raw(manifest), "node": node}


def _of_file(option: str, manifest: bytes, what_if: Mapping[str, object]) -> bytes:
    try:
        fields = EXTENDER_ARGS.fields_of(members_of(manifest))
    except DecodeError as error:
        raise click.UsageError(f"{option}: {error}") from None
    if not fields.keys() & {"Nodes", "NodeNames"}:
        return encode({"pod": msgspec.Raw(manifest), **what_if})
    if not what_if:
        return manifest  # ExtenderArgs are a request already
    names = fields.get("NodeNames", NULL)
    if names == NULL:
        raise click.UsageError(
            f"{option}: NodeNames: required (not Nodes) in ExtenderArgs beside --assume, --remove and --add-node."
        )
    return encode({"pod": fields.get("Pod", NULL), "node_names": names, **what_if})


class RejectedError(Exception):
    """The request was read, but cannot be evaluated. The message names the field."""


def taken(response: httpx.Response, where: str) -> Explanation:
    """Return the explanation in a service's response. Raises RejectedError, CannotAskError."""
    body = {} if response.is_success else members(response)
    if isinstance(body.get("field"), str) and isinstance(detail := body.get("detail"), str):
        raise RejectedError(detail)
    return understood(where, response, lambda body: decode(body, Explanation))


async def explanation_of(explainer: Explainer, inquiry: Inquiry, others: Objects = no_objects) -> Explanation:
    """Explain with the code of a service. Raises DecodeError and ExplainError."""
    request = decode_explain_request(inquiry.body, explainer.mirror, others)
    detail = Detail(inquiry.nodes, inquiry.limit, score_all=inquiry.score == "all")
    return await explainer.explain(request, detail)
