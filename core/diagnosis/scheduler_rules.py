"""The rules of kube-scheduler's configuration for a pod: plugins that run in kube-scheduler, and those in Kindred."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from core.diagnosis.not_judged import NotJudged
from core.profile import Profile
from core.releases.release import Rules
from core.scheduling_cycle import ALL, nodes_to_score

NOTHING: Final = Profile((), ())


class SchedulerState(msgspec.Struct, frozen=True, gc=False):
    """The scheduler profile of an explanation."""

    name: str
    """spec.schedulerName of the pod."""
    has_profile: bool
    """Whether the configuration has a profile of that name. If not, every rule is judged as without a configuration."""
    filters_off: Sequence[str]
    """Rules that are off: neither the profile nor the registered Kindred has the plugin. They reject no node."""
    scores_off: Sequence[str]
    not_scored: Sequence[NotJudged]
    """Scores of the cluster that the scores here do not include."""
    extender: str
    """urlPrefix of the extender that was recognised as Kindred. Empty for none."""
    percentage_of_nodes_to_score: int
    """0 means that it depends on the size of the cluster."""
    nodes_to_score: int
    """How many fitting nodes kube-scheduler looks for and scores."""


class SchedulerRules(msgspec.Struct, frozen=True):
    """The configuration for the pods of one spec.schedulerName."""

    name: str
    has_profile: bool = False
    filters: frozenset[str] = frozenset()
    """Plugins that filter in kube-scheduler."""
    scores: frozenset[str] = frozenset()
    """Plugins whose scores count in kube-scheduler."""
    asked_filters: frozenset[str] = frozenset()
    """Plugins that filter in Kindred, for kube-scheduler."""
    asked_scores: frozenset[str] = frozenset()
    """Plugins that score in Kindred, for kube-scheduler."""
    off: Profile = NOTHING
    """The plugins of `full` that run in neither program."""
    never_judged_off: frozenset[str] = frozenset()
    """Plugins that are off and that explanations never judge."""
    not_judged: tuple[NotJudged, ...] = ()
    not_scored: tuple[NotJudged, ...] = ()
    extender: str = ""
    percentage_of_nodes_to_score: int = ALL

    def under(self, rules: Rules) -> "SchedulerRules":
        """Return the rules in a release. A plugin that the release does not have is not off, either."""
        off = self.off.under(rules)
        return self if off is self.off else msgspec.structs.replace(self, off=off)

    def state(self, never_judged: Sequence[NotJudged], nodes: int) -> SchedulerState:
        """Return the state for an explanation in a cluster of `nodes` nodes. `never_judged` are the pod's."""
        unjudged = [each.plugin for each in never_judged if each.plugin in self.never_judged_off]
        return SchedulerState(
            name=self.name,
            has_profile=self.has_profile,
            filters_off=[*(plugin.name for plugin in self.off.filters), *unjudged],
            scores_off=[plugin.name for plugin, _ in self.off.scores],
            not_scored=self.not_scored,
            extender=self.extender,
            percentage_of_nodes_to_score=self.percentage_of_nodes_to_score,
            nodes_to_score=min(nodes_to_score(self.percentage_of_nodes_to_score, nodes), nodes),
        )


def joined(scheduler: Profile, asked: Profile, weights: Mapping[str, int], *, in_default_order: bool) -> Profile:
    """Return kube-scheduler's plugins and then Kindred's, each once, in kube-scheduler's order.

    kube-scheduler sends extenders the nodes that its own filters passed: findNodesThatFitPod in k8s.io/kubernetes
    pkg/scheduler/schedule_one.go. `weights` are for all scores.
    """
    filters = {plugin.name: plugin for plugin in (*asked.filters, *scheduler.filters)}
    order = dict.fromkeys(plugin.name for plugin in (*scheduler.filters, *asked.filters))
    scores = {plugin.name: plugin for plugin, _ in (*asked.scores, *scheduler.scores)}
    named = dict.fromkeys(plugin.name for plugin, _ in (*scheduler.scores, *asked.scores))
    return Profile(
        tuple(filters[name] for name in order),
        tuple((scores[name], weights[name]) for name in named),
        in_default_order,
    )
