"""The engine over a mirror: the plugins, the cache and the verbs `filter` and `prioritize`. For commands, too."""

import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from app.explain.scheduler_profiles import SchedulerProfiles
from app.feeds.freshness import Freshness, SyncStatus
from app.feeds.memory import memory_limit
from app.objects.decode import DecodeError
from app.objects.partition import set_partition
from app.objects.plugin_args import plugin_arguments
from app.objects.resources import RESOURCES
from app.scheduler_configuration.scheduler_config import DEFAULT_SCHEDULER, SchedulerConfig, load_scheduler_config
from app.scheduler_configuration.validation import UnreadableError
from app.server.process import Background
from app.settings.limits import DEFAULTS, Limits, cache_bytes
from app.settings.settings import Settings, SettingsError, variable_of
from app.telemetry.metrics import Metrics, cache_metrics
from app.telemetry.mismatch_log import MismatchLog
from app.telemetry.request_metrics import decision_metrics
from app.verbs.admission import ServingState
from app.verbs.decide import Decider, InTreeNeeds, at_random
from app.verbs.effects import Effects, Nominations, RejectedNodes
from app.verbs.evictor import Evaluator, Evictor, UnschedulablePods
from app.verbs.executor import EvictionApi, Executor, Preemptions
from app.verbs.filter import Extender, create_bypass
from app.verbs.pods import PodApi, PodLookup
from app.verbs.scopes import DecideScope, DecideScopes, decide_scopes, device_schedulers, in_tree_schedulers
from app.wiring.cluster import Cluster
from core.device_ranking import DeviceRanking
from core.diagnosis.explained_profile import NOTHING, ExplainProfile, every_rule
from core.equivalence.cache import DEFAULT_OPTIONS, CacheOptions, EquivalenceCache, Evaluations
from core.events import Kind
from core.gangs.gangs import Gangs
from core.gangs.placing import Placer
from core.mirror.changes import Listener
from core.mirror.cluster import ClusterMirror
from core.objects.groups import PodGroup, SchedulingGroup
from core.objects.kinds import PodDisruptionBudget
from core.objects.node import NodeMetrics
from core.objects.pod import Pod
from core.plugins import DEVICES
from core.profile import Profile, ProfileError, full_profile, parse_profile, with_argument
from core.scheduling_cycle import states_of
from core.simulation.placing import Scheduler, Schedulers

# `filter` and the evictor need each other. So both get the queue of pods, and the preemptions in progress.


class _Preemption(NamedTuple):
    rejected_nodes: RejectedNodes | None
    """None without preemption."""
    nominations: Nominations
    background: tuple[Background, ...] = ()


def _preemption(  # noqa: PLR0913  # its parts
    settings: Settings,
    mirror: ClusterMirror,
    profile: Profile,
    cluster: Cluster,
    metrics: Metrics,
    *,
    gangs: Gangs | None,
) -> _Preemption:
    clock = time.monotonic
    if settings.preempt == "off":
        return _Preemption(None, Nominations(mirror, clock))
    if settings.preempt == "verb" or cluster.client is None:
        return _Preemption(RejectedNodes(mirror, clock), Nominations(mirror, clock))
    observe = metrics.requests.observe_preemption
    pods = UnschedulablePods(mirror, clock, observe)
    preemptions = Preemptions(mirror, clock)
    rejected_nodes = RejectedNodes(mirror, clock, pods.add)

    def may_evict() -> bool:
        return cluster.state.freshness.status() is SyncStatus.FRESH and cluster.state.may_decide()

    evictor = Evictor(
        pods,
        preemptions,
        Evaluator(profile, mirror, random.randrange),
        rejected_nodes,
        Executor(
            EvictionApi(cluster.client, clock),
            preemptions,
            mirror,
            may_evict,
            gangs.leave if gangs else lambda _: False,
        ),
        clock=clock,
        observe=observe,
    )
    return _Preemption(rejected_nodes, Nominations(mirror, clock, preemptions.includes), (evictor.run,))


def create_decider(  # the parts of a decider
    settings: Settings,
    mirror: ClusterMirror,
    profile: Profile,
    evaluations: Evaluations,
    *,
    state: ServingState,
) -> Decider | None:
    """Return the decider that the settings define. None if they define none. Raises SettingsError."""
    scopes = _checked_scopes(settings, profile)
    if scopes is None:
        return None
    return Decider(
        profile,
        evaluations,
        scopes,
        needs=_needs(settings, mirror, profile),
        choose=at_random,
        ranking=_device_ranking(settings, profile, state.freshness),
        rejection=state.rejection_of_decide,
        preempt_verb_enabled=settings.preempt == "verb",
    )


