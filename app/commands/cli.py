"""The command line of `kindred`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypedDict, Unpack

import click
import msgspec

from app import __version__, logs
from app.api_server.credentials import ConfigurationError, load_credentials
from app.api_server.own_namespace import own_namespace
from app.commands.announcement import Announcement
from app.commands.command_group import CommandGroup
from app.commands.config_commands import config_command
from app.commands.demo_page import samples, with_page
from app.commands.doctor.command import doctor_command
from app.commands.dump_source import SOURCE_OPTIONS, load_dump
from app.commands.exit_status import exit_with_error
from app.commands.explain_command import explain_command
from app.commands.manifests import one_manifest, read_opened
from app.commands.output_format import FORMATS, OutputFormat, print_output
from app.commands.pending_command import pending_command
from app.commands.printer import print_line
from app.commands.rbac import rbac_command
from app.commands.settings_commands import (
    OF_ANSWERS,
    AnswerFlags,
    flags_of_answers,
    loaded_settings,
    settings_options,
    warn,
)
from app.commands.shared_options import output_option, with_options
from app.commands.status_command import status_command
from app.commands.units_command import units_command
from app.commands.verb_answer_text import filter_names, filter_text
from app.commands.why.command import why_command
from app.configuration import Configuration, load_configuration
from app.dump.snapshot_file import SnapshotError
from app.json_text import decode, encode
from app.main import Service, create_service
from app.objects.decode import DecodeError
from app.server import process
from app.server.process import keep_freed_memory
from app.server.server import Server
from app.settings import Settings, SettingsError
from app.verbs.request import VerbOutcome
from app.verbs.wire_in import decode_incoming_pod
from app.wiring.engine import create_extender, create_partition
from core.mirror.cluster import ClusterMirror


class Source(TypedDict):
    """Options for the source of the cluster."""

    snapshot: BinaryIO | None
    skip_invalid: bool
    kubeconfig: str | None
    context: str | None


class PodOptions(AnswerFlags):
    """Options of a command that evaluates one pod."""

    snapshot: BinaryIO | None
    demo: bool
    skip_invalid: bool
    config: Path | None
    pod: BinaryIO
    nodes: tuple[str, ...]
    output: OutputFormat


_POD_OPTIONS = (
    *SOURCE_OPTIONS,
    click.option("--pod", type=click.File("rb"), required=True, help="Manifest of the pod; - reads stdin."),
    click.option(
        "--nodes", multiple=True, help="Nodes of the request, separated by commas. Can be repeated.  [default: all]"
    ),
    output_option(FORMATS, OutputFormat.JSON),
)


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="kindred")
def main() -> None:
    """Serve a kube-scheduler extender that decides exactly as kube-scheduler's own plugins."""


for _command in (
    config_command,
    doctor_command,
    explain_command,
    pending_command,
    rbac_command,
    status_command,
    units_command,
    why_command,
):
    main.add_command(_command)


@main.command(params=settings_options())
@with_options(SOURCE_OPTIONS)
@click.option("--kubeconfig", help="Kubeconfig file of the cluster.  [default: as kubectl, or a pod's service account]")
@click.option("--context", help="Context of the kubeconfig.  [default: its current context]")
def serve(*, demo: bool, config: Path | None, **options: Any) -> None:  # noqa: ANN401  # a Source, and flags
    """Serve the extender over HTTP, for a live cluster or for a dump."""
    source: Source = {name: options.pop(name) for name in Source.__annotations__}  # type: ignore[assignment]  # its keys
    with _clear_errors():
        configuration = load_configuration(config, options)
        if demo:
            configuration = with_page(configuration)
        warn(configuration)
        settings = configuration.settings
        logs.configure(settings.log_level, settings.log_format)
        keep_freed_memory()
        service = _service(configuration, demo=demo, **source)
    announcement = Announcement([port.connections.port for port in service.ports], demo=demo)
    ending = process.Ending(service.state, drain_delay(settings), service.finish)
    servers = [Server(port, partial(announcement.listening, port.connections.port)) for port in service.ports]
    sys.exit(process.run(servers, (service.watch_loop, *service.background), settings.grace_period, ending))


def drain_delay(settings: Settings) -> float:
    """Return the seconds after SIGTERM in which requests are still accepted, until every client has the new endpoints.

    A pod alone has endpoints. With leader election a delay only keeps another replica from leading.
    """
    return 0.0 if settings.elects or not own_namespace() else settings.grace_period / 4


def _service(configuration: Configuration, *, demo: bool, **source: Unpack[Source]) -> Service:
    if demo or source["snapshot"] is not None:
        if source["kubeconfig"] or source["context"]:
            raise click.UsageError("--kubeconfig and --context are for following a cluster, not for a dump.")
        settings = configuration.settings
        dump = load_dump(settings, source["snapshot"], demo=demo, skip_invalid=source["skip_invalid"])
        offered = samples() if demo else ()
        return create_service(settings, dump.mirror, None, configuration.sources, dump.release, samples=offered)
    if source["skip_invalid"]:
        raise click.UsageError("--skip-invalid is for a dump; the watch always skips broken objects.")
    credentials = load_credentials(source["kubeconfig"], source["context"])
    print_line(f"Following {credentials.server} ({credentials.source})", err=True)
    mirror = ClusterMirror(configuration.settings.assumed_pod_ttl)
    return create_service(configuration.settings, mirror, credentials, configuration.sources)


@main.command("filter", params=settings_options(OF_ANSWERS))
@with_options(_POD_OPTIONS)
def filter_command(**question: Unpack[PodOptions]) -> None:
    """Print the ExtenderFilterResult for a pod, without a server."""
    result = _filtered(question)
    print_output(question["output"], result, partial(filter_text, result), filter_names(result))


def _filtered(question: PodOptions) -> Any:  # noqa: ANN401  # JSON
    """Evaluate a request as the service does, and return the response. Ends with status 2 if it is an error."""
    with _clear_errors():
        settings = loaded_settings(question["config"], flags_of_answers(question))
        manifest = _pod_manifest(question["pod"])
        dump = load_dump(settings, question["snapshot"], demo=question["demo"], skip_invalid=question["skip_invalid"])
        mirror = dump.mirror
        create_partition(settings, mirror)
        named = [name for group in question["nodes"] for name in group.split(",") if name]
        body = b'{"Pod":' + manifest + b',"NodeNames":' + _names_json(named or list(mirror.nodes.slots)) + b"}"
        response = create_extender(settings, mirror).filter(body)
    if response.outcome is VerbOutcome.BAD_REQUEST:  # over HTTP, kube-scheduler decodes its body
        exit_with_error(response.error)
    return decode(response.body)


def _names_json(names: list[str]) -> bytes:
    try:
        return encode(names)
    except UnicodeEncodeError:
        raise click.UsageError("--nodes: a name is not UTF-8.") from None


def _pod_manifest(pod: BinaryIO) -> bytes:
    manifest = one_manifest("--pod", read_opened("--pod", pod))
    decode_incoming_pod(msgspec.Raw(manifest))  # fails before a large dump is loaded
    return manifest


@contextmanager
def _clear_errors() -> Iterator[None]:
    """Turn an error of the input into one line on standard error and exit status 2."""
    try:
        yield
    except (SettingsError, SnapshotError, ConfigurationError, DecodeError) as error:
        exit_with_error(error)


def kubectl_plugin() -> None:
    """Run as `kubectl kindred`, under the name that kubectl looks for in PATH."""
    main(prog_name="kubectl kindred")


if __name__ == "__main__":
    main(prog_name="kindred")
