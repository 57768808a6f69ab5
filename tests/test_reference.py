"""docs/reference.md has a row for each method of the reference interface, and names modules and names that exist."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

PAGE: Final = Path("docs/reference.md").read_text("utf-8")
ROW: Final = re.compile(r"^\| `(\w+)` \| (.*?) \| (.*?) ?\|$", re.MULTILINE)
HERE: Final = re.compile(r"^\[(\w[\w/]*)\.py\]\(\.\./\1\.py\) `([\w.]+)`$")
METHODS: Final = {
    "SchedulerCache": """
        New AssumePod ForgetPod FinishReserving IsAssumedPod IsCachedPod GetPod PodCount Dump SetNodeInPartition
        SetNodeOutOfPartition NodeInThisPartition UpdateSnapshot GetUnitStatus GetUnitSchedulingStatus
        SetUnitSchedulingStatus ScrapeCollectable
    """,
    "Snapshot": """
        NewEmptySnapshot AssumePod ForgetPod Get GetLoadAwareNodeMetricInfo GetLoadAwareNodeUsage GetNodeInfo
        GetOwnerLabels GetOwnersForPDB GetPDBItemList GetPDBItemListForOwner GetPodGroupInfo GetPreemptorsByVictim
        HavePodsWithAffinityList HavePodsWithRequiredAntiAffinityList InPartitionList List MakeBasicNodeGroup
        NodeInfos NumNodes OutOfPartitionList
    """,
    "Collectables and stores": """
        NewEmptyClusterCollectable UpdateMetrics GetGuaranteedAllocatable GetGuaranteedRequested
        GetBestEffortAllocatable GetBestEffortRequested GetNode Find Range String
    """,
}
"""Heading -> the methods of the reference interface, whose document is not in this repository."""


def sections() -> Iterator[tuple[str, str]]:
    """Yield the heading and the text of each section with a table."""
    for section in PAGE.split("\n## ")[1:]:
        heading, _, text = section.partition("\n")
        yield heading, text


def rows() -> list[tuple[str, str, str]]:
    return [(method, here, remarks) for method, here, remarks in ROW.findall(PAGE)]


def test_each_method_has_one_row_under_its_type() -> None:
    found = {heading: [method for method, _, _ in ROW.findall(text)] for heading, text in sections()}
    assert {heading: sorted(methods.split()) for heading, methods in METHODS.items()} == {
        heading: sorted(methods) for heading, methods in found.items()
    }


def test_no_row_is_written_in_another_form() -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith("| `")]
    assert len(lines) == len(rows())


@pytest.mark.parametrize(("method", "here", "remarks"), rows())
def test_a_row_names_what_exists_or_says_what_is_missing(method: str, here: str, remarks: str) -> None:
    if here == "-":
        assert remarks, f"{method}: neither a place nor a reason"
        return
    match = HERE.match(here)
    assert match is not None, f"{method}: {here}"
    found: Any = importlib.import_module(match[1].replace("/", "."))
    for part in match[2].split("."):
        assert hasattr(found, part), f"{method}: {here}"
        found = getattr(found, part)
