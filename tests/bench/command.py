"""The size of the cluster and the number of samples, as options of the benchmarks."""

import argparse
from dataclasses import dataclass

NODES = 5_000
PODS = 150_000


@dataclass(frozen=True, slots=True)
class Size:
    """The size of the cluster, and the share of a full run's samples."""

    nodes: int = NODES
    pods: int = PODS
    effort: float = 1.0

    def samples(self, full: int, least: int = 1) -> int:
        """Return the number of samples, where a full run has `full`."""
        return max(least, round(full * self.effort))

    def __str__(self) -> str:
        return f"{self.nodes:,} nodes / {self.pods:,} pods"


QUICK = Size(300, 9_000, 0.05)
"""To check that everything works. The bounds apply to larger sizes."""


def parser(module: str, doc: str) -> argparse.ArgumentParser:
    """Make a parser of the options for a Size."""
    made = argparse.ArgumentParser(prog=f"python -m {module}", description=doc)
    made.add_argument("--nodes", type=int, default=NODES)
    made.add_argument("--pods", type=int, default=PODS)
    made.add_argument("--effort", type=float, default=1.0, metavar="SHARE", help="of a full run's samples")
    return made


def size(options: argparse.Namespace) -> Size:
    """Return the Size of parsed options."""
    return Size(options.nodes, options.pods, options.effort)
