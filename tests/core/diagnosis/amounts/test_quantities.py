"""Amounts as text: exact where that is short, never rounded to the wrong side."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.diagnosis.amounts.quantities import quantity_text
from core.objects.quantity import nanos, units


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 7500, "7500m"),
        ("cpu", 4000, "4"),
        ("cpu", 0, "0"),
        ("cpu", -250, "-250m"),
        ("memory", 2**30, "1Gi"),
        ("memory", 1500 * 2**20, "1500Mi"),
        ("memory", 32_655_147_008, "30.41Gi"),
        ("memory", 1000, "1000"),
        ("hugepages-2Mi", 4 * 2**20, "4Mi"),
        ("example.com/gpu", 12_345, "12345"),
        ("pods", 3, "3"),
    ],
)
def test_amounts_are_written_as_kubernetes_writes_them(resource: str, amount: int, text: str) -> None:
    assert text == quantity_text(resource, amount)


@given(st.integers(-(2**62), 2**62))
def test_rounded_text_is_never_on_the_wrong_side(amount: int) -> None:
    down, up = (quantity_text("memory", amount, round_up=each) for each in (False, True))
    assert units(nanos(down)) <= amount <= units(nanos(up))
