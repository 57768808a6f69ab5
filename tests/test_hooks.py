"""The pre-commit hook runs only `make check`, so both always have the same checks."""

from pathlib import Path
from typing import Any

import yaml

CONFIGURATION: dict[str, Any] = yaml.safe_load(Path(".pre-commit-config.yaml").read_text("utf-8"))


def test_the_only_hook_is_make_check_for_every_commit() -> None:
    (repository,) = CONFIGURATION["repos"]
    (hook,) = repository["hooks"]
    assert (repository["repo"], hook["language"]) == ("local", "system")
    assert hook["entry"].split() == ["make", "--silent", "check"]
    assert (hook["pass_filenames"], hook["always_run"]) == (False, True)
    assert not {"files", "types", "types_or", "exclude", "stages"} & hook.keys()


def test_the_gate_runs_make_check_too() -> None:
    assert "make check" in Path(".ci/run").read_text("utf-8").splitlines()
