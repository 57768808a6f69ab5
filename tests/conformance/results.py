"""What came of running golden cases: counts per plugin, what was left out by name, and the differences."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

Members = Mapping[str, object]
RENDERED_CASES = 3


@dataclass(frozen=True, slots=True)
class Difference:
    """One member of an answer that is not as expected."""

    what: str
    expected: object
    got: object


@dataclass(slots=True)
class Results:
    """Counts by plugin, or by what else a line of the output is about; `failures` holds the first few in full."""

    passed: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, name: str, case: str, differences: list[Difference]) -> None:
        """Count a case that was run."""
        if not differences:
            self.passed[name] += 1
            return
        self.failed[name] += 1
        if len(self.failures) < RENDERED_CASES:
            self.failures.append(_failure(name, case, differences))

    def text(self) -> str:
        """Return the report; its last lines are the counts of what was run."""
        lines = list(self.failures)
        if hidden := self.failed.total() - len(self.failures):
            lines.append(f"{hidden} more failed")
        lines += [f"left out: {what}: {count}" for what, count in self.left_out.items()]
        names = dict.fromkeys([*self.passed, *self.failed])
        lines += [f"{name}: {self.passed[name]} passed, {self.failed[name]} failed" for name in names]
        return "\n".join(lines if names else [*lines, "nothing was run"]) + "\n"


def differences(expected: Members, got: Members) -> list[Difference]:
    """Compare two answers member by member; of a mapping, only the keys (nodes) that differ."""
    found: list[Difference] = []
    for what in dict.fromkeys([*expected, *got]):
        required, given = expected.get(what), got.get(what)
        if isinstance(required, Mapping) and isinstance(given, Mapping):
            keys = dict.fromkeys([*required, *given])
            found += [
                Difference(f"{what}[{key}]", required.get(key), given.get(key))
                for key in keys
                if required.get(key) != given.get(key)
            ]
        elif required != given:
            found.append(Difference(what, required, given))
    return found


def _failure(name: str, case: str, found: list[Difference]) -> str:
    lines = [f"FAILED {case}: {name}"]
    for difference in found:
        lines += [
            f"  {difference.what}",
            f"    expected {difference.expected!r}",
            f"    got      {difference.got!r}",
        ]
    return "\n".join(lines)
