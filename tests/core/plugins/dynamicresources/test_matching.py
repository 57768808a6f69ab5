"""What a selector reads of a device decides which devices look alike to it."""

import pytest

from core.plugins.dynamicresources.matching import Reads, reads_of

GPU = 'device.attributes["gpu.x.io"]'


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        (f"{GPU}.model == 'A'", {"model", "gpu.x.io/model"}),
        (f"{GPU}.?index.orValue(1) == 1", {"index", "gpu.x.io/index"}),
        (f"{GPU}[?'index'].hasValue()", {"index", "gpu.x.io/index"}),
        ("device.driver == 'x' && device.allowMultipleAllocations", set()),
    ],
)
def test_a_selector_reads_the_attributes_that_it_names(expression: str, names: set[str]) -> None:
    assert reads_of(expression) == Reads(frozenset(names), frozenset())


@pytest.mark.parametrize(
    "expression",
    [f"{GPU}.all(name, name != 'index')", f"{GPU}.exists (n, n == 'a')", f"'index' in {GPU}", f"{GPU}.size() > 1"],
)
def test_a_selector_of_a_whole_domain_reads_all(expression: str) -> None:
    assert reads_of(expression) is None
