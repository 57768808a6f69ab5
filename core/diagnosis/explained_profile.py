"""The rules that an explanation judges, independent of the serving profile, and which of them kube-scheduler judges."""

from enum import Enum

import msgspec

from core.diagnosis.scheduler_rules import SchedulerRules
from core.profile import COMPOSITES, NO_ARGUMENTS, Arguments, Profile, full_profile
from core.releases.release import Rules


class Judge(Enum):
    """The program whose plugin decides in the cluster."""

    KINDRED = "kindred"
    """Kindred's response to `filter` or `prioritize` includes the plugin."""
    SCHEDULER = "kube-scheduler"
    """kube-scheduler runs its own plugin. If its configuration is unknown, this holds only if the plugin is enabled."""
    BOTH = "kindred and kube-scheduler"
    """According to the configuration, kube-scheduler runs its own plugin and also calls Kindred."""


class ExplainedProfile(msgspec.Struct, frozen=True):
    """The plugins of an explanation, and the subset that serves schedulers."""

    profile: Profile
    served: Profile
    scheduler: SchedulerRules | None = None
    """The rules of kube-scheduler's configuration, or None if it is unknown."""

    def under(self, rules: Rules) -> "ExplainedProfile":
        """Return the profile in a release, see Profile.under."""
        scheduler = self.scheduler.under(rules) if self.scheduler is not None else None
        return ExplainedProfile(self.profile.under(rules), self.served.under(rules), scheduler)

    @property
    def configured(self) -> SchedulerRules | None:
        """The rules of the scheduler's profile for the pod, or None if it has none."""
        return self.scheduler if self.scheduler is not None and self.scheduler.has_profile else None

    def runs_in_scheduler(self, plugin: str) -> bool:
        """Return whether kube-scheduler filters by a plugin. True if its configuration is unknown."""
        return self.configured is None or plugin in self.configured.filters

    def judge_of_filter(self, plugin: str) -> Judge:
        """Return the program that filters by a plugin."""
        if self.configured is not None:
            return _judge(plugin, self.configured.filters, self.configured.asked_filters)
        return Judge.KINDRED if any(each.name == plugin for each in self.served.filters) else Judge.SCHEDULER

    def judge_of_score(self, plugin: str) -> Judge:
        """Return the program that scores by a plugin."""
        if self.configured is not None:
            return _judge(plugin, self.configured.scores, self.configured.asked_scores)
        return Judge.KINDRED if any(each.name == plugin for each, _ in self.served.scores) else Judge.SCHEDULER


def _judge(plugin: str, scheduler: frozenset[str], asked: frozenset[str]) -> Judge:
    if plugin in asked:
        return Judge.BOTH if plugin in scheduler else Judge.KINDRED
    return Judge.SCHEDULER


def served_alone(profile: Profile) -> ExplainedProfile:
    """Return the explained profile with only the serving profile."""
    return ExplainedProfile(profile, profile)


def every_rule(served: Profile, arguments: Arguments = NO_ARGUMENTS) -> ExplainedProfile:
    """Return the explained profile with the serving profile and the rest of the profile `full`.

    Plugins of the serving profile keep their arguments and weights. Those that `full` does not have come last. A plugin
    that is part of a served composite does not run twice. Raises ProfileError for invalid arguments.
    """
    full = full_profile(arguments)
    filters = {each.name: each for each in served.filters}
    scores = {plugin.name: (plugin, weight) for plugin, weight in served.scores}
    in_composites = {part for name in filters for part in COMPOSITES.get(name, ())}
    every_filter = {each.name: each for each in full.filters if each.name not in in_composites} | filters
    every_score = {plugin.name: (plugin, weight) for plugin, weight in full.scores} | scores
    if every_filter.keys() == filters.keys() and every_score.keys() == scores.keys():
        return served_alone(served)
    profile = Profile(tuple(every_filter.values()), tuple(every_score.values()), full.in_default_order)
    return ExplainedProfile(profile, served)