def check_rules(settings: Settings) -> None:
    """Raise SettingsError for plugins, arguments, a partition or schedulers with which no service starts.

    Reads no file: those that settings name may be on another machine.
    """
    _checked_scopes(settings, create_profile(settings))
    apply_partition(settings, ClusterMirror())


def _checked_scopes(settings: Settings, profile: Profile) -> DecideScopes | None:
    """Return for which pods Kindred decides. Raises SettingsError."""
    scopes = decide_scopes(settings)
    if scopes is not None:
        if DecideScope.ANY_NODE in scopes.all:
            _check_that_all_is_judged(settings, profile)
        _check_groups_scheduler(settings)
    return scopes


def _ranked(settings: Settings) -> frozenset[str]:
    """Return the schedulers that have a plugin for devices, and for whose pods Kindred decides."""
    return frozenset(in_tree_schedulers(settings) if settings.decide != "off" else ())


def _device_ranking(settings: Settings, profile: Profile, freshness: Freshness) -> DeviceRanking | None:
    """Return what ranks nodes by devices. None: no scheduler for which Kindred decides has a plugin for them."""
    if not _ranked(settings):
        return None
    schedulers = device_schedulers(settings, _scheduler_config(settings))
    return DeviceRanking(profile, schedulers, freshness.missing_for_explanations)


def create_gangs(profile: Profile, evaluations: Evaluations, decider: Decider) -> Gangs:
    """Return the groups of pods that are placed together."""
    placer = Placer(evaluations.mirror, profile, partial(evaluations.begin, cached=True), at_random)
    return Gangs(evaluations.mirror, placer, decider.decides_for, time.thread_time)


def _needs(settings: Settings, mirror: ClusterMirror, profile: Profile) -> InTreeNeeds:
    groups = settings.decide_groups_scheduler
    return InTreeNeeds(mirror, settings.decide_claims_scheduler, profile.filter_parts, groups_scheduler=groups)


def _check_groups_scheduler(settings: Settings) -> None:
    """Reject a scheduler for groups whose profile lacks filters. Raises SettingsError."""
    name, variable = settings.decide_groups_scheduler, variable_of("decide_groups_scheduler")
    if name and name == settings.decide_claims_scheduler:
        raise SettingsError(f"{variable}={name!r}: the profile for claims lacks in-tree filters; name another one")


def _check_that_all_is_judged(settings: Settings, profile: Profile) -> None:
    """Reject `any-node` with a profile that lacks rules of the scheduler. Raises SettingsError."""
    judged = {plugin.name for plugin in profile.filter_parts}
    missing = [plugin.name for plugin in full_profile().filters if plugin.name not in judged]
    if missing:
        raise SettingsError(
            f"KINDRED_DECIDE={settings.decide}: needs every filter of the profile full, and "
            f"KINDRED_PROFILE={settings.profile!r} lacks {', '.join(missing)}"
        )


class Engine(NamedTuple):
    """A mirror with its plugins, cache and verbs."""

    mirror: ClusterMirror
    profile: Profile
    cache: EquivalenceCache | None
    extender: Extender
    effects: Effects
    background: tuple[Background, ...]
    """The evictor, if Kindred itself evicts, and what ends old groups."""


def create_profile(settings: Settings, config: SchedulerConfig | None = None) -> Profile:
    """Return the plugins that the settings enable, with their arguments. Raises SettingsError.

    `config` is the scheduler's configuration, whose profiles may lack the plugin that allocates devices.
    """
    arguments = with_argument(plugin_arguments(settings), "device_schedulers", device_schedulers(settings, config))
    try:
        return parse_profile(settings.profile, arguments)
    except ProfileError as error:
        raise SettingsError(f"KINDRED_PROFILE={settings.profile!r}: {error}") from None


def served_profile(settings: Settings) -> Profile:
    """Return the profile of responses, by the scheduler's configuration if one is named. Raises SettingsError."""
    return create_profile(settings, _scheduler_config(settings))


