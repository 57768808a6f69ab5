"""Whether a case bites: the plugins' results differ between its nodes, so that an error could show."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.parity.random_nodes import V1
from tests.parity.report import TOGETHER


def biting(case: V1, expected: V1) -> Iterator[str]:
    """Yield the biting plugins, whose results differ between nodes, and `all together` if the joint result does."""
    nodes = len(case["nodes"])
    if "candidates" in expected:
        if _is_mixed(nodes, len(expected["candidates"])) or _choice(expected):
            yield TOGETHER
        return
    for name, members in expected["plugins"].items() if "plugins" in expected else ():
        if _is_mixed(nodes, len(members.get("filter_failed", ()))) or _differ(members.get("normalized_all")):
            yield name
    if "filter" in expected:
        refused = sum(each["code"] != "Success" for each in expected["filter"].values())
        if _is_mixed(nodes, refused) or _differ(expected["normalized_all"]):
            yield "InterPodAffinity"
    combined = expected.get("combined", expected)
    if expected.get("refused_by_nominated"):
        yield "refused by nominated pods"
    if _is_mixed(nodes, len(combined["feasible"])) or _differ(combined.get("total")):
        yield TOGETHER


def _is_mixed(nodes: int, count: int) -> bool:
    return 0 < count < nodes


def _differ(scores: Mapping[str, Any] | None) -> bool:
    return scores is not None and len(set(scores.values())) > 1


def _choice(expected: V1) -> bool:
    return len(expected["chosen_all_nodes"]) < len(expected["candidates"])
