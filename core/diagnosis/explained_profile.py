"""The rules that an explanation judges, which programs judge them, and the rules of kube-scheduler's configuration."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final

import msgspec

from core.diagnosis.not_judged import NotJudged
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from core.plugins import DEVICES
from core.profile import COMPOSITES, NO_ARGUMENTS, Arguments, Profile, full_profile, with_devices
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
    """Rules that are off: neither the profile nor the registered Kindred judges pods by them. They reject no node."""
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
    extender_filters: frozenset[str] = frozenset()
    """Plugins that filter in Kindred, for kube-scheduler."""
    extender_scores: frozenset[str] = frozenset()
    """Plugins that score in Kindred, for kube-scheduler."""
    off: Profile = NOTHING
    """The plugins of `full` that run in neither program."""
    not_judged: tuple[NotJudged, ...] = ()
    not_scored: tuple[NotJudged, ...] = ()
    extender: str = ""
    percentage_of_nodes_to_score: int = ALL
    preempts: bool = True
    """Whether a program preempts pods for one that fits nowhere."""

    def under(self, rules: Rules) -> "SchedulerRules":
        """Return the rules in a release. A plugin that the release does not have is not off, either."""
        off = self.off.under(rules)
        return self if off is self.off else msgspec.structs.replace(self, off=off)

    def of_pod(self, mirror: ClusterMirror, pod: Pod) -> "SchedulerRules":
        """Return the rules for a pod, without what a plugin that does not concern it says."""
        off = self.off.of_pod(mirror, pod)
        if off is self.off:
            return self
        gone = {each.name for each in self.off.plugins} - {each.name for each in off.plugins}
        not_judged = tuple(each for each in self.not_judged if each.plugin not in gone)
        return msgspec.structs.replace(self, off=off, not_judged=not_judged)

    def state(self, nodes: int) -> SchedulerState:
        """Return the state for an explanation in a cluster of `nodes` nodes."""
        return SchedulerState(
            name=self.name,
            has_profile=self.has_profile,
            filters_off=[plugin.name for plugin in self.off.filters],
            scores_off=[plugin.name for plugin, _ in self.off.scores],
            not_scored=self.not_scored,
            extender=self.extender,
            percentage_of_nodes_to_score=self.percentage_of_nodes_to_score,
            nodes_to_score=min(nodes_to_score(self.percentage_of_nodes_to_score, nodes), nodes),
        )


def joined(scheduler: Profile, extender: Profile, weights: Mapping[str, int]) -> Profile:
    """Return kube-scheduler's plugins and then Kindred's, each once, in kube-scheduler's order.

    kube-scheduler sends extenders the nodes that its own filters passed: findNodesThatFitPod in k8s.io/kubernetes
    pkg/scheduler/schedule_one.go. `weights` are for all scores.
    """
    filters = {plugin.name: plugin for plugin in (*extender.filters, *scheduler.filters)}
    order = dict.fromkeys(plugin.name for plugin in (*scheduler.filters, *extender.filters))
    scores = {plugin.name: plugin for plugin, _ in (*extender.scores, *scheduler.scores)}
    named = dict.fromkeys(plugin.name for plugin, _ in (*scheduler.scores, *extender.scores))
    return Profile(
        tuple(filters[name] for name in order),
        tuple((scores[name], weights[name]) for name in named),
        scheduler.in_default_order,
    )


class Judge(Enum):
    """The program whose plugin decides in the cluster."""

    KINDRED = "kindred"
    """Kindred's response to `filter` or `prioritize` includes the plugin."""
    SCHEDULER = "kube-scheduler"
    """kube-scheduler runs its own plugin. If its configuration is unknown, this holds only if the plugin is enabled."""
    BOTH = "kindred and kube-scheduler"
    """According to the configuration, kube-scheduler runs its own plugin and also calls Kindred."""


