"""What a selector reads of a device decides which devices look alike to it."""

import pytest

from core.objects.devices import ResourceSlice
from core.plugins.dynamicresources.inventory import Inventory
from core.plugins.dynamicresources.matching import Matcher, Reads, reads_of
from core.plugins.dynamicresources.selectors import SelectorError
from core.releases.release import RELEASES
from tests.core.diagnosis.test_devices import mirror_of_case
from tests.core.plugins.dynamicresources.world import FAILS, device, slice_of, world

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


@pytest.mark.parametrize(
    "expression",
    [
        f"{GPU}.all//\n(name, name != 'index')",
        f"true || // {GPU}.\n{GPU}['nu' + 'ma'] == 1",
        f'"device.attributes[\'" + string({GPU}.numa) + "\'].b" == "device.attributes[\'1\'].b"',
    ],
    ids=["call-behind-a-comment", "device-behind-a-comment", "expression-in-a-text"],
)
def test_what_only_looks_like_a_name_hides_nothing_that_is_read(expression: str) -> None:
    assert reads_of(expression) is None


def test_an_error_is_kept_without_the_frames_that_it_was_raised_in() -> None:
    """They take 3 KB each, and 50,000 errors of one selector are kept."""
    mirror = mirror_of_case(world([slice_of("s", [device("g0")])], []))
    (of_slice,) = mirror.objects(ResourceSlice).values()
    (found,) = mirror.derived(Inventory).devices_of(of_slice)
    error = Matcher(FAILS["cel"]["expression"], RELEASES[-1]).of(found)
    assert isinstance(error, SelectorError)
    assert error.message
    assert (error.__traceback__, error.__cause__, error.__context__) == (None, None, None)
