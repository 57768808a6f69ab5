"""`kindred invalidation-table`: the rules of all plugins, for people and for programs."""

import json

import msgspec
import pytest
from click.testing import CliRunner, Result

from app.commands.cli import main
from app.commands.text_columns import WIDTH
from core.equivalence.invalidation_table import TableRow, invalidation_table
from core.profile import PLUGINS

HEADINGS = ["OPERATION", "KIND", "PLUGIN", "SCOPE", "WHEN", "BECAUSE"]
RULES = invalidation_table([make() for make in PLUGINS.values()])


def printed(*options: str) -> Result:
    return CliRunner().invoke(main, ["invalidation-table", *options])


def read_back(text: str) -> list[list[str]]:
    """Return the cells of the rows below the headings, by the columns in which the headings stand."""
    heading, *lines = text.splitlines()
    starts = [heading.index(each) for each in HEADINGS]
    rows: list[list[str]] = []
    for line in lines:
        cells = [line[start:end].strip() for start, end in zip(starts, [*starts[1:], None], strict=True)]
        if cells[0]:
            rows.append(cells)
        else:  # goes on
            rows[-1] = [f"{above} {cell}".strip() for above, cell in zip(rows[-1], cells, strict=True)]
    return rows


def as_printed(row: TableRow) -> list[str]:
    keys = f" ({', '.join(row.design_keys)})" if row.design_keys else ""
    return [", ".join(row.operations), row.kind, row.plugin + keys, row.scope, row.when or "always", row.because]


def test_the_wide_text_holds_every_rule_in_columns_below_their_headings() -> None:
    result = printed("-o", "wide")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[0].split() == HEADINGS
    assert [as_printed(row) for row in RULES] == read_back(result.stdout)


def test_no_line_is_too_wide_for_a_wide_terminal() -> None:
    assert max(map(len, printed("-o", "wide").stdout.splitlines())) <= 180


def test_the_text_holds_every_rule_below_its_kind() -> None:
    lines = printed().stdout.splitlines()
    assert lines[0].split() == ["OPERATION", "PLUGIN", "SCOPE", "WHEN"]
    kinds = list(dict.fromkeys(row.kind for row in RULES))
    assert [line for line in lines if not line.startswith(" ")] == kinds
    assert max(map(len, lines)) <= WIDTH
    words = "".join("".join(lines).split())
    for row in RULES:
        assert row.plugin.replace(" ", "") in words


def test_json_is_the_same_table() -> None:
    result = printed("-o", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    assert msgspec.json.decode(result.stdout, type=list[TableRow]) == RULES
    first = json.loads(result.stdout)[0]
    assert first.keys() == {"operations", "kind", "plugin", "design_keys", "scope", "when", "because"}


@pytest.mark.parametrize("arguments", [["-o", "name"], ["-o"], ["table"], ["--format", "json"]], ids=" ".join)
def test_what_it_does_not_know_is_refused(arguments: list[str]) -> None:
    result = printed(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
