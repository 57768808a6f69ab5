"""A change of the mirror, for listeners with state that depends on it: sent once the mirror has it."""

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

import msgspec

from core.events import Kind
from core.objects.node import Node
from core.objects.pod import Pod
from core.releases import Rules


class NodeChange(msgspec.Struct, frozen=True, gc=False):
    """A known node: a new one (no `before`), one that is gone (no `after`), or another state of it."""

    slot: int
    before: Node | None
    after: Node | None


class PodChange(msgspec.Struct, frozen=True, gc=False):
    """A pod on a known node, watched or assumed; one that moves leaves the one node and comes to the other.

    When a node goes, its pods leave it before; when it comes, the pods that waited for it come to it after.
    """

    slot: int
    before: Pod | None
    after: Pod | None
    after_pre_filter: bool = False
    """Whether it is supposed for a request whose PreFilter kube-scheduler would have run already; see Supposition."""


class NamespaceChange(msgspec.Struct, frozen=True, gc=False):
    """The labels of a namespace; None where there is no such Namespace."""

    name: str
    before: Mapping[str, str] | None
    after: Mapping[str, str] | None


class ObjectChange(msgspec.Struct, frozen=True, gc=False):
    """An object of a kind without a rule of its own.

    For a CSINode or NodeMetrics of a known node, `slot` is the node's slot. For all others it is NO_SLOT.
    """

    kind: Kind
    slot: int
    before: Any
    after: Any


class RulesChange(msgspec.Struct, frozen=True, gc=False):
    """Other rules than before. Pods whose requests count otherwise by them have changed before, each by itself."""

    before: Rules
    after: Rules


Change: TypeAlias = NodeChange | PodChange | NamespaceChange | ObjectChange | RulesChange


class Listener(Protocol):
    """A listener gets every change, in order; the mirror must not be changed meanwhile."""

    def changed(self, change: Change) -> None:
        """Take note of a change that the mirror has made."""


class Listeners:
    """All listeners."""

    __slots__ = ("_listeners",)

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def __bool__(self) -> bool:
        """Whether there is any listener; without one, changes need no description."""
        return bool(self._listeners)

    def add(self, listener: Listener) -> None:
        """Tell one more, from the next change on."""
        self._listeners.append(listener)

    def tell(self, change: Change) -> None:
        """Tell all, in the order in which they were added."""
        for listener in self._listeners:
            listener.changed(change)
