"""`kindred explain --scheduler-config`: rules that the scheduler does not run, and bad configurations."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.app.commands.test_explain_command import DUMP, explain, of_dump
from tests.app.dump.dumps import as_json

SCHEDULER = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
    plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}
"""
SPEC: dict[str, Any] = {"containers": [{"resources": {"requests": {"cpu": "1k"}}}]}
LARGE = {"kind": "Pod", "metadata": {"name": "large"}, "spec": SPEC}
OTHER = {**LARGE, "spec": {**SPEC, "schedulerName": "other"}}


@pytest.fixture
def configured(tmp_path: Path) -> Path:
    """Give a folder with the dump, the pods and the configuration."""
    (tmp_path / "dump.json").write_bytes(as_json(DUMP))
    (tmp_path / "scheduler.yaml").write_text(SCHEDULER, "utf-8")
    (tmp_path / "large.json").write_text(json.dumps(LARGE), "utf-8")
    (tmp_path / "other.json").write_text(json.dumps(OTHER), "utf-8")
    return tmp_path


def test_a_rule_that_the_scheduler_does_not_run_refuses_nothing_and_is_listed(configured: Path) -> None:
    assert of_dump(configured, "-f", "@large.json").exit_code == 1
    result = of_dump(configured, "-f", "@large.json", "--scheduler-config", "@scheduler.yaml")
    assert result.exit_code == 0
    assert "Pod default/large fits on 3 of 3 nodes." in result.stdout
    assert "Not in the scheduler's profile default-scheduler, nor judged by Kindred:" in result.stdout
    assert "  NodeResourcesFit" in result.stdout
    assert "not in the scheduler's profile: NodeResourcesFit" in result.stdout


def test_a_scheduler_without_a_profile_is_said_and_every_rule_judged(configured: Path) -> None:
    result = of_dump(configured, "-f", "@other.json", "--scheduler-config", "@scheduler.yaml")
    assert result.exit_code == 1
    assert "No profile of the configuration has schedulerName other: this" in result.stdout
    assert "Insufficient cpu" in result.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(None, "scheduler.yaml: No such file or directory", id="absent"),
        pytest.param(
            SCHEDULER + "    plugin: {}",
            "scheduler.yaml: profiles[0]: object contains unknown field plugin",
            id="field",
        ),
        pytest.param(
            SCHEDULER + "    pluginConfig: [{name: NodeResourcesFit, args: {ignored: []}}]",
            "KINDRED_SCHEDULER_CONFIG: profiles[0].pluginConfig[0].args: NodeResourcesFit",
            id="arguments",
        ),
    ],
)
def test_a_bad_configuration_of_the_scheduler_is_an_error_that_names_the_field(
    configured: Path, text: str | None, message: str
) -> None:
    path = configured / "scheduler.yaml"
    path.unlink()
    if text is not None:
        path.write_text(text, "utf-8")
    result = of_dump(configured, "-f", "@large.json", "--scheduler-config", "@scheduler.yaml")
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_the_configuration_of_the_scheduler_is_the_services_where_one_is_asked(configured: Path) -> None:
    result = explain("a/b", "--scheduler-config", str(configured / "scheduler.yaml"))
    assert result.exit_code == 2
    assert "--scheduler-config is for a dump" in result.stderr
