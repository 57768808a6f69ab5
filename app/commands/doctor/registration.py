"""The input of checks of a registration: the scheduler's configuration, Kindred in it, and Kindred's settings."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from app.commands.doctor.findings import Finding, Problem, Severity
from app.scheduler_configuration.scheduler_config import Extender, SchedulerConfig
from app.scheduler_configuration.schema import Profile
from app.settings.settings import Settings
from app.verbs.scopes import DecideScope, decide_scopes
from app.watch.release import allowed_rules
from core.profile import COMPOSITES
from core.profile import Profile as Plugins
from core.releases.release import nearest


class Registration(NamedTuple):
    """A Kindred that is registered with a kube-scheduler. `assumed`: its settings were not given, they are defaults."""

    config: SchedulerConfig
    extender: Extender
    settings: Settings
    plugins: Plugins
    assumed: bool

    @property
    def remark(self) -> str:
        """The remark after a value of the settings."""
        return " (the default)" if self.assumed else ""

    @property
    def filters(self) -> frozenset[str]:
        """Names of the plugins that Kindred filters by. A plugin that consists of others stands for them."""
        names = {plugin.name for plugin in self.plugins.filters}
        return frozenset(names.union(*(COMPOSITES[name] for name in names & COMPOSITES.keys())))

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


Found: TypeAlias = Iterable[Problem]


class Check(NamedTuple):
    """A check of a registration.

    `of_settings`: it compares the registration with Kindred's settings. If they are assumed, its finding is no error
    yet. `needs_settings`: it is not made with assumed settings.
    """

    id: str
    reference: str
    look: Callable[[Registration], Found]
    of_settings: bool = False
    needs_settings: bool = False

    def findings(self, registration: Registration) -> list[Finding]:
        """Run the check."""
        problems = self.look(registration)
        if self.of_settings and registration.assumed:
            problems = (
                each._replace(severity=Severity.WARNING) if each.severity is Severity.ERROR else each
                for each in problems
            )
        return [Finding(self.id, *problem, self.reference) for problem in problems]
