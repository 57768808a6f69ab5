"""The pods for which Kindred decides, and the nodes among which it chooses, by `spec.schedulerName`."""

from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

from app.scheduler_configuration.scheduler_config import DEFAULT_SCHEDULER, SchedulerConfig
from app.scheduler_configuration.schema import Point
from app.settings.settings import Settings
from core.plugins import DEVICES
from core.plugins.in_tree import DeviceSchedulers


class DecideScope(Enum):
    """The nodes among which Kindred chooses. Also the values of the setting."""

    LISTED_NODES = "listed-nodes"
    """The nodes of the request."""
    ANY_NODE = "any-node"
    """All nodes of the mirror, whichever the request names. Right only for a scheduler profile without filters."""


class DecideScopes(NamedTuple):
    """spec.schedulerName -> scope."""

    default: DecideScope | None
    """The scope of schedulers without one of their own. None: Kindred does not decide for their pods."""
    by_scheduler: Mapping[str, DecideScope] = MappingProxyType({})

    def of(self, scheduler: str) -> DecideScope | None:
        """Return the scope of a scheduler's pods. None: `filter` returns all nodes that fit."""
        return self.by_scheduler.get(scheduler, self.default)

    @property
    def all(self) -> frozenset[DecideScope]:
        """All scopes in use."""
        found = {*self.by_scheduler.values(), self.default}
        return frozenset(scope for scope in found if scope is not None)


def in_tree_schedulers(settings: Settings) -> tuple[str, ...]:
    """Return the schedulers for claims and for groups. Their profiles keep in-tree plugins, which may wait to bind."""
    return tuple(filter(None, (settings.decide_claims_scheduler, settings.decide_groups_scheduler)))


def decide_scopes(settings: Settings) -> DecideScopes | None:
    """Return the scopes that the settings define. None if Kindred does not decide.

    The schedulers for claims and for groups keep in-tree filters, which rejected the nodes that are not listed.
    """
    if settings.decide == "off":
        return None
    scope = DecideScope(settings.decide)
    listed = dict.fromkeys(in_tree_schedulers(settings), DecideScope.LISTED_NODES)
    if not settings.decide_schedulers:
        return DecideScopes(scope, listed)
    return DecideScopes(None, {**dict.fromkeys(settings.decide_schedulers, scope), **listed})


# The schedulers whose pods get devices, by the settings and the scheduler's configuration.
#
# Kubernetes allocates devices in the plugin DynamicResources of kube-scheduler. NodeResourcesFit leaves an extended
# resource that a DeviceClass provides to that plugin, and rejects no node for it. Where the plugin is off, no program
# rejects such a node. The kubelet then runs the pod without its device, or rejects it (k8s.io/kubernetes
# pkg/kubelet/lifecycle/predicate.go).

ALLOCATING: Final[tuple[Point, ...]] = ("preFilter", "filter", "reserve", "preBind")
"""Where the plugin allocates a device."""


def device_schedulers(settings: Settings, config: SchedulerConfig | None = None) -> DeviceSchedulers:
    """Return the schedulers whose pods get devices.

    A scheduler for which Kindred decides has the plugin only if it is the one for claims or for scheduling groups. A
    profile of `config` that disables the plugin has none.
    """
    off = {
        profile.name
        for profile in (config.profiles if config is not None else ())
        if not all(profile.runs(DEVICES.name, point) for point in ALLOCATING)
    }
    scopes = decide_scopes(settings)
    if scopes is None:
        return DeviceSchedulers(_names(off))
    keep = [each for each in in_tree_schedulers(settings) if each not in off]
    advised = keep[0] if keep else ""
    if scopes.default is not None:
        return DeviceSchedulers(frozenset(keep), others=False, advised=advised)
    return DeviceSchedulers(_names((scopes.by_scheduler.keys() | off) - frozenset(keep)), advised=advised)


def _names(schedulers: Iterable[str]) -> frozenset[str]:
    """Return the names as pods have them. The API server sets the default one, but a manifest may have none."""
    names = frozenset(schedulers)
    return names | {""} if DEFAULT_SCHEDULER in names else names
