"""`kindred serve`: its ports, what it prints first, and the page of a demo."""

import shlex
import sys
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import Any, Final

import click
import msgspec

from app import __version__
from app.admin.explain_routes import Sample
from app.api_server.credentials import load_credentials
from app.api_server.login import own_namespace
from app.commands.dump import SOURCE_OPTIONS, Source, load_dump, take_again, warn_of_lacks
from app.commands.options import clear_errors, settings_options, warn, with_options
from app.commands.output import print_line, print_lines
from app.demo import DEMO
from app.process import logs
from app.server import process
from app.server.process import keep_freed_memory
from app.server.server import Server
from app.settings.configuration import Configuration, load_configuration
from app.settings.settings import Settings, is_loopback
from app.settings.types import split_address
from app.wiring.engine import create_profile
from app.wiring.main import Service, create_service
from core.mirror.cluster import ClusterMirror


class ClusterSource(Source):
    """Options for the source of the cluster."""

    kubeconfig: str | None
    context: str | None


@click.command("serve", params=settings_options())
@with_options(SOURCE_OPTIONS)
@click.option("--kubeconfig", help="Kubeconfig file of the cluster.  [default: as kubectl, or a pod's service account]")
@click.option("--context", help="Context of the kubeconfig.  [default: its current context]")
def serve_command(*, config: Path | None, **options: Any) -> None:  # noqa: ANN401  # a ClusterSource, and flags
    """Serve the extender over HTTP, for a live cluster or for a dump."""
    source: ClusterSource = {name: options.pop(name) for name in ClusterSource.__annotations__}  # type: ignore[assignment]  # its keys
    demo = source["demo"]
    with clear_errors():
        configuration = load_configuration(config, options)
        if demo:
            configuration = with_page(configuration)
        warn(configuration)
        settings = configuration.settings
        logs.configure(settings.log_level, settings.log_format)
        keep_freed_memory()
        service = _service(configuration, source)
    announcement = Announcement([port.connections.port for port in service.ports], demo=demo)
    ending = process.Ending(service.state, drain_delay(settings), service.finish)
    servers = [Server(port, partial(announcement.listening, port.connections.port)) for port in service.ports]
    sys.exit(process.run(servers, (service.watch_loop, *service.background), settings.grace_period, ending))


def drain_delay(settings: Settings) -> float:
    """Return the seconds after SIGTERM in which requests are still accepted, until every client has the new endpoints.

    A pod alone has endpoints. With leader election a delay only keeps another replica from leading, and no other is
    ready until this one has ended.
    """
    return 0.0 if settings.elects or not own_namespace() else settings.grace_period / 4


def _service(configuration: Configuration, source: ClusterSource) -> Service:
    demo = source["demo"]
    if demo or source["snapshot"] is not None:
        if source["kubeconfig"] or source["context"]:
            raise click.UsageError("--kubeconfig and --context are for following a cluster, not for a dump.")
        settings = configuration.settings
        dump = load_dump(settings, source)
        offered = samples() if demo else ()
        warn_of_lacks(dump, create_profile(settings))
        return create_service(
            settings,
            dump.mirror,
            None,
            configuration.sources,
            dump.release,
            freshness=dump.freshness,
            samples=offered,
            take=partial(take_again, source, dump.superseded),
        )
    if source["skip_invalid"]:
        raise click.UsageError("--skip-invalid is for a dump; the watch always skips broken objects.")
    credentials = load_credentials(source["kubeconfig"], source["context"])
    print_line(f"Following {credentials.server} ({credentials.source})", err=True)
    mirror = ClusterMirror(configuration.settings.assumed_pod_ttl)
    return create_service(configuration.settings, mirror, credentials, configuration.sources)


OFFSET: Final = 2
"""Distance of a demo's admin port from the scheduler's port: 8890 for 8888."""
_LARGEST: Final = 65535


class _Request(msgspec.Struct, rename="pascal"):
    pod: msgspec.Raw


def with_page(configuration: Configuration) -> Configuration:
    """Give a demo on the loopback an admin port, unless a setting has one.

    A demo on another address gets no admin port: its page would need a token.
    """
    settings = configuration.settings
    host, listening = split_address(settings.listen)
    if "admin" in configuration.sources or not is_loopback(host):
        return configuration
    port = listening + OFFSET if 0 < listening <= _LARGEST - OFFSET else 0
    return configuration._replace(
        settings=settings.model_copy(update={"admin": f"127.0.0.1:{port}"}),
        sources={**configuration.sources, "admin": "--demo"},
    )


def samples() -> Sequence[Sample]:
    """Return the pods of the demo's requests, sorted by name."""
    requests = sorted((DEMO / "requests").iterdir(), key=lambda each: each.name)
    return [
        Sample(PurePath(each.name).stem, msgspec.json.decode(each.read_bytes(), type=_Request).pod) for each in requests
    ]


_QUESTIONS: Final = (("filter", "required-affinity"), ("filter", "required-anti-affinity"), ("prioritize", "web"))


class Announcement:
    """Prints the addresses when the last port listens. The page comes first, because it is for people."""

    def __init__(self, ports: Collection[str], *, demo: bool) -> None:
        """`ports` are the names of the ports that will listen. A demo also prints sample requests."""
        self._awaited = set(ports)
        self._urls: dict[str, str] = {}
        self._demo = demo

    def listening(self, port: str, url: str) -> None:
        """Record that a port listens."""
        self._urls[port] = url
        self._awaited.discard(port)
        if not self._awaited:
            self._tell(**self._urls)

    def _tell(self, extender: str = "", admin: str = "", health: str = "") -> None:
        if admin:
            print_line(f"Cluster, pending pods and explanations in a browser: {admin}/")
            print_line(f"Debugging at {admin}/debug/mirror")
        print_lines(_of_extender(extender, demo=self._demo))
        if health:
            print_line(f"Health and metrics at {health}/readyz and {health}/metrics")


def _of_extender(url: str, *, demo: bool) -> list[str]:
    lines = [f"Kindred {__version__} answers at {url}"]
    if demo and url.startswith("http:"):  # with TLS, the options of curl depend on the authority
        requests = Path(str(DEMO / "requests"))
        if requests.is_relative_to(Path.cwd()):
            requests = requests.relative_to(Path.cwd())
        lines.append("Send requests from another terminal:")
        lines += [f"  curl -s {url}/{verb} -d {shlex.quote(f'@{requests}/{name}.json')}" for verb, name in _QUESTIONS]
    return lines
