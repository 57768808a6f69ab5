"""Names are completed as somebody types: of pods and nodes."""

import json

from tests.browser.page import Page


def offered(page: Page, field: str, text: str) -> list[str]:
    """Type a text, and give the names that the browser is told to offer then."""
    page.browser.type(field, text)
    names = f"[...document.querySelector('{field}').list.options].map(it => it.value)"
    page.browser.until(f"(all => all.length > 0 && all.every(it => it.includes({json.dumps(text)})))({names})")
    found: list[str] = page.value(names)
    return found


def test_pods_and_nodes_are_offered_by_a_part_of_their_names(page: Page) -> None:
    assert "data/queue-0" in offered(page, "#find", "queue")
    assert offered(page, "#find", "node21") == ["node21"]
    assert page.value("document.querySelector('#find').list.options[0].label") == "node21, node"
    page.browser.press("Enter")
    page.wait_for_details("node21")


def test_the_field_of_the_pod_offers_pods_alone(page: Page) -> None:
    assert {"data"} == {name.partition("/")[0] for name in offered(page, "#pod-name", "data/")}
    page.browser.type("#pod-name", "node4")
    page.browser.until("document.querySelector('#pod-name').list.options.length === 0")


def test_a_name_that_there_is_not_is_asked_about_and_refused_beside_the_field_of_the_pod(page: Page) -> None:
    page.browser.type("#find", "shop/nobody")
    page.browser.press("Enter")
    assert "pod shop/nobody: " in page.complaint("#pod-name")
    page.browser.type("#find", "")
    page.browser.press("Enter")
    assert page.complaint("#find") == "Say which pod or node."
