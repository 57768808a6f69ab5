"""What a kustomization may change of the alerts: where their runbook is, and how severe they are."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.manifests.kustomize import MANIFESTS, NoRendererError, only, render, renderer, with_components

OPERATE = Path(__file__).parents[2] / "docs" / "operate.md"


@pytest.fixture(autouse=True)
def _with_a_renderer() -> None:
    try:
        renderer()
    except NoRendererError as error:
        pytest.skip(str(error))


def rules(folder: Path) -> dict[str, Any]:
    """Render a kustomization, and give the alerts of its PrometheusRule by name."""
    (group,) = only(render(folder), "PrometheusRule")["spec"]["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def test_the_one_setting_is_in_every_link_to_the_runbook(tmp_path: Path) -> None:
    shutil.copytree(MANIFESTS, tmp_path / "manifests")
    setting = tmp_path / "manifests" / "observability" / "settings.yaml"
    published = yaml.safe_load(setting.read_text("utf-8"))["data"]["runbookUrl"]
    setting.write_text(setting.read_text("utf-8").replace(published, "https://docs.example.com/a/b.html"), "utf-8")
    kustomization = {"components": ["../manifests/observability"]}
    (mine := tmp_path / "mine").mkdir()
    (mine / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    links = {name: rule["annotations"]["runbook_url"] for name, rule in rules(mine).items()}
    assert {name: f"https://docs.example.com/a/b.html#{name.lower()}" for name in links} == links


def test_the_snippet_of_the_page_lowers_the_two_alerts_that_depend_on_the_registration(tmp_path: Path) -> None:
    text = OPERATE.read_text("utf-8").partition("<!-- severity: begin -->\n```yaml\n")[2].partition("```")[0]
    folder = with_components(tmp_path, "score-offload", ["observability"])
    before = {name: rule["labels"]["severity"] for name, rule in rules(folder).items()}
    kustomization = folder / "kustomization.yaml"
    kustomization.write_text(kustomization.read_text("utf-8") + text, "utf-8")
    after = {name: rule["labels"]["severity"] for name, rule in rules(folder).items()}
    assert {**before, "KindredDown": "warning", "KindredNotReady": "warning"} == after
    assert before != after
