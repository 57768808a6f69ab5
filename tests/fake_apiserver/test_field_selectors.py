"""Field selectors."""

import pytest

from tests.fake_apiserver.field_selectors import parse_field_selector
from tests.fake_apiserver.resources import NODES, PODS, Resource
from tests.fake_apiserver.statuses import RefusedError
from tests.fake_apiserver.stored import Stored


def stored(name: str, phase: str, node: str) -> Stored:
    made = Stored("shop", name, "u", 1, b"}")
    made.phase, made.node_name = phase, node
    return made


PODS_BY_NAME = {
    "running": stored("running", "Running", "n1"),
    "waiting": stored("waiting", "Pending", ""),
    "done": stored("done", "Succeeded", "n2"),
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "running waiting done"),
        ("status.phase!=Succeeded,status.phase!=Failed", "running waiting"),
        ("spec.nodeName=n1", "running"),
        ("spec.nodeName==n1", "running"),
        ("spec.nodeName=", "waiting"),
        ("spec.nodeName!=", "running done"),
        ("metadata.name=done", "done"),
        ("metadata.namespace=shop", "running waiting done"),
        ("metadata.namespace!=shop", ""),
        ("status.phase=Running,spec.nodeName=n2", ""),
    ],
)
def test_which_pods_are_selected(text: str, expected: str) -> None:
    selector = parse_field_selector(text, PODS)
    assert " ".join(name for name, each in PODS_BY_NAME.items() if selector.matches(each)) == expected


@pytest.mark.parametrize(
    ("text", "resource", "message"),
    [
        ("spec.image=x", PODS, "field label not supported: spec.image"),
        ("spec.nodeName=x", NODES, "field label not supported: spec.nodeName"),
        ("metadata.name", PODS, "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
    ],
    ids=["unknown-field", "field-of-pods", "no-operator"],
)
def test_what_cannot_be_selected_is_a_bad_request(text: str, resource: Resource, message: str) -> None:
    with pytest.raises(RefusedError) as refused:
        parse_field_selector(text, resource)
    assert (refused.value.status["code"], refused.value.status["message"]) == (400, message)
