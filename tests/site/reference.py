"""Pages of the site that are made from the code: commands, the invalidation table, HTTP routes."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import click

from app.admin.openapi import describe
from app.commands.cli import main
from app.settings.settings import Settings
from app.wiring.main import create_service
from core.mirror.cluster import ClusterMirror
from core.plugins import PLUGINS
from tests.core.equivalence.invalidation_table import invalidation_table as rules_of_plugins

_PORTS: Final = ("The scheduler's port", "The admin port")


def commands() -> str:
    """Return the help of every command."""
    lines = [
        "# Help of each command",
        "",
        "For users of the command line: each command with its options, as `--help` prints it.",
    ]
    for name, command in _commands(main, "kindred"):
        with click.Context(command, info_name=name) as context:
            lines += ["", f"## {name}", "", "```text", command.get_help(context), "```"]
    return "\n".join(lines) + "\n"


def invalidation_table() -> str:
    """Return the events that invalidate cached results, as the plugins declare them."""
    lines = [
        "# Invalidation table",
        "",
        "For readers of the [cache](concepts.md#the-equivalence-cache): which event invalidates which cells, and why.",
        "",
        "| kind | operations | plugin | scope | when | because |",
        "|---|---|---|---|---|---|",
    ]
    for rule in rules_of_plugins(make() for make in PLUGINS.values()):
        cells = (rule.kind, ", ".join(rule.operations), rule.plugin, rule.scope, rule.when, rule.because)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def routes() -> str:
    """Return the routes of every port, from its OpenAPI description."""
    service = create_service(Settings(admin="127.0.0.1:0"), ClusterMirror(), None)
    lines = [
        "# HTTP routes",
        "",
        "For programs that call Kindred: every route, from the OpenAPI description of each port (`GET /openapi.json`).",
        "[commands.md](commands.md) explains the routes.",
    ]
    for name, port in zip(_PORTS, service.ports, strict=True):
        lines += ["", f"## {name}", "", "| route | summary |", "|---|---|"]
        lines += [
            f"| `{method.upper()} {path}` | {summary} |" for path, method, summary in _operations(describe(port.app))
        ]
    return "\n".join(lines) + "\n"


def _commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            inner = {each: command.get_command(context, each) for each in command.list_commands(context)}
        for each, found in inner.items():
            if found is not None:
                yield from _commands(found, f"{name} {each}")


def _operations(description: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation.get("summary", "")


PAGES: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {"help.md": commands, "invalidation-table.md": invalidation_table, "routes.md": routes}
)
"""Page of the site -> how it is made."""
