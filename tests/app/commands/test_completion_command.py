"""`kindred completion`: the scripts, run by the shells that there are."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.commands.cli import main
from app.commands.completion_command import kubectl_completions

SCRIPTS = Path(sys.executable).parent
BASH = """
source <(kindred completion bash)
COMP_WORDS=(kindred {words}) COMP_CWORD={place}
_kindred_completion kindred
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def printed(shell: str) -> str:
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0, result.output
    return result.stdout


def completed(*words: str) -> list[str]:
    """Return what bash offers for the last word."""
    script = BASH.format(words=" ".join(word or "''" for word in words), place=len(words))
    environment = {"PATH": f"{SCRIPTS}:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    command = ["bash", "--norc", "-c", script]
    return subprocess.run(  # noqa: S603  # our own script
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout.split()


@pytest.mark.skipif(not (SCRIPTS / "kindred").exists(), reason="the package is not installed with its scripts")
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(["expl"], {"explain"}, id="command"),
        pytest.param(["completion", ""], {"bash", "zsh", "fish"}, id="argument"),
        pytest.param(["explain", "--why"], {"--why-not"}, id="option"),
        pytest.param(["explain", "-o", ""], {"table", "wide", "json", "yaml", "name"}, id="value-of-an-option"),
        pytest.param(["doctor", "-o", ""], {"table", "wide", "json", "yaml"}, id="value-of-another-command"),
        pytest.param(["debug", ""], {"pod"}, id="group"),
    ],
)
def test_bash_completes(words: list[str], expected: set[str]) -> None:
    assert set(completed(*words)) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_that_the_shell_can_read(shell: str) -> None:
    text = printed(shell)
    assert f"_KINDRED_COMPLETE={shell}_complete" in text
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n", "/dev/stdin"], input=text, check=True, text=True)  # noqa: S603  # our own script


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(["expl"], ["explain", ":4"], id="command"),
        pytest.param(["doctor", "-o", "t"], ["table", ":4"], id="value"),
        pytest.param(["explain", "--snapshot", ""], [":0"], id="file"),
        pytest.param(["explain", "--nothing"], [":4"], id="unknown-option"),
    ],
)
def test_kubectl_gets_a_line_for_each_completion_and_whether_files_are_meant(
    words: list[str], expected: list[str]
) -> None:
    assert list(kubectl_completions(main, words)) == expected


@pytest.mark.skipif(not (SCRIPTS / "kubectl_complete-kindred").exists(), reason="the script is not installed")
def test_the_program_that_kubectl_looks_for_is_installed() -> None:
    command = [str(SCRIPTS / "kubectl_complete-kindred"), "completion", "z"]
    told = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603  # our own program
    assert told.stdout == "zsh\n:4\n"


def test_kubectl_gets_every_command_where_no_word_is_begun() -> None:
    assert list(kubectl_completions(main, [])) == [*sorted(main.commands), ":4"]


def test_the_help_has_a_line_to_type_for_each_shell() -> None:
    told = CliRunner().invoke(main, ["completion", "--help"]).stdout.splitlines()
    for line in ("source <(kindred completion bash)", "source <(kindred completion zsh)"):
        assert any(each.endswith(line) for each in told)
    assert "  fish:  kindred completion fish | source" in told


def test_another_shell_is_refused_with_those_that_there_are() -> None:
    result = CliRunner().invoke(main, ["completion", "csh"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "'csh' is not one of 'bash', 'zsh', 'fish'" in result.stderr
