"""Rules that invalidate cached results of a plugin, declared by the plugin itself, to be applied and printed.

Source: the table of the equivalence class design (operation, invalid predicates, scope), and its known errors.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, Final, TypeAlias

import msgspec

from core.events import Kind
from core.objects.node import Node


class Operation(Enum):
    """The operation on an object. For pods: on a node, be it watched or assumed, forgotten or expired."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"

    @classmethod
    def of(cls, before: object | None, after: object | None) -> "Operation":
        """Tell from the states before and after."""
        if before is None:
            return cls.ADD
        return cls.DELETE if after is None else cls.UPDATE


class Scope(Enum):
    """Which cells of a plugin become invalid."""

    NODE = "the node"
    """Of the node that the object is, or that the pod is on, or whose CSINode or NodeMetrics it is."""
    ALL = "all nodes"
    """Of every node."""
    COUNTERS = "all nodes of the classes whose counters changed"
    """Not by the event: a plugin's `versions` show for each class whether its inputs have changed."""


Touches: TypeAlias = Callable[[Any, Any], bool]


def always(_before: object, _after: object) -> bool:
    """Every change touches."""
    return True


class InvalidationRule(msgspec.Struct, frozen=True, kw_only=True):
    """An event that invalidates cells; `when` says in words how `touches` decides from the two states."""

    kind: Kind
    operations: tuple[Operation, ...]
    scope: Scope
    when: str = ""
    because: str
    touches: Touches = always


NODE_LIFE: Final = (
    InvalidationRule(
        kind=Node,
        operations=(Operation.ADD, Operation.DELETE),
        scope=Scope.NODE,
        because="nothing is known of a new node; and the slot of one that is gone will be another's",
    ),
)
"""True of every plugin, so that none has to declare it."""
