"""The scores that kube-scheduler has given, read from its log at verbosity 10 (schedule_one.go, prioritizeNodes)."""

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

VERBOSITY: Final = 10
"""From which on the log has all scores."""
INTER_POD_AFFINITY: Final = "InterPodAffinity"

Scores: TypeAlias = dict[str, int]  # node -> score

_LINE: Final = re.compile(
    r'\] "(?:Plugin scored node for pod|Extender scored node for pod|Calculated node\'s final score for pod)" (.*)$',
    re.MULTILINE,
)
_VALUE: Final = re.compile(r'(\w+)="?([^"\s]+)')


class PodScores(msgspec.Struct, frozen=True):
    """What was added up for one pod; all empty if there was only one node to choose from."""

    plugins: dict[str, Scores]
    """By plugin, times its weight. One that had nothing to say is not there: its score is 0."""
    extender: Scores
    """As the extender has answered."""
    totals: Scores

    def others(self) -> Scores:
        """Return what the plugins besides InterPodAffinity have added."""
        plugins = [scores for plugin, scores in self.plugins.items() if plugin != INTER_POD_AFFINITY]
        return {node: sum(scores[node] for scores in plugins) for node in self.totals}

    def best(self) -> set[str]:
        """Return the nodes with the highest total, one of which kube-scheduler takes."""
        highest = max(self.totals.values(), default=0)
        return {node for node, total in self.totals.items() if total == highest}


def scores_of(log: str) -> Mapping[str, PodScores]:
    """Return the scores by pod, NAMESPACE/NAME; those of the last attempt if there were several."""
    found: defaultdict[str, PodScores] = defaultdict(lambda: PodScores({}, {}, {}))
    for line in _LINE.findall(log):
        values = dict(_VALUE.findall(line))
        scores = found[values["pod"]]
        if "plugin" in values:
            target = scores.plugins.setdefault(values["plugin"], {})
        else:
            target = scores.extender if "extender" in values else scores.totals
        target[values["node"]] = int(values["score"])
    return found
