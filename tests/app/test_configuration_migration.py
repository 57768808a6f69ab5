"""A plain file gets its head and keeps everything else; `kindred config migrate` prints or writes it."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from app.commands.cli import main
from app.configuration_file import HEAD, Loader, parse
from app.configuration_migration import migrated
from app.settings import SettingsError

TOP = "".join(f"{key}: {value}\n" for key, value in HEAD.items())
COMMENTED = """\
# Ours.

---
# The port.
listenPort: "8889"   # of the Service
leaderElection: yes
preempt: 'off'
pluginArgs:
  # As in-tree.
  NodeResourcesFit: {scoringStrategy: {type: "MostAllocated"}}
kubernetes: '1.36'
"""
MIGRATED = """\
# Ours.

---
# The port.
apiVersion: kindred.dev/v1alpha1
kind: KindredConfiguration
listenPort: 8889   # of the Service
leaderElection: true
preempt: 'off'
pluginArgs:
  # As in-tree.
  NodeResourcesFit: {scoringStrategy: {type: "MostAllocated"}}
kubernetes: '1.36'
"""


def migrate(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["config", "migrate", *map(str, arguments)])


def test_comments_and_order_stay_and_numbers_lose_their_quotes() -> None:
    assert migrated(COMMENTED, "k") == MIGRATED


def test_a_file_with_a_head_stays_as_it_is() -> None:
    assert migrated(MIGRATED, "k") == MIGRATED


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", TOP, id="empty"),
        pytest.param("# nothing", f"# nothing\n{TOP}", id="comment"),
        pytest.param(
            "  maxScore: 1\n  # b\n  deadline: 2\n",
            f"  {TOP.replace(chr(10), chr(10) + '  ')}maxScore: 1\n  # b\n  deadline: 2\n",
            id="indented",
        ),
    ],
)
def test_the_head_fits_what_is_there(text: str, expected: str) -> None:
    assert migrated(text, "k") == expected
    assert not parse(expected, "k").plain


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("{maxScore: 1}", "k: {...} around all settings cannot be migrated", id="braces"),
        pytest.param("maxScroe: 1", "k: maxScroe: unknown key; did you mean maxScore?", id="unknown"),
        pytest.param("featureGates: {A: 'on'}", "k: featureGates.A='on': Input should be a valid boolean", id="type"),
        pytest.param("apiVersion: v1", "k: apiVersion='v1': unknown", id="another-version"),
    ],
)  # fmt: skip
def test_what_cannot_be_migrated_is_an_error(text: str, problem: str) -> None:
    with pytest.raises(SettingsError) as caught:
        migrated(text, "k")
    assert str(caught.value).startswith(problem)


@given(st.fixed_dictionaries({}, optional={
    "listenPort": st.integers(0, 9) | st.integers(0, 9).map(str),
    "leaderElection": st.booleans() | st.sampled_from(["true", "off"]),
    "bypassNamespaces": st.lists(st.text("ab\n#: '\"", max_size=5)),
    "bypassLabels": st.text("a1#: {}'\"\n", max_size=8),
}))  # fmt: skip
def test_what_a_file_says_stays_the_same(document: dict[str, object]) -> None:
    text = yaml.safe_dump(document, default_flow_style=False) if document else ""
    after = yaml.load(migrated(text, "k"), Loader)  # noqa: S506  # a SafeLoader
    assert {key: after.pop(key) for key in HEAD} == HEAD
    before = parse(text, "k").values
    assert parse(migrated(text, "k"), "k").values.keys() == before.keys()
    switches = {"true": True, "off": False}
    typed = {
        **document,
        **({"listenPort": int(str(document["listenPort"]))} if "listenPort" in document else {}),
        **({"leaderElection": switches.get(str(each), each)} if (each := document.get("leaderElection")) else {}),
    }
    assert typed == after


def test_it_is_printed_or_written(tmp_path: Path) -> None:
    file = tmp_path / "kindred.yaml"
    file.write_text(COMMENTED, "utf-8")
    result = migrate(file)
    assert (result.exit_code, result.stdout, result.stderr) == (0, MIGRATED, "")
    assert file.read_text("utf-8") == COMMENTED
    result = migrate(file, "--write")
    assert (result.exit_code, result.stdout) == (0, "")
    assert file.read_text("utf-8") == MIGRATED


def test_what_is_wrong_ends_with_2_and_leaves_the_file(tmp_path: Path) -> None:
    file = tmp_path / "kindred.yaml"
    assert (migrate(file).exit_code, migrate(file).stderr) == (2, f"Error: {file}: No such file or directory\n")
    file.write_text("a: 1", "utf-8")
    assert migrate(file, "--write").exit_code == 2
    assert file.read_text("utf-8") == "a: 1"
