"""The rule by which nodes are in the scheduler's partition."""

from collections.abc import Mapping

import pytest

from core.mirror.node_info import Partition
from core.objects.labels import EVERYTHING, NOTHING, Selector
from tests.core.mirror.values import selecting

SSD = selecting(disk="ssd")


def partition_of(selector: Selector, names: Mapping[str, bool]) -> Partition:
    partition = Partition()
    partition.set_selector(selector)
    for name, inside in names.items():
        partition.set_name(name, inside=inside)
    return partition


@pytest.mark.parametrize(
    ("selector", "names", "labels", "inside"),
    [
        pytest.param(SSD, {}, {"disk": "ssd"}, True, id="matched-by-the-selector"),
        pytest.param(SSD, {}, {"disk": "hdd"}, False, id="not-matched"),
        pytest.param(SSD, {}, {}, False, id="without-labels"),
        pytest.param(EVERYTHING, {}, {}, True, id="the-empty-selector-lets-all-in"),
        pytest.param(NOTHING, {}, {"disk": "ssd"}, False, id="the-null-selector-lets-none-in"),
        pytest.param(SSD, {"n": True}, {"disk": "hdd"}, True, id="a-name-that-is-in-wins"),
        pytest.param(SSD, {"n": False}, {"disk": "ssd"}, False, id="a-name-that-is-out-wins"),
        pytest.param(SSD, {"other": True}, {"disk": "hdd"}, False, id="another-name-says-nothing"),
        pytest.param(NOTHING, {"n": True}, {}, True, id="a-name-wins-over-the-null-selector"),
    ],
)
def test_a_name_wins_over_the_selector(
    selector: Selector,
    names: Mapping[str, bool],
    labels: Mapping[str, str],
    inside: bool,  # noqa: FBT001 - a table's column
) -> None:
    assert inside is partition_of(selector, names).includes("n", labels)


@pytest.mark.parametrize(
    ("selector", "names", "whole"),
    [
        pytest.param(EVERYTHING, {}, True, id="everything"),
        pytest.param(EVERYTHING, {"n": True}, True, id="everything-and-a-name-that-is-in"),
        pytest.param(EVERYTHING, {"m": True, "n": False}, False, id="everything-but-a-name"),
        pytest.param(SSD, {}, False, id="a-selector"),
        pytest.param(SSD, {"n": True}, False, id="a-selector-and-a-name-that-is-in"),
        pytest.param(NOTHING, {}, False, id="nothing"),
    ],
)
def test_a_partition_is_whole_only_if_it_can_keep_no_node_out(
    selector: Selector,
    names: Mapping[str, bool],
    whole: bool,  # noqa: FBT001 - a table's column
) -> None:
    assert whole is partition_of(selector, names).whole


def test_a_partition_is_whole_again_when_nothing_keeps_a_node_out_any_more() -> None:
    partition = partition_of(SSD, {"n": False})
    partition.set_selector(EVERYTHING)
    assert not partition.whole
    partition.set_name("n", inside=True)
    assert partition.whole


def test_a_name_that_is_set_twice_counts_once() -> None:
    partition = partition_of(EVERYTHING, {})
    whole = []
    for inside in (False, False, True, True, False):
        partition.set_name("n", inside=inside)
        whole.append(partition.whole)
    assert whole == [False, False, True, True, False]
