"""Who judges by a rule and which rules nobody judges, also by the scheduler's configuration; what a pod lacks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import Browser
from tests.browser.conftest import over
from tests.browser.page import Page
from tests.browser.served import demo


@pytest.fixture
def alpha_page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """Yield the page over the demo cluster with a feature gate by which no device is judged."""
    with demo(tmp_path, KINDRED_FEATURE_GATES="DRADeviceTaints=true") as service:
        yield from over(browser, f"{service.admin_url}/")


def test_what_could_not_be_judged_is_said_above_the_map_and_nothing_is_said_to_fit(alpha_page: Page) -> None:
    page = alpha_page
    page.ask_for(resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}])
    assert "Not judged: DynamicResources: devices are judged only with the default" in page.text("#notes")
    assert "passes what was judged: score " in page.legend()
    page.show_node("node1")
    assert page.text("#detail-body .verdict").startswith("■ passes what was judged")
    assert page.value("document.querySelector('.tree thead').textContent").count("Fit") == 0
    assert "fit" not in page.map_label()


def test_a_rule_that_the_scheduler_judges_itself_is_marked(page: Page) -> None:
    page.ask_for(nodeSelector={"no-such": "label"})
    assert "(NodeAffinity, judged by kube-scheduler itself)" in page.legend()
    assert "Kindred's own filter passes 60 of 60" in page.text("#notes")
    page.show_node("node1")
    rules = [row[0] for row in page.cells("#detail-body .plugins tbody tr")]
    assert rules[0] == "NodeAffinity\u00a0*"  # what keeps the pod off comes first
    assert "InterPodAffinity" in rules
    assert "* judged by kube-scheduler itself" in page.text("#detail-body")


def test_what_a_pending_pod_was_told_by_its_scheduler_is_said(page: Page) -> None:
    page.ask("data/queue-3")
    assert "Last attempt: 0/60 nodes are available: 60 node(s) didn't match pod anti-affinity rules." in (
        page.text("#notes")
    )


def test_what_the_pod_lacks_is_said_with_amounts_and_what_would_help(page: Page) -> None:
    large = {"name": "c", "image": "c", "resources": {"requests": {"cpu": "9"}}}
    page.ask_for(containers=[large])
    assert page.text("#answer").startswith("shop/next: 0/60 nodes are available")
    assert "Needs cpu 9; most free on any node: 7." in page.text("#notes")
    assert "enough on no node" in page.text("#notes")
    assert page.text("#helps").startswith("Changes that would help, each by itself\n")
    page.show_node("node1")
    assert page.text("#detail-body .measured") == "needs cpu 9; free 7.26 (0.65 of 7.91 in use): 1.74 too little"


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
        yield f"{service.admin_url}/"


@pytest.fixture
def configured(browser: Browser, configured_url: str) -> Iterator[Page]:
    yield from over(browser, configured_url)


def test_a_rule_that_is_off_refuses_nothing_and_is_listed(configured: Page) -> None:
    configured.ask_for(containers=LARGE)
    assert configured.text("#answer").startswith("shop/next: 60/60 nodes are available")
    notes = configured.text("#notes")
    assert "Not in the scheduler's profile default-scheduler, nor judged by Kindred: NodeResourcesFit" in notes
    scored = configured.text("#scored")
    assert "Scores by the scheduler's profile default-scheduler, with weights: " in scored
    assert "Kindred is not its extender." in scored
    assert "Not in the profile: NodeResourcesFit" in scored


def test_a_scheduler_without_a_profile_is_said(configured: Page) -> None:
    configured.ask_for(containers=LARGE, schedulerName="other")
    assert configured.text("#answer").startswith("shop/next: 0/60 nodes are available")
    assert "No profile of the configuration has schedulerName other" in configured.text("#notes")
