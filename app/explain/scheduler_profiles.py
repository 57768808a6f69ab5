"""The rules of explanations by kube-scheduler's configuration: the plugins for a pod, by its spec.schedulerName."""

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from app.objects.plugin_args import plugin_arguments
from app.scheduler_configuration.scheduler_config import DEFAULT_SCHEDULER, Extender, SchedulerConfig, choose_extender
from app.scheduler_configuration.schema import KNOWN, Point, Profile
from app.scheduler_configuration.validation import arguments_of
from app.settings.settings import Settings
from app.verbs.filter import create_bypass
from app.verbs.scopes import DecideScope, decide_scopes, device_schedulers
from core.diagnosis.explained_profile import NOTHING, ExplainProfile, SchedulerRules, joined
from core.diagnosis.not_judged import NotJudged
from core.framework.interface import Plugin
from core.objects.pod import Pod
from core.plugins import DEFAULTS, DEVICES, EXPLAINED, PLUGINS
from core.plugins.in_tree import DefaultPreemption, DeviceSchedulers
from core.profile import Arguments, full_profile, profile_arguments, with_argument, with_device_score, with_devices
from core.profile import Profile as Plugins
from core.scheduling_cycle import ALL

FULL: Final = with_devices(full_profile())
FILTERS: Final = frozenset(plugin.name for plugin in FULL.filters)
SCORES: Final = frozenset(plugin.name for plugin, _ in FULL.scores)
"""Scoring plugins of kube-scheduler's defaults that Kindred implements, also if it scores no request by them."""
_MAY_REFUSE: Final[Sequence[Point]] = ("multiPoint", "preEnqueue", "preFilter", "filter", "reserve", "permit")
"""Extension points at which a plugin can reject nodes for a pod."""


class SchedulerPlugins(NamedTuple):
    """The plugins of a profile of kube-scheduler."""

    profile: Profile
    plugins: Plugins
    """The plugins that Kindred implements, in kube-scheduler's order and with its weights."""
    filter_otherwise: frozenset[str]
    """Plugins with other arguments in Kindred's settings, so that other nodes may pass."""
    score_otherwise: frozenset[str]
    """Plugins with other arguments in Kindred's settings, so that scores may differ."""
    not_judged: tuple[NotJudged, ...]
    early: tuple[NotJudged, ...]
    """Plugins whose PreFilter runs without their Filter, which Kindred does not support."""
    not_scored: tuple[NotJudged, ...]


def scheduler_plugins(
    profile: Profile, extenders: Sequence[Extender], own: Plugins, own_arguments: Arguments
) -> SchedulerPlugins:
    """Return the plugins of a profile. Raises UnreadableError that names the field, for invalid arguments.

    `own` are plugins with `own_arguments`. A plugin of `own` is used if the profile has the same arguments, so that
    each plugin runs once.
    """
    arguments = _arguments(profile, extenders)
    changed = {name: changed_arguments(name, profile.name, arguments, own_arguments) for name in FILTERS | SCORES}
    made: dict[str, Any] = {name: EXPLAINED[name](**arguments.get(name, {})) for name in FILTERS | SCORES}
    to_filter = made | {plugin.name: plugin for plugin in own.filters if not changed.get(plugin.name)}
    to_score = made | {plugin.name: plugin for plugin, _ in own.scores if not changed.get(plugin.name)}
    filters = tuple(to_filter[name] for name in profile.order("filter") if name in FILTERS)
    order = profile.order("score")
    scores = tuple((to_score[name], profile.weight(name)) for name in order if name in SCORES)
    outside = (NotJudged(name, "no in-tree plugin") for name in order if name not in KNOWN)
    return SchedulerPlugins(
        profile,
        Plugins(filters, scores, not profile.enabled("filter") and "*" not in profile.disabled("multiPoint")),
        filter_otherwise=frozenset(name for name, fields in changed.items() if fields - {*EXPLAINED[name].of_scores}),
        score_otherwise=frozenset(name for name, fields in changed.items() if fields - {*EXPLAINED[name].of_verdicts}),
        not_judged=tuple(_outside(profile)),
        early=tuple(_pre_filter_alone(profile)),
        not_scored=(*outside, *_other_scores(profile)),
    )


