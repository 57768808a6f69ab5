"""The results of one release: counts of cases by kind and by plugin, and which cases bite."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.parity.random_nodes import V1

TOGETHER = "all together"


@dataclass(slots=True)
class Report:
    """Counts. A case that cannot test the engine counts only in `left_out`."""

    release: str
    cases: Counter[str] = field(default_factory=Counter)  # kind -> compared
    biting: Counter[str] = field(default_factory=Counter)  # kind -> compared cases that bite
    differing: Counter[str] = field(default_factory=Counter)  # kind -> compared cases that differ
    plugins: Counter[str] = field(default_factory=Counter)  # plugin -> cases in which it bites
    plugins_differing: Counter[str] = field(default_factory=Counter)
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)  # (kind, why)

    def text(self) -> str:
        """Return the report as lines."""
        lines = [f"Kubernetes {self.release}: {self.cases.total()} cases, {self.differing.total()} differ"]
        lines += [
            f"  {kind}: {count} cases, {self.biting[kind]} bite, {self.differing[kind]} differ"
            for kind, count in self.cases.items()
        ]
        lines += [f"  left out of {kind}: {count}: {why}" for (kind, why), count in sorted(self.left_out.items())]
        bites = (f"{name} {count}" for name, count in sorted(self.plugins.items()) if name != TOGETHER)
        lines.append(f"  cases that bite, by plugin: {', '.join(bites)}")
        if self.plugins_differing:
            rendered = (f"{name} {count}" for name, count in sorted(self.plugins_differing.items()))
            lines.append(f"  cases that differ, by plugin: {', '.join(rendered)}")
        return "\n".join(lines)


def biting(case: V1, expected: V1) -> Iterator[str]:
    """Yield the biting plugins, whose results differ between nodes, and `all together` if the joint result does."""
    nodes = len(case["nodes"])
    if "candidates" in expected or "placed" in expected:
        if _choice(expected, nodes):
            yield TOGETHER
        return
    for name, members in expected["plugins"].items() if "plugins" in expected else ():
        if _is_mixed(nodes, len(members.get("filter_failed", ()))) or _differ(members.get("normalized_all")):
            yield name
    if "filter" in expected:
        rejected = sum(each["code"] != "Success" for each in expected["filter"].values())
        if _is_mixed(nodes, rejected) or _differ(expected["normalized_all"]):
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


def _choice(expected: V1, nodes: int) -> bool:
    """Return whether nodes differ for a dry run of preemption, or for the pods of a queue."""
    if "placed" in expected:
        return len({each["node"] for each in expected["placed"]}) > 1
    return _is_mixed(nodes, len(expected["candidates"])) or len(expected["chosen_all_nodes"]) < len(
        expected["candidates"]
    )
