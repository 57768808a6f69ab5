"""The input of checks of a registration: the scheduler's configuration, Kindred in it, and Kindred's settings."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from app.commands.doctor.findings import Finding, Problem
from app.feeds.release import allowed_rules
from app.scheduler_configuration.scheduler_config import Extender, SchedulerConfig
from app.scheduler_configuration.schema import CLAIMS, Point, Profile
from app.settings.settings import Settings
from app.verbs.scopes import DecideScope, decide_scopes
from app.wiring.engine import create_profile
from core.plugins import DEFAULTS, PLUGINS
from core.plugins.in_tree import DefaultPreemption
from core.profile import PROFILES
from core.profile import Profile as Plugins
from core.releases.release import nearest

_ALL: Final = 100  # percent
_SIDES: Final[tuple[Point, ...]] = ("filter", "score")


class Registration(NamedTuple):
    """A Kindred that is registered with a kube-scheduler. `assumed`: its settings were not given, or are of another."""

    config: SchedulerConfig
    extender: Extender
    settings: Settings
    plugins: Plugins
    assumed: bool

    @classmethod
    def inferred(cls, config: SchedulerConfig, extender: Extender) -> "Registration":
        """Return the registration with the settings that the configuration implies."""
        settings = implied_settings(config, extender)
        return cls(config, extender, settings, create_profile(settings), assumed=True)

    @property
    def filters(self) -> frozenset[str]:
        """Names of the plugins that Kindred filters by. A plugin that consists of others stands for them."""
        return frozenset(plugin.name for plugin in self.plugins.filter_parts)

    @property
    def scores(self) -> dict[str, int]:
        """Plugin -> weight, for the plugins that Kindred scores by in the release of the settings."""
        rules, _ = allowed_rules(nearest(self.settings.kubernetes).release, self.settings.feature_gates)
        return {plugin.name: weight for plugin, weight in self.plugins.under(rules).scores}

    def scope_of(self, profile: Profile) -> DecideScope | None:
        """Return the scope of Kindred's decisions for the pods of a profile.

        None: `filter` returns all nodes that fit, and kube-scheduler takes one of them.
        """
        scopes = decide_scopes(self.settings)
        return scopes.of(profile.name) if scopes is not None else None

    @property
    def decided(self) -> list[Profile]:
        """The profiles for whose pods Kindred decides."""
        return [profile for profile in self.config.profiles if self.scope_of(profile) is not None]

    @property
    def undecided(self) -> list[Profile]:
        """The other profiles: all of them without `decide`."""
        return [profile for profile in self.config.profiles if self.scope_of(profile) is None]

    def filters_off(self, profiles: Sequence[Profile] | None = None) -> list[str]:
        """Return the filters of Kindred that kube-scheduler has disabled in any of these profiles; all by default."""
        looked_at = self.config.profiles if profiles is None else profiles
        return [name for name in sorted(self.filters) if any(each.switched_off(name, "filter") for each in looked_at)]


def implied_settings(config: SchedulerConfig, extender: Extender) -> Settings:
    """Return the settings that fit a configuration: the effects of its verbs, and the plugins that it has disabled.

    For decide that is a `filterVerb` alone, and a profile without default plugins or without scores: kube-scheduler
    scores nothing if one node is left (k8s.io/kubernetes pkg/scheduler/schedule_one.go, schedulePod).
    """
    unscored = [
        profile for profile in config.profiles if "*" in profile.disabled("multiPoint") or not profile.scoring()
    ]
    if set(extender.verbs) == {"filterVerb"} and unscored:
        return _implied_by_decide(config, unscored)
    disabled = [
        f"{point}:{name}"
        for point in _SIDES
        for name in PLUGINS
        if not (point == "filter" and name in CLAIMS)  # which no Kindred replaces
        and any(profile.switched_off(name, point) for profile in config.profiles)
    ]
    if extender.prioritize_verb and not any(name.startswith("score:") for name in disabled):
        disabled.append(f"score:{PROFILES['affinity'].partition('=')[0]}")
    return Settings(
        profile=",".join(disabled) or "affinity",
        bind=bool(extender.bind_verb),
        preempt="verb" if extender.preempt_verb else "off",
    )


def _implied_by_decide(config: SchedulerConfig, unscored: Sequence[Profile]) -> Settings:
    for_claims = [each.name for each in unscored if {*CLAIMS} <= each.running("filter")]
    for_groups = [
        profile.name
        for profile in config.profiles
        if not any(profile.switched_off(name, point) for point in _SIDES for name in DEFAULTS)
    ]
    alone = [profile for profile in unscored if profile.name not in for_claims]
    sampled = any(config.percentage_of(profile)[1] < _ALL for profile in alone)
    nominates = any(profile.runs(DefaultPreemption.name, "postFilter") for profile in alone)
    return Settings(
        profile="full",
        decide="any-node" if sampled else "listed-nodes",
        decide_schedulers=tuple(profile.name for profile in alone or unscored),
        decide_claims_scheduler="".join(for_claims[:1]),
        decide_groups_scheduler="".join(for_groups[:1]),
        preempt="evict" if nominates else "off",
    )


Found: TypeAlias = Iterable[Problem]


class Check(NamedTuple):
    """A check of a registration. `needs_settings`: it is not made with assumed settings."""

    id: str
    reference: str
    look: Callable[[Registration], Found]
    needs_settings: bool = False

    def findings(self, registration: Registration) -> list[Finding]:
        """Run the check."""
        return [Finding(self.id, *problem, self.reference) for problem in self.look(registration)]
