"""The decider, for settings in which `filter` returns one node."""

import random
from collections.abc import Callable
from functools import partial

from app.settings.settings import Settings, SettingsError, variable_of
from app.verbs.decide import Decider, InTreeNeeds
from app.verbs.gang_keeping import is_decided_for
from app.verbs.scopes import DecideScope, decide_scopes
from core.equivalence.cache import Evaluations
from core.gangs.gangs import Gangs
from core.gangs.placing import Placer
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import IntpArray
from core.plugins.noderesources.columns import EVERY_SCHEDULER
from core.profile import COMPOSITES, Profile, full_profile


def at_random(_: NodeBatch, best: IntpArray) -> int:
    """Choose one of the best nodes with equal probability."""
    return int(random.choice(best))  # noqa: S311 - to spread, not to hide


def create_decider(  # the parts of a decider
    settings: Settings,
    mirror: ClusterMirror,
    profile: Profile,
    evaluations: Evaluations,
    *,
    refusal: Callable[[], str],
) -> Decider | None:
    """Return the decider that the settings define. None if they define none. Raises SettingsError."""
    scopes = decide_scopes(settings)
    if scopes is None:
        return None
    if DecideScope.ANY_NODE in scopes.all:
        _check_that_all_is_judged(settings, profile)
    _check_groups_scheduler(settings)
    return Decider(
        profile,
        evaluations,
        scopes,
        needs=_needs(settings, mirror, profile),
        choose=at_random,
        refusal=refusal,
        asked_to_preempt=settings.preempt == "verb",
    )


def create_gangs(settings: Settings, mirror: ClusterMirror, profile: Profile, evaluations: Evaluations) -> Gangs | None:
    """Return the groups of pods that are placed together. None if the settings define none. Raises SettingsError."""
    scopes = decide_scopes(settings)
    if scopes is None:
        return None
    placer = Placer(mirror, profile, partial(evaluations.begin, cached=True), at_random)
    return Gangs(mirror, placer, is_decided_for(scopes, _needs(settings, mirror, profile)))


def _needs(settings: Settings, mirror: ClusterMirror, profile: Profile) -> InTreeNeeds:
    fit = profile.resources_filter
    devices = EVERY_SCHEDULER if fit is None else fit.device_schedulers
    groups = settings.decide_groups_scheduler
    return InTreeNeeds(mirror, settings.decide_claims_scheduler, devices, groups_scheduler=groups)


def waiting_schedulers(settings: Settings) -> frozenset[str]:
    """Return the schedulers whose profiles have in-tree plugins that let a binding wait for minutes."""
    return frozenset({settings.decide_claims_scheduler, settings.decide_groups_scheduler} - {""})


def _check_groups_scheduler(settings: Settings) -> None:
    """Reject a scheduler for groups whose profile lacks filters. Raises SettingsError."""
    name, variable = settings.decide_groups_scheduler, variable_of("decide_groups_scheduler")
    if name and name == settings.decide_claims_scheduler:
        raise SettingsError(f"{variable}={name!r}: the profile for claims lacks in-tree filters; name another one")


def _check_that_all_is_judged(settings: Settings, profile: Profile) -> None:
    """Reject `any-node` with a profile that lacks rules of the scheduler. Raises SettingsError."""
    judged = {part for plugin in profile.filters for part in COMPOSITES.get(plugin.name, (plugin.name,))}
    missing = [plugin.name for plugin in full_profile().filters if plugin.name not in judged]
    if missing:
        raise SettingsError(
            f"KINDRED_DECIDE={settings.decide}: needs every filter of the profile full, and "
            f"KINDRED_PROFILE={settings.profile!r} lacks {', '.join(missing)}"
        )