def _scheduler_config(settings: Settings) -> SchedulerConfig | None:
    """Return the scheduler's configuration from its file. None: the settings name none. Raises SettingsError."""
    if settings.scheduler_config is None:
        return None
    try:
        return load_scheduler_config(settings.scheduler_config)
    except UnreadableError as error:
        raise SettingsError(f"{variable_of('scheduler_config')}: {error}") from None


def followed_kinds(settings: Settings, profile: Profile) -> dict[Kind, bool]:
    """Return the kinds of objects to follow -> whether requests of schedulers need them, or others do.

    PodDisruptionBudgets show whether a pod may be evicted as a remedy. The admin port lists the groups of
    kube-scheduler, whatever is answered. A decision works without groups, and without scores of devices.
    """
    preempts, decides = settings.preempt != "off", settings.decide != "off"
    needed = (*_watched(profile.kinds), *((PodDisruptionBudget,) if preempts else ()))
    ranked = DEVICES.kinds if _ranked(settings) else ()
    explained = (*judged_kinds(settings, profile), PodDisruptionBudget) if settings.admin else ()
    own = (PodGroup,) if decides else ()
    groups = (SchedulingGroup,) if decides or preempts or settings.admin else ()
    return dict.fromkeys((*needed, *explained, *ranked, *own, *groups), False) | dict.fromkeys(needed, True)


def explained_profile(settings: Settings, profile: Profile) -> ExplainProfile:
    """Return the rules of explanations beside this serving profile. Raises SettingsError."""
    ranked = _ranked(settings)
    scores = settings.decide == "off" or bool(ranked)
    return every_rule(profile, plugin_arguments(settings), devices_score=scores, ranked=ranked)


def untouched_profile(settings: Settings) -> ExplainProfile:
    """Return the rules of explanations for pods that Kindred passes untouched: in-tree ones. Raises SettingsError."""
    return every_rule(NOTHING, plugin_arguments(settings))


def scheduler_profiles(settings: Settings, every: ExplainProfile) -> SchedulerProfiles | None:
    """Return the rules of explanations by the scheduler's configuration, which is read from its file.

    `every` are the rules without a configuration. None: the settings name no file. Raises SettingsError.
    """
    config = _scheduler_config(settings)
    if config is None:
        return None
    try:
        return SchedulerProfiles(config, settings, every)
    except UnreadableError as error:
        raise SettingsError(f"{variable_of('scheduler_config')}: {error}") from None


def check_explained(settings: Settings) -> None:
    """Raise SettingsError if the settings for explanations are invalid. Needs no mirror."""
    scheduler_profiles(settings, explained_profile(settings, create_profile(settings)))


def for_simulations(settings: Settings) -> Settings:
    """Return the settings by which simulations place pods: every rule of kube-scheduler applies."""
    return settings.model_copy(update={"profile": "full"})


def simulated_kinds(settings: Settings) -> list[Kind]:
    """Return the kinds of objects that simulations read. Raises SettingsError."""
    judged = full_profile() if settings.scheduler_config is not None else create_profile(settings)
    return [kind for kind in judged.kinds if kind in RESOURCES]


def simulated_schedulers(
    settings: Settings, mirror: ClusterMirror, max_bytes: int = DEFAULT_OPTIONS.max_bytes
) -> Schedulers:
    """Return the schedulers that simulations know: those of the scheduler's configuration, else kube-scheduler's own.

    Pods that Kindred does not judge are judged by kube-scheduler's plugins alone. All rules have caches of their own,
    which follow the changes of the mirror. Raises SettingsError.
    """
    profile = create_profile(settings)
    rules = scheduler_profiles(settings, explained_profile(settings, profile))
    most = max_bytes // (1 if rules is None else 2 * len(rules.names))

    def scheduler(judged: Profile, *, preempts: bool) -> Scheduler:
        cache = EquivalenceCache(mirror, judged.plugins, CacheOptions(mode="spec", max_bytes=most))
        return Scheduler(judged, cache.evaluation, preempts)

    if rules is None:
        return {DEFAULT_SCHEDULER: scheduler(profile, preempts=True)}
    found: dict[str, Scheduler] = {}
    for name in rules.names:
        explained = [rules.of_scheduler(name, served=served) for served in (True, False)]
        served, other = (scheduler(each.profile, preempts=each.preempts) for each in explained)
        found[name] = served._replace(of=partial(_of_pod, rules, served, other))
    return found