class ExplainProfile(msgspec.Struct, frozen=True):
    """The plugins of an explanation, and the subset that serves schedulers."""

    profile: Profile
    served: Profile
    scheduler: SchedulerRules | None = None
    """The rules of kube-scheduler's configuration, or None if it is unknown."""
    ranked: frozenset[str] = frozenset()
    """Schedulers whose pods Kindred ranks by the score of devices, because it decides and they score no node."""

    def under(self, rules: Rules) -> "ExplainProfile":
        """Return the profile in a release, see Profile.under."""
        scheduler = self.scheduler.under(rules) if self.scheduler is not None else None
        return ExplainProfile(self.profile.under(rules), self.served.under(rules), scheduler, self.ranked)

    def of_pod(self, mirror: ClusterMirror, pod: Pod) -> "ExplainProfile":
        """Return the profile for a pod, see Profile.of_pod."""
        profile = self.profile.of_pod(mirror, pod)
        scheduler = self.scheduler.of_pod(mirror, pod) if self.scheduler is not None else None
        ranked = self.ranked & {pod.scheduler_name}
        if profile is self.profile and scheduler is self.scheduler and ranked == self.ranked:
            return self
        return ExplainProfile(self.served if profile == self.served else profile, self.served, scheduler, ranked)

    @property
    def configured(self) -> SchedulerRules | None:
        """The rules of the scheduler's profile for the pod, or None if it has none."""
        return self.scheduler if self.scheduler is not None and self.scheduler.has_profile else None

    @property
    def preempts(self) -> bool:
        """Whether a program preempts pods for one that fits nowhere. True if the configuration is unknown."""
        return self.configured is None or self.configured.preempts

    def runs_in_scheduler(self, plugin: str) -> bool:
        """Return whether kube-scheduler filters by a plugin. True if its configuration is unknown."""
        return self.configured is None or plugin in self.configured.filters

    def judge_of_filter(self, plugin: str) -> Judge:
        """Return the program that filters by a plugin."""
        if self.configured is not None:
            return _judge(plugin, self.configured.filters, self.configured.extender_filters)
        return Judge.KINDRED if any(each.name == plugin for each in self.served.filters) else Judge.SCHEDULER

    def judge_of_score(self, plugin: str) -> Judge:
        """Return the program that scores by a plugin."""
        if self.configured is not None:
            return _judge(plugin, self.configured.scores, self.configured.extender_scores)
        scored = any(each.name == plugin for each, _ in self.served.scores) or (plugin == DEVICES.name and self.ranked)
        return Judge.KINDRED if scored else Judge.SCHEDULER


def _judge(plugin: str, scheduler: frozenset[str], extender: frozenset[str]) -> Judge:
    if plugin in extender:
        return Judge.BOTH if plugin in scheduler else Judge.KINDRED
    return Judge.SCHEDULER


def served_alone(profile: Profile) -> ExplainProfile:
    """Return the explained profile with only the serving profile."""
    return ExplainProfile(profile, profile)


def every_rule(
    served: Profile,
    arguments: Arguments = NO_ARGUMENTS,
    *,
    devices_score: bool = True,
    ranked: frozenset[str] = frozenset(),
) -> ExplainProfile:
    """Return the explained profile: the serving profile, the rest of the profile `full`, and the plugin of devices.

    Plugins of the serving profile keep their arguments and weights. Those that `full` does not have come last. A plugin
    that is part of a served composite does not run twice. `devices_score` is false if Kindred decides, and
    for no pod with devices. `ranked`: see ExplainProfile. Raises ProfileError for invalid arguments.
    """
    full = full_profile(arguments)
    filters = {each.name: each for each in served.filters}
    scores = {plugin.name: (plugin, weight) for plugin, weight in served.scores}
    in_composites = {part for name in filters for part in COMPOSITES.get(name, ())}
    every_filter = {each.name: each for each in full.filters if each.name not in in_composites} | filters
    every_score = {plugin.name: (plugin, weight) for plugin, weight in full.scores} | scores
    if every_filter.keys() == filters.keys() and every_score.keys() == scores.keys():
        profile = served
    else:
        profile = Profile(tuple(every_filter.values()), tuple(every_score.values()), full.in_default_order)
    return ExplainProfile(with_devices(profile, scores=devices_score), served, ranked=ranked)
