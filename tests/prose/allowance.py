"""How many findings each area may have: allowance.json. The numbers may only fall. An area without a number has 0."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from tests.prose.findings import Finding, Rule

PATH: Final = Path(__file__).with_name("allowance.json")

Allowance = Mapping[str, Mapping[str, int]]
"""Area -> rule -> findings."""


def read() -> Allowance:
    """Read the committed allowance."""
    allowance: dict[str, dict[str, int]] = json.loads(PATH.read_text("utf-8"))
    return allowance


def write(allowance: Allowance) -> None:
    """Write the allowance, sorted, so that branches merge."""
    PATH.write_text(json.dumps(allowance, indent=2, sort_keys=True) + "\n", "utf-8")


def exceeded(allowance: Allowance, found: Iterable[Finding]) -> list[tuple[str, Rule]]:
    """Return each area and rule with more findings than allowed, sorted."""
    counts = Counter((each.area, each.rule) for each in found)
    return sorted(key for key, count in counts.items() if count > allowance.get(key[0], {}).get(key[1], 0))


def lowered(allowance: Allowance, found: Iterable[Finding]) -> Allowance:
    """Return the allowance with each number lowered to the findings there are. A number that would be 0 is left out."""
    counts = Counter((each.area, str(each.rule)) for each in found)
    kept = {
        area: {rule: least for rule, allowed in rules.items() if (least := min(allowed, counts[area, rule]))}
        for area, rules in allowance.items()
    }
    return {area: rules for area, rules in kept.items() if rules}
