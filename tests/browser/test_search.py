"""Names are completed as somebody types: of pods and nodes, by keyboard and by mouse."""

import json

from tests.browser.page import Page


def offered(page: Page, field: str, text: str) -> list[str]:
    """Type a text, and give the names that are offered then."""
    page.browser.type(field, text)
    options = f"document.querySelectorAll('{field}-list [role=option] span:first-child')"
    names = f"[...{options}].map(it => it.textContent)"
    page.browser.until(f"(all => all.length > 0 && all.every(it => it.includes({json.dumps(text)})))({names})")
    found: list[str] = page.value(names)
    return found


def test_pods_and_nodes_are_offered_by_a_part_of_their_names(page: Page) -> None:
    assert "data/queue-0" in offered(page, "#find", "queue")
    assert offered(page, "#find", "node21") == ["node21"]
    assert page.value("document.querySelector('#find').getAttribute('aria-expanded')") == "true"


def test_an_offer_is_taken_by_keyboard(page: Page) -> None:
    names = offered(page, "#find", "queue-")
    page.browser.press("ArrowDown")
    active = page.value("document.querySelector('#find').getAttribute('aria-activedescendant')")
    assert page.value(f"document.getElementById({json.dumps(active)}).getAttribute('aria-selected')") == "true"
    page.browser.press("Enter")
    page.browser.until(f"document.querySelector('#answer').textContent.startsWith({json.dumps(names[0])})")
    assert page.value("document.querySelector('#find-list').hidden")


def test_a_node_that_is_clicked_in_the_offers_is_shown(page: Page) -> None:
    offered(page, "#find", "node33")
    page.browser.click("#find-list [role=option]")
    page.wait_for_details("node33")


def test_the_field_of_the_pod_offers_pods_alone_and_that_of_the_node_nodes(page: Page) -> None:
    assert {"data"} == {name.partition("/")[0] for name in offered(page, "#pod-name", "data/")}
    page.browser.click("#pod-name-list [role=option]")
    page.browser.until("document.querySelector('#answer').textContent.startsWith('data/')")
    assert all(name.startswith("node") for name in offered(page, "#show-node", "node4"))


def test_escape_takes_the_offers_away_and_leaves_the_text(page: Page) -> None:
    offered(page, "#find", "queue")
    page.browser.press("Escape")
    assert page.value("document.querySelector('#find-list').hidden")
    assert page.value("document.querySelector('#find').value") == "queue"


def test_a_name_that_there_is_not_is_asked_about_and_refused_beside_the_field_of_the_pod(page: Page) -> None:
    page.browser.type("#find", "shop/nobody")
    page.browser.press("Enter")
    assert "pod shop/nobody: " in page.complaint("#pod-name")
    page.browser.type("#find", "")
    page.browser.press("Enter")
    assert page.complaint("#find") == "Say which pod or node."
