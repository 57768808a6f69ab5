"""The forms: each makes an attack of the requested size."""

import pytest

from tests.cost.attack import Attack
from tests.cost.forms import ALL, FORMS

_FIXED = {"ordinary", "explain-adding-nodes", "explain-removing"}  # their number of elements is limited


def test_names_of_forms_are_not_taken_twice() -> None:
    assert len(ALL) == len(FORMS)


@pytest.mark.parametrize("name", [form.name for form in FORMS.values() if form.way != "wire"])
def test_a_form_is_about_as_large_as_asked(name: str) -> None:
    if name not in _FIXED:
        for size in (8 * 1024, 64 * 1024):
            assert 0.6 * size < FORMS[name].attack(size).size < 1.1 * size


def test_every_form_is_the_same_each_time() -> None:
    for form in FORMS.values():
        assert form.attack(4096) == form.attack(4096)


def test_the_bytes_of_all_connections_count() -> None:
    pieces = [{"text": "ab"}, {"text": "c", "times": 3}]
    assert Attack("wire", {"connections": 4, "pieces": pieces}).size == 20
    asking = {"connections": 2, "times": 3, "path": "/metrics", "pieces": [{}]}
    assert Attack("wire", asking).size == 2 * 3 * len("/metrics")
