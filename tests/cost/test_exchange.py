"""The check which documents of HTTP framings can be sent."""

import pytest

from tests.cost.exchange import can_be_sent
from tests.cost.forms import FORMS


@pytest.mark.parametrize("name", [form.name for form in FORMS.values() if form.way == "wire"])
def test_every_form_can_be_sent(name: str) -> None:
    assert can_be_sent(FORMS[name].attack(8192).document)


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"connections": 0, "pieces": []},
        {"connections": 1},
        {"connections": 1, "pieces": [{"times": 1}]},
        {"connections": 1, "pieces": [{"text": "\u20ac"}]},
        {"connections": 1, "pieces": [{"text": "a", "times": True}]},
        {"connections": 64, "pieces": [{"text": "a" * 10_000, "times": 100_000}]},
        {"connections": 1, "path": "/a b", "times": 1},
    ],
)
def test_what_chance_has_broken_is_not_sent(document: object) -> None:
    assert not can_be_sent(document)
