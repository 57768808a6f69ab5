"""Changes of the mirror, for listeners with derived state. A change is sent after the mirror has made it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from core.events import Kind
from core.objects.node import Node
from core.objects.pod import Pod
from core.releases.release import Rules


class NodeChange(msgspec.Struct, frozen=True, gc=False):
    """A known node was added (no `before`), removed (no `after`) or changed."""

    slot: int
    before: Node | None
    after: Node | None


class PodChange(msgspec.Struct, frozen=True, gc=False):
    """A pod on a known node, watched or assumed. A pod that moves first leaves one node and then enters the other.

    An update that changes only the pod's version is not reported.
    The pods of a removed node leave before the node is removed. Pods that waited for a new node enter after it is
    added.
    """

    slot: int
    before: Pod | None
    after: Pod | None
    after_pre_filter: bool = False
    """Whether the pod is supposed after the PreFilter of the request has run in kube-scheduler. see Fork."""


class NamespaceChange(msgspec.Struct, frozen=True, gc=False):
    """The labels of a namespace, or None if there is no such Namespace."""

    name: str
    before: Mapping[str, str] | None
    after: Mapping[str, str] | None


class ObjectChange(msgspec.Struct, frozen=True, gc=False):
    """An object of a kind without a rule of its own.

    `slot` is the node's slot for a CSINode or NodeMetrics of a known node, else NO_SLOT.
    """

    kind: Kind
    slot: int
    before: Any
    after: Any


class RulesChange(msgspec.Struct, frozen=True, gc=False):
    """The rules changed. The mirror reports each pod whose counted requests changed before this."""

    before: Rules
    after: Rules


Change: TypeAlias = NodeChange | PodChange | NamespaceChange | ObjectChange | RulesChange
EVERY_CHANGE: Final = (NodeChange, PodChange, NamespaceChange, ObjectChange, RulesChange)


class Listener(Protocol):
    """A listener receives every change of some types, in order. It must not change the mirror."""

    @property
    def hears(self) -> Sequence[type[Change]]:
        """The types of the changes that it receives."""

    def changed(self, change: Any) -> None:  # noqa: ANN401  # one of the types that it hears
        """Handle a change that the mirror has made."""


Listeners: TypeAlias = dict[type[Change], list[Listener]]
"""Listeners by the types of changes that they hear, in the order in which they were added.

Most events are of pods, and most listeners hear of nodes. While it is empty, the mirror describes no changes.
"""


def add_listener(listeners: Listeners, listener: Listener) -> None:
    """Send changes to one more listener, from the next change on."""
    for kind in listener.hears:
        listeners.setdefault(kind, []).append(listener)
