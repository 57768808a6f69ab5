"""What the scheduler's configuration says about a pod: rules that nobody judges, and pods of an unknown scheduler."""

import json
from collections.abc import Iterator

import pytest

from tests.browser.chromium import Browser
from tests.browser.conftest import opened
from tests.browser.page import Page
from tests.browser.served import admin_url, demo

CONFIGURATION = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: default-scheduler, plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}}]
"""
LARGE = [{"name": "c", "image": "c", "resources": {"requests": {"cpu": "900"}}}]


@pytest.fixture(scope="module")
def configured_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("configured")
    (folder / "scheduler.yaml").write_text(CONFIGURATION, "utf-8")
    with demo(folder, KINDRED_SCHEDULER_CONFIG=str(folder / "scheduler.yaml")) as service:
        yield admin_url(service)


@pytest.fixture
def configured(browser: Browser, configured_url: str) -> Iterator[Page]:
    page = opened(browser, configured_url)
    yield page
    assert browser.errors == []


def ask(page: Page, **spec: object) -> None:
    pod = {"metadata": {"name": "next", "namespace": "shop"}, "spec": {"containers": LARGE, **spec}}
    page.ask_with_manifest(json.dumps(pod))
    page.browser.until("document.querySelector('#answer').textContent.includes('nodes are available')")


def test_a_rule_that_is_off_refuses_nothing_and_is_listed(configured: Page) -> None:
    ask(configured)
    assert configured.text("#answer").startswith("shop/next: 60/60 nodes are available")
    notes = configured.text("#notes")
    assert "Not in the scheduler's profile default-scheduler, nor judged by Kindred: NodeResourcesFit" in notes


def test_a_scheduler_without_a_profile_is_said(configured: Page) -> None:
    ask(configured, schedulerName="other")
    assert configured.text("#answer").startswith("shop/next: 0/60 nodes are available")
    assert "No profile of the configuration has schedulerName other" in configured.text("#notes")
