"""For all golden cases, the decided node is among those with the highest total of the real scheduler."""

from functools import cache
from pathlib import Path
from typing import Final

import msgspec
import pytest

from app.verbs.request import Request, VerbOutcome
from app.verbs.scopes import DecideScope
from tests.app.verbs.deciding.deciding_setting import DecidingSetting, node_of
from tests.conformance.combined_cases import combined_profile
from tests.conformance.engine import load
from tests.conformance.golden_files import Members, read

CASES: Final = Path(__file__).parents[3] / "conformance" / "data" / "cases.jsonl.gz"
PARTS: Final = 6


@cache
def golden() -> list[Members]:
    return [line.content for line in read(CASES)]


@pytest.mark.parametrize("cached", [True, False], ids=["cached", "fresh"])
@pytest.mark.parametrize("scope", DecideScope)
@pytest.mark.parametrize("part", range(PARTS))
def test_the_decided_node_is_one_of_the_best(
    part: int,
    scope: DecideScope,
    cached: bool,  # noqa: FBT001 - a column of the table
) -> None:
    cases = golden()[part::PARTS]
    assert len(cases) == 100
    for case in cases:
        combined = case["expected"]["combined"]
        mirror = load(case["namespaces"], case["nodes"], case["pods"])
        setting = DecidingSetting(mirror, scope, combined_profile(case), cached=cached)
        names = [node["metadata"]["name"] for node in case["nodes"]]
        body = msgspec.json.encode({"Pod": case["pod"], "NodeNames": names})
        feasible = combined["feasible"]
        totals = {node: (combined["total"] or {}).get(node, 0) for node in feasible}
        best = {node for node, total in totals.items() if total == max(totals.values())}
        for _ in range(2):
            response = setting.extender.filter(Request(body), setting.effects)
            if response.error:  # a selector that is invalid ends the attempt in-tree, too
                assert response.outcome is VerbOutcome.BAD_REQUEST
                assert not best, case["name"]
                continue
            chosen = node_of(response)
            assert chosen in best if best else not chosen, case["name"]
            setting.turn += 1
