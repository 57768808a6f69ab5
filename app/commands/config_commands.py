"""`kindred config`: the effective settings, or the schema of their file."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from app.commands.options import clear_errors, output_option, settings_options, warn
from app.commands.output import NO_NAMES, Line, OutputFormat, print_document, print_output, print_value, table
from app.process.json_text import encode
from app.process.logs import escaped, escaped_json
from app.settings.configuration import HEAD, changed, configuration_schema, effective, load_configuration
from app.wiring.engine import check_rules

_COMMENT: Final = "# The effective settings, as a file for --config; behind each value where it is from.\n"
_COMMENT_OF_CHANGED: Final = "# The settings that differ from their defaults, as a file for --config.\n"
_HEAD: Final = "".join(f"{key}: {value}\n" for key, value in HEAD.items())


@click.command("config", params=settings_options())
@output_option(NO_NAMES, OutputFormat.YAML)
@click.option("--changed", "only_changed", is_flag=True, help="Only settings that differ from their defaults.")
@click.option("--schema", is_flag=True, help="Print the JSON schema of a file of settings instead, as JSON.")
def config_command(
    *, output: OutputFormat, only_changed: bool, schema: bool, config: Path | None, **flags: str | None
) -> None:
    """Print the effective settings, defaults included, and the source of each. Ends with 2 if no service starts so."""
    if schema:
        print_value(OutputFormat.JSON, configuration_schema())
        return
    with clear_errors():
        configuration = load_configuration(config, flags)
        check_rules(configuration.settings)
    warn(configuration)
    found = effective(configuration.settings, configuration.sources)
    if only_changed:
        found = changed(found)
    if output is not OutputFormat.YAML:
        print_output(output, found, partial(_settings_text, found))
        return
    comment = _COMMENT_OF_CHANGED if only_changed else _COMMENT
    lines = "".join(_yaml_line(key, **entry) for key, entry in found.items())
    print_document(comment + _HEAD + lines, nl=False)


def _settings_text(settings: Mapping[str, Mapping[str, Any]], *, wide: bool) -> Sequence[Line]:
    rows = [(key, encode(entry["value"]).decode(), entry["source"]) for key, entry in settings.items()]
    return table(("SETTING", "VALUE", "SOURCE"), rows, 0, wide=wide)


def _yaml_line(key: str, value: object, source: str) -> str:
    return f"{key}: {escaped_json(encode(value).decode())}  # {escaped(source)}\n"  # JSON is YAML, too, on one line
