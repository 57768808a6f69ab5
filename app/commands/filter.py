"""`kindred filter`: one request to the verb, without a server."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Unpack

import click

from app.commands.dump import SOURCE_OPTIONS, Source, load_dump, warn_of_lacks
from app.commands.manifests import one_manifest, read_manifests
from app.commands.options import (
    OF_RESPONSES,
    clear_errors,
    exit_with_error,
    loaded_settings,
    output_option,
    settings_options,
    with_options,
)
from app.commands.output import FORMATS, Line, OutputFormat, node_name, print_line, print_output, table, wrapped
from app.explain.explain_request import decode_manifest
from app.explain.stored_pod import no_objects
from app.explain.templates import AtHand
from app.process.json_text import decode, encode
from app.verbs.request import Request, VerbOutcome
from app.wiring.engine import apply_partition, create_extender, create_profile
from core.events import ClusterEvent
from core.explaining.words import counted
from core.mirror.cluster import ClusterMirror

_FEW: Final = 3
"""Filters that people do not take for all of kube-scheduler's."""


class Options(Source):
    """All options of the command."""

    config: Path | None
    pod: str
    nodes: tuple[str, ...]
    output: OutputFormat


@click.command("filter", params=settings_options(OF_RESPONSES))
@with_options(SOURCE_OPTIONS)
@click.option("--pod", metavar="FILENAME", required=True, help="Manifest of the pod; - reads stdin.")
@click.option(
    "--nodes", multiple=True, help="Nodes of the request, separated by commas. Can be repeated.  [default: all]"
)
@output_option(FORMATS, OutputFormat.JSON)
def filter_command(**options: Unpack[Options]) -> None:
    """Print the ExtenderFilterResult for a pod, without a server."""
    result, judged = _filtered(options)
    print_output(options["output"], result, partial(filter_text, result, judged), filter_names(result))


def _filtered(options: Options) -> tuple[Any, Sequence[str]]:
    """Evaluate a request as the service does, and return the response, with the names of the filters.

    Ends with status 2 if the response is an error.
    """
    with clear_errors():
        settings = loaded_settings(options, OF_RESPONSES)
        manifest = one_manifest("--pod", read_manifests("--pod", options["pod"]))
        decode_manifest(manifest, AtHand(ClusterMirror(), no_objects))  # fails before a dump is loaded
        dump = load_dump(settings, options)
        profile = create_profile(settings)
        warn_of_lacks(dump, profile)
        mirror = dump.mirror
        stored = decode_manifest(manifest, AtHand(mirror, dump.others()))
        for each in stored.notes.unknown:
            print_line(f"Warning: not judged: {each}", err=True)
        for pod in stored.replaced:
            mirror.apply(ClusterEvent("Delete", pod))
        for made in stored.made:
            mirror.apply(ClusterEvent("Add", made))
        apply_partition(settings, mirror)
        named = [name for group in options["nodes"] for name in group.split(",") if name]
        body = b'{"Pod":' + stored.json + b',"NodeNames":' + encode(named or list(mirror.nodes.slots)) + b"}"
        response = create_extender(settings, mirror).filter(Request(body))
    if response.outcome is VerbOutcome.BAD_REQUEST:  # over HTTP, kube-scheduler decodes its body
        exit_with_error(response.error)
    return decode(response.body), [each.name for each in profile.filters]


def filter_text(result: Mapping[str, Any], judged: Sequence[str], *, wide: bool) -> Sequence[Line]:
    """Return an ExtenderFilterResult of names as lines: each node with its result, by the filters that judged it."""
    if result["Error"]:
        return wrapped(f"Error: {result['Error']}")
    passed: Sequence[str] = result["NodeNames"] or ()
    rows = [(node, "fits", "") for node in passed]
    for key, verdict in (("FailedNodes", "fails"), ("FailedAndUnresolvableNodes", "unresolvable")):
        rows += [(node, verdict, reason) for node, reason in (result[key] or {}).items()]
    by = f" by {', '.join(judged)} alone (`kindred explain` judges all)" if len(judged) <= _FEW else ""
    head = wrapped(f"Fits on {len(passed):,} of {counted(len(rows), 'node')}{by}.")
    return [*head, *table(("NODE", "VERDICT", "REASON"), rows, 0, wide=wide)]


def filter_names(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the nodes that fit."""
    return map(node_name, result["NodeNames"] or ())
