"""Arguments of `kindred explain` to a request of `POST /explain`, and fields of the request back to arguments."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypedDict

import click
import msgspec

from app.commands.manifests import all_manifests, one_manifest, read_manifests
from app.json_text import encode
from app.objects.decode import NULL, DecodeError
from app.objects.go_struct import EXTENDER_ARGS, members_of

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