def _of_pod(rules: SchedulerProfiles, served: Scheduler, other: Scheduler, pod: Pod) -> Scheduler:
    return served if rules.serves(pod) else other


def _watched(kinds: Sequence[Kind]) -> tuple[Kind, ...]:
    """Return the kinds without node usage, which cannot be watched. `app.feeds` reads it at an interval."""
    return tuple(kind for kind in kinds if kind is not NodeMetrics)


def judged_kinds(settings: Settings, profile: Profile) -> tuple[Kind, ...]:
    """Return the kinds of objects that explanations need, without reading the scheduler's configuration."""
    judged = _watched(explained_profile(settings, profile).profile.kinds)
    if settings.scheduler_config is None:
        return judged
    return tuple(dict.fromkeys((*judged, *full_profile().kinds)))  # `judged` has arguments, which may need more kinds


def create_cache(
    settings: Settings, mirror: ClusterMirror, profile: Profile, limits: Limits = DEFAULTS
) -> EquivalenceCache | None:
    """Return the equivalence cache over a mirror. None if it is off."""
    if not settings.equivalence_cache:
        return None
    options = CacheOptions(
        mode=settings.equivalence_mode,
        max_bytes=limits.cache_bytes or cache_bytes(memory_limit().bytes),
        shadow_share=limits.shadow_share,
    )
    return EquivalenceCache(mirror, profile.plugins, options, MismatchLog(), time.monotonic)


def apply_partition(settings: Settings, mirror: ClusterMirror) -> None:
    """Set the partition of a mirror by the rule of the settings. Without one every node is in. Raises SettingsError."""
    if settings.partition:
        try:
            set_partition(mirror, settings.partition)
        except DecodeError as error:
            raise SettingsError(f"KINDRED_PARTITION={settings.partition!r}: {error}") from None


def create_extender(settings: Settings, mirror: ClusterMirror) -> Extender:
    """Return the verbs over a mirror, without a cache. For a few requests."""
    return Extender(served_profile(settings), mirror, None, settings.max_score)


def derived_states(settings: Settings, profile: Profile) -> list[Callable[[ClusterMirror], Listener]]:
    """Return what creates the states that the mirror keeps for the plugins of the settings. Raises SettingsError."""
    states = states_of(profile)
    if settings.admin or _ranked(settings):
        states += states_of(explained_profile(settings, profile).profile)
    return states


def create_engine(  # noqa: PLR0913  # the parts of an engine
    settings: Settings,
    mirror: ClusterMirror,
    profile: Profile,
    cluster: Cluster,
    *,
    metrics: Metrics,
    limits: Limits,
) -> Engine:
    """Return the engine for schedulers over a prepared mirror. Raises SettingsError."""
    cache = create_cache(settings, mirror, profile, limits)
    if cache is not None:
        metrics.register(partial(cache_metrics, cache))
    pods = PodApi(cluster.client, time.monotonic) if cluster.client is not None else None
    evaluations = Evaluations(profile.plugins, mirror, cache)
    decider = create_decider(settings, mirror, profile, evaluations, state=cluster.state)
    # Without a cluster no pod is assumed, so no place is reserved.
    gangs = None if pods is None or decider is None else create_gangs(profile, evaluations, decider)
    preemption = _preemption(settings, mirror, profile, cluster, metrics, gangs=gangs)
    effects = Effects(
        mirror,
        time.monotonic,
        PodLookup(mirror, pods, time.monotonic),
        rejected_nodes=preemption.rejected_nodes,
        nominations=preemption.nominations,
        gangs=gangs,
        waiting_schedulers=frozenset(in_tree_schedulers(settings)),
    )
    background = preemption.background
    if cluster.takeover is not None:
        cluster.takeover.before_first_decision(effects.take_over)
        releases = partial(effects.keep_releasing, cluster.takeover.catch_up)
        background = (*background, partial(effects.keep, cluster.state.rejection), releases)
    if decider is not None:
        metrics.register(partial(decision_metrics, effects.decisions))
    extender = Extender(
        profile,
        mirror,
        cache,
        settings.max_score,
        percentage_of_nodes_to_score=settings.percentage_of_nodes_to_score,
        bypass=create_bypass(settings),
        decider=decider,
    )
    apply_partition(settings, mirror)
    return Engine(mirror, profile, cache, extender, effects, background)