def _arguments(profile: Profile, extenders: Sequence[Extender]) -> Arguments:
    """Return plugin -> arguments of the constructor, for plugins with arguments."""
    found: dict[str, Mapping[str, Any]] = {}
    for index, written in enumerate(profile.plugin_config):
        if written.name in PLUGINS:  # not a plugin that Kindred lacks, or that is not in-tree
            found |= arguments_of(written, profile.at(f"pluginConfig[{index}].args"))
    ignored = [each.name for extender in extenders for each in extender.managed_resources if each.ignored_by_scheduler]
    # They replace the configured value: pkg/scheduler/scheduler.go, buildExtenders.
    return with_argument(found, "ignored_resources", ignored) if ignored else found


def changed_arguments(name: str, scheduler: str, arguments: Arguments, others: Arguments) -> frozenset[str]:
    """Return the arguments of a plugin that differ for the pods of a scheduler. A default is the same if written."""
    ours, theirs = (_effective(name, scheduler, each) for each in (arguments, others))
    return frozenset(field for field, value in ours.items() if theirs[field] != value)


def _effective(name: str, scheduler: str, arguments: Arguments) -> Mapping[str, object]:
    """Return all arguments of a plugin as they are for a scheduler, with defaults for missing ones."""
    defaults = {each.name: each.default for each in inspect.signature(EXPLAINED[name]).parameters.values()}
    return {
        key: value.have(scheduler) if isinstance(value, DeviceSchedulers) else EXPLAINED[name].effect_of(value)
        for key, value in {**defaults, **arguments.get(name, {})}.items()
    }


def _outside(profile: Profile) -> Iterator[NotJudged]:
    """Yield plugins that are not in-tree and may reject nodes, and those that fail for every pod."""
    at = {name: point for point in reversed(_MAY_REFUSE) for name in profile.enabled(point) if name not in KNOWN}
    for name, point in at.items():
        yield NotJudged(name, f"no in-tree plugin, which the scheduler's profile enables at {point}")
    for name, before, point in profile.halved():
        yield NotJudged(name, f"{point} is on and {before} is off in the scheduler's profile, which is an error")


def _pre_filter_alone(profile: Profile) -> Iterator[NotJudged]:
    for name, each in DEFAULTS.items():
        if each.pre_filter_rejects and profile.runs(name, "preFilter") and not profile.runs(name, "filter"):
            yield NotJudged(name, "preFilter is on in the scheduler's profile, and may refuse the pod; filter is off")


def _other_scores(profile: Profile) -> Iterator[NotJudged]:
    for written in profile.plugin_config:
        args = written.args if isinstance(written.args, dict) else {}
        for argument, defaults in DEFAULTS.get(written.name, Plugin).not_scored:
            if args.get(argument) not in defaults:
                yield NotJudged(written.name, f"{argument} is not judged here")


_SCALE: Final = 10
"""kube-scheduler's factor for an extender's score: MaxNodeScore / MaxExtenderPriority."""


