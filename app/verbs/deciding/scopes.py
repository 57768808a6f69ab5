"""The pods for which Kindred decides, and the nodes among which it chooses, by `spec.schedulerName`."""

from collections.abc import Mapping
from enum import Enum

from app.settings import Settings
from core.objects.pod import Pod


class DecideScope(Enum):
    """The nodes among which Kindred chooses. Also the values of the setting."""

    LISTED_NODES = "listed-nodes"
    """The nodes of the request."""
    ANY_NODE = "any-node"
    """All nodes of the mirror, whichever the request names. Right only for a scheduler profile without filters."""


class DecideScopes:
    """spec.schedulerName -> scope."""

    def __init__(self, default: DecideScope | None, by_scheduler: Mapping[str, DecideScope] | None = None) -> None:
        """Take scopes by scheduler, and `default` for others. None: Kindred does not decide for their pods."""
        self._default = default
        self._by_scheduler = by_scheduler or {}

    def of(self, pod: Pod) -> DecideScope | None:
        """Return the scope of a pod. None: `filter` returns all nodes that fit."""
        return self.of_scheduler(pod.scheduler_name)

    def of_scheduler(self, name: str) -> DecideScope | None:
        """Return the scope of a scheduler's pods. None: `filter` returns all nodes that fit."""
        return self._by_scheduler.get(name, self._default)

    @property
    def schedulers(self) -> frozenset[str]:
        """The schedulers that have a scope of their own."""
        return frozenset(self._by_scheduler)

    @property
    def decides_by_default(self) -> bool:
        """Whether Kindred decides for schedulers without a scope of their own."""
        return self._default is not None

    @property
    def all(self) -> frozenset[DecideScope]:
        """All scopes in use."""
        found = {*self._by_scheduler.values(), self._default}
        return frozenset(scope for scope in found if scope is not None)


def decide_scopes(settings: Settings) -> DecideScopes | None:
    """Return the scopes that the settings define. None if Kindred does not decide.

    The schedulers for claims and for groups keep in-tree filters, which rejected the nodes that are not listed.
    """
    if settings.decide == "off":
        return None
    scope = DecideScope(settings.decide)
    keeping = filter(None, (settings.decide_claims_scheduler, settings.decide_groups_scheduler))
    listed = dict.fromkeys(keeping, DecideScope.LISTED_NODES)
    if not settings.decide_schedulers:
        return DecideScopes(scope, listed)
    return DecideScopes(None, {**dict.fromkeys(settings.decide_schedulers, scope), **listed})
