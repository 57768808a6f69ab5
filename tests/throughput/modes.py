"""The modes whose throughput is measured: a kube-scheduler's configuration, and what Kindred is set to beside it."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from tests.e2e.scheduler import IN_TREE, configuration, scheduler_names
from tests.throughput.results import ANY_NODE, CEILING, FAST_PATH

T = TypeVar("T")

FULL_OFFLOAD: Final = "full-offload"
LISTED_NODES: Final = "decide-listed-nodes"
"""The registration decide, with all nodes in each request, and a choice among them."""
_DECIDE: Final = "decide"
_BINDS: Final = {"KINDRED_BIND": "true"}
_DECIDES: Final = {
    "KINDRED_PROFILE": "full",
    "KINDRED_DECIDE_CLAIMS_SCHEDULER": "kindred-volumes",
}


@dataclass(frozen=True, slots=True)
class Mode:
    """One way to schedule."""

    name: str
    registration: str
    """A file of manifests/scheduler without its ending, or IN_TREE."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Kindred's settings, beside those that every registration asks for."""
    has_extender: bool = True
    percentage: int | None = None
    """`percentageOfNodesToScore` of all profiles. None: as in the file."""
    fields: Mapping[str, object] = field(default_factory=dict)
    """Fields of the scheduler's configuration that differ from the file."""
    gate: str = ""
    """A feature gate of the scheduler that is switched on."""
    since: int = 0
    """The first minor release that has the gate."""

    def config(self, extender_url: str) -> dict[str, Any]:
        """Return the scheduler's configuration."""
        loaded = {**configuration(self.registration, extender_url), **self.fields}
        if self.percentage is not None:
            for each in (loaded, *loaded.get("profiles", ())):
                each["percentageOfNodesToScore"] = self.percentage
        if not self.has_extender:
            loaded.pop("extenders", None)
        return loaded

    @property
    def flags(self) -> list[str]:
        """The scheduler's flags beside those of the tests."""
        return [f"--feature-gates={self.gate}=true"] if self.gate else []

    @property
    def scheduler_name(self) -> str:
        """The profile of the configuration that is measured: its first."""
        return scheduler_names(self.config(""))[0]


MODES: Final = {
    mode.name: mode
    for mode in (
        Mode(IN_TREE, IN_TREE, has_extender=False),
        # Alpha, and off, in 1.37. Source: k8s.io/kubernetes pkg/features/kube_features.go.
        Mode(FAST_PATH, IN_TREE, has_extender=False, gate="InterPodAffinityHostnameFastPath", since=37),
        Mode("score-offload", "score-offload"),
        Mode(FULL_OFFLOAD, FULL_OFFLOAD, _BINDS),
        Mode(LISTED_NODES, _DECIDE, {**_DECIDES, "KINDRED_DECIDE": "listed-nodes"}, percentage=100),
        Mode(ANY_NODE, _DECIDE, {**_DECIDES, "KINDRED_DECIDE": "any-node"}),
        # No filter, no score, no extender: the next node in turn. What is left is queue, binding, events and watch.
        Mode(CEILING, _DECIDE, has_extender=False, percentage=100),
        Mode("in-tree-100", IN_TREE, has_extender=False, percentage=100),
        Mode("full-offload-sample", FULL_OFFLOAD, {**_BINDS, "KINDRED_PERCENTAGE_OF_NODES_TO_SCORE": "0"}),
    )
}
DEFAULT_MODES: Final = (IN_TREE, "score-offload", FULL_OFFLOAD, LISTED_NODES, ANY_NODE, CEILING)


def chosen(known: Mapping[str, T]) -> Callable[[str], list[T]]:
    """Return what argparse reads names with, separated by commas, each of what is known by it."""

    def choose(text: str) -> list[T]:
        unknown = [name for name in text.split(",") if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not one of {', '.join(known)}")
        return [known[name] for name in text.split(",")]

    return choose