class SchedulerProfiles:
    """The explained rules by the profiles of a KubeSchedulerConfiguration. Without a profile: `every`."""

    def __init__(self, config: SchedulerConfig, settings: Settings, every: ExplainProfile) -> None:
        """Make the plugins of all profiles. Raises UnreadableError that names the field, and SettingsError."""
        self._every: Final = every
        self._config = config
        self._max_score = settings.max_score
        self._evicts = settings.preempt == "evict"
        self._scopes = decide_scopes(settings)
        self._kindred = kindred_of(config)
        self._others = [each for each in config.order() if each is not self._kindred]
        self._device_schedulers = device_schedulers(settings, config)
        given = with_argument(plugin_arguments(settings), "device_schedulers", self._device_schedulers)
        arguments = profile_arguments(settings.profile, given)
        self._entries: Mapping[str, SchedulerPlugins] = {
            profile.name: scheduler_plugins(profile, config.extenders, every.profile, arguments)
            for profile in config.profiles
        }
        self._bypass = create_bypass(settings)
        self._found: dict[tuple[str, bool, tuple[bool, ...]], ExplainProfile] = {}
        """(schedulerName, whether the pod passes, for each extender whether kube-scheduler calls it) -> rules."""

    def of(self, pod: Pod) -> ExplainProfile:
        """Return the rules for a pod. For an unknown scheduler, `every` with a note."""
        name = pod.scheduler_name or DEFAULT_SCHEDULER
        entry = self._entries.get(name)
        if entry is None:
            return replace(self._every, scheduler=SchedulerRules(name))
        passes = self._bypass.covers(pod)
        key = name, passes, tuple(each.gets_requests_for(pod.requests) for each in self._config.extenders)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._explained(entry, pod.requests, passes=passes)
        return found

    @property
    def names(self) -> Collection[str]:
        """The schedulers that have a profile."""
        return self._entries.keys()

    def serves(self, pod: Pod) -> bool:
        """Return whether Kindred judges a pod: kube-scheduler calls it for the pod, and it does not let it pass."""
        called = self._kindred is not None and self._kindred.gets_requests_for(pod.requests)
        return called and not self._bypass.covers(pod)

    def of_scheduler(self, name: str, *, served: bool) -> ExplainProfile:
        """Return the rules for the pods of a scheduler that Kindred judges, or for its others."""
        resources = [each.name for each in self._kindred.managed_resources] if self._kindred is not None else []
        return self._explained(self._entries[name], resources if served else (), passes=not served)

    def _explained(self, runs: SchedulerPlugins, resources: Collection[str], *, passes: bool) -> ExplainProfile:
        profile = runs.profile
        scope = self._scopes.of(profile.name) if self._scopes is not None and not passes else None
        called = self._kindred is not None and not passes and self._kindred.gets_requests_for(resources)
        kindred = self._kindred if called else None
        scheduler = runs.plugins
        extender = self._of_extender(kindred, decides=scope is not None)
        if extender.filters and scope is not None and self._device_schedulers.have(profile.name):
            devices = next(each for each in scheduler.filters if isinstance(each, DEVICES))
            extender = with_device_score(extender, devices)
        if extender.filters and scope is not None:  # kube-scheduler gets one node and ignores its score
            scheduler = replace(scheduler, scores=())
        weights = self._weights(scheduler, extender, kindred)
        _, percentage = self._config.percentage_of(profile)
        extender_filters, extender_scores = _names(extender)
        rules = SchedulerRules(
            profile.name,
            has_profile=True,
            filters=frozenset(plugin.name for plugin in scheduler.filters),
            scores=frozenset(plugin.name for plugin, _ in scheduler.scores),
            extender_filters=extender_filters,
            extender_scores=extender_scores,
            off=_off(scheduler, extender_filters, extender_scores),
            extender=self._kindred.url_prefix if self._kindred is not None else "",
            percentage_of_nodes_to_score=ALL if extender.filters and scope is DecideScope.ANY_NODE else percentage,
            preempts=(self._evicts and bool(extender.filters))
            or (bool(scheduler.filters) and profile.runs(DefaultPreemption.name, "postFilter")),
        )
        rules = self._with_gaps(rules, runs, resources)
        judged = joined(scheduler, extender, weights)
        return ExplainProfile(judged, NOTHING if passes else self._every.served, rules)

    def _with_gaps(self, rules: SchedulerRules, runs: SchedulerPlugins, resources: Collection[str]) -> SchedulerRules:
        """Return the rules with a list of all rules that run in the cluster but not in Kindred."""
        others = [each for each in self._others if each.gets_requests_for(resources)]
        filters, scores = (runs.filter_otherwise & rules.filters, runs.score_otherwise & rules.scores)
        early = (each for each in runs.early if each.plugin not in rules.extender_filters)
        not_judged = [*runs.not_judged, *early]
        not_scored = [*runs.not_scored]
        for each in others:
            name = f"extender {each.url_prefix}"
            if each.filter_verb:
                not_judged.append(NotJudged(name, "another extender, whose filter is not judged here"))
            if each.prioritize_verb:
                not_scored.append(NotJudged(name, f"another extender, whose scores weigh {each.weight}"))
        return replace(
            rules,
            not_judged=(*not_judged, *_twice(filters & rules.extender_filters)),
            not_scored=(*not_scored, *_twice(scores & rules.extender_scores)),
        )

    def _of_extender(self, kindred: Extender | None, *, decides: bool) -> Plugins:
        """Return the part of the serving profile that the scheduler's configuration calls."""
        served = self._every.served
        if kindred is None:
            return NOTHING
        filters = served.filters if kindred.filter_verb else ()
        scores = kindred.prioritize_verb
        return Plugins(filters, served.scores if scores or (decides and filters) else ())

    def _weights(self, scheduler: Plugins, extender: Plugins, kindred: Extender | None) -> Mapping[str, int]:
        """Return plugin -> weight, as integers in the same proportion as in kube-scheduler's total.

        If kube-scheduler scores by itself and Kindred's weights are integers beside its weights, its weights stay.
        """
        own = {plugin.name: Fraction(weight) for plugin, weight in scheduler.scores}
        served = {plugin.name: weight for plugin, weight in extender.scores}
        if not own or kindred is None:
            return {**{name: int(weight) for name, weight in own.items()}, **served}
        # Kindred's score of a node is the mean of its plugins, up to max_score. Source: prioritizeNodes in
        # pkg/scheduler/schedule_one.go.
        share = Fraction(kindred.weight * self._max_score * _SCALE, ALL * max(sum(served.values()), 1))
        total = own | {name: own.get(name, Fraction(0)) + weight * share for name, weight in served.items()}
        common = lcm(*(weight.denominator for weight in total.values()))
        return {name: int(weight * common) for name, weight in total.items()}


