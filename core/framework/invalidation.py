"""Rules that invalidate cached results of a plugin. The plugin declares them, and the cache applies and prints them.

Source: the table of the equivalence class design (operation, invalid predicates, scope), and its known errors.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, Final, TypeAlias

import msgspec

from core.events import Kind
from core.objects.node import Node


class Operation(Enum):
    """The operation on an object. An assumed pod counts as added, a forgotten or expired one as deleted."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"

    __hash__ = object.__hash__  # each member is one object, and Enum's own hash is a Python function


class Scope(Enum):
    """Which cells of a plugin become invalid."""

    NODE = "the node"
    """Cells of the node that is the object, that the pod is on, or that the CSINode or NodeMetrics describes."""
    ALL = "all nodes"
    """Cells of every node."""
    COUNTERS = "all nodes of the classes whose counters changed"
    """No cells by the event itself: a plugin's `versions` show for each class whether its inputs have changed."""


Touches: TypeAlias = Callable[[Any, Any], bool]


def always(_before: object, _after: object) -> bool:
    """Return true for every change."""
    return True


def differs(read: Callable[[Any], object], absent: object = None) -> Touches:
    """Return a condition: what `read` returns of the states before and after differs. No state reads `absent`."""

    def touches(before: object, after: object) -> bool:
        return (absent if before is None else read(before)) != (absent if after is None else read(after))

    return touches


class InvalidationRule(msgspec.Struct, frozen=True, kw_only=True):
    """An event that invalidates cells. `when` describes in words the condition that `touches` checks."""

    kind: Kind
    operations: tuple[Operation, ...] = tuple(Operation)
    scope: Scope
    when: str = ""
    because: str
    touches: Touches = always


def node_update(
    *, when: str, because: str, reads: Callable[[Node], object], scope: Scope = Scope.NODE
) -> InvalidationRule:
    """Return a rule for an update of a node that changes what `reads` returns of it."""
    return InvalidationRule(
        kind=Node, operations=(Operation.UPDATE,), scope=scope, when=when, because=because, touches=differs(reads)
    )


NODE_LIFE: Final = (
    InvalidationRule(
        kind=Node,
        operations=(Operation.ADD, Operation.DELETE),
        scope=Scope.NODE,
        because="nothing is known of a new node; and the slot of one that is gone will be another's",
    ),
)
"""These rules apply to every plugin, so plugins do not declare them."""
