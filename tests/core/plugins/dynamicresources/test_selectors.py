"""Selectors of devices: one expression, one device, one result or one kind of error."""

import pytest

from core.objects import quantity
from core.plugins.dynamicresources.selectors import SelectedDevice, SelectorError, SelectorErrorKind, compile_selector
from core.releases.release import RELEASES

_GPU = SelectedDevice(
    driver="gpu.example.com",
    attributes={"model": "A100", "numa": 1, "nvlink.io/group": 2},
    capacity={"memory": quantity.nanos("40Gi")},
)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('device.driver == "gpu.example.com"', True),
        ('device.attributes["gpu.example.com"].model == "H100"', False),
        ('device.attributes["nvlink.io"].group == 2', True),
        ('device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("39Gi"))', True),
        ("device.allowMultipleAllocations", False),
    ],
)
def test_a_device_matches_or_not(expression: str, *, expected: bool) -> None:
    assert compile_selector(expression, RELEASES[-1]).matches(_GPU) is expected


def test_an_attribute_that_is_missing_is_an_error_at_run_time() -> None:
    selector = compile_selector('device.attributes["gpu.example.com"].none == 2', RELEASES[-1])
    assert selector.error is None
    with pytest.raises(SelectorError) as caught:
        selector.matches(_GPU)
    assert caught.value.kind is SelectorErrorKind.RUNTIME


def test_what_does_not_compile_has_an_error_and_is_not_evaluated() -> None:
    selector = compile_selector("device.driver ==", RELEASES[-1])
    assert selector.error is not None
    assert selector.error.kind is SelectorErrorKind.COMPILE
    with pytest.raises(SelectorError):
        selector.matches(_GPU)


def test_a_list_for_format_may_have_several_types_and_is_not_evaluated() -> None:
    for expression, kind in (
        ('"%s-%d".format(["a", 1]) == "a-1"', SelectorErrorKind.NOT_EVALUATED),
        ('["a", 1].size() == 2', SelectorErrorKind.COMPILE),
    ):
        error = compile_selector(expression, RELEASES[-1]).error
        assert error is not None
        assert error.kind is kind