def kindred_of(config: SchedulerConfig) -> Extender | None:
    """Return the extender that is Kindred: by its name, or the only extender for all pods."""
    chosen, _ = choose_extender(config, "", "")
    if chosen is None or (chosen.managed_resources and "kindred" not in chosen.place[0]):
        return None
    return chosen


def _names(extender: Plugins) -> tuple[frozenset[str], frozenset[str]]:
    """Return the plugins that Kindred filters and scores with. A composite counts as its parts."""
    filters = {plugin.name for plugin in (*extender.filters, *extender.filter_parts)}
    return frozenset(filters), frozenset(plugin.name for plugin, _ in extender.scores)


def _off(scheduler: Plugins, extender_filters: frozenset[str], extender_scores: frozenset[str]) -> Plugins:
    """Return the plugins of `full` that do not run."""
    filters = FILTERS - extender_filters - {plugin.name for plugin in scheduler.filters}
    scores = SCORES - extender_scores - {plugin.name for plugin, _ in scheduler.scores}
    return Plugins(
        tuple(plugin for plugin in FULL.filters if plugin.name in filters),
        tuple((plugin, weight) for plugin, weight in FULL.scores if plugin.name in scores),
    )


def _twice(plugins: frozenset[str]) -> Iterator[NotJudged]:
    """Yield plugins that kube-scheduler and Kindred run with different arguments. kube-scheduler's count."""
    for name in sorted(plugins):
        yield NotJudged(name, "Kindred runs it, too, with other arguments, which are not judged here")
