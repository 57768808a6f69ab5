"""The results of one release's cases: counts by kind and by plugin."""

from collections import Counter
from dataclasses import dataclass, field

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
            shown = (f"{name} {count}" for name, count in sorted(self.plugins_differing.items()))
            lines.append(f"  cases that differ, by plugin: {', '.join(shown)}")
        return "\n".join(lines)
