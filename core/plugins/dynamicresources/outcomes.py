"""What comes of a search for devices on a node, and how much of it there may be."""

from typing import Final, NamedTuple

from core.framework.interface import Code, Status
from core.plugins.dynamicresources.allocator import UndecidedError


class Bound(NamedTuple):
    """How many steps the searches of one request may take (MAX_STEPS). Then all other nodes are undecided."""

    steps: int
    of_a_node: int = 0
    """What a node counts whose outcome is not known."""
    of_a_read: int = 0
    """What it counts more if its pools are not known either."""
    of_a_search: int = 0
    """What the beginning of a search counts."""
    compiled: int = 16 * 1024
    """Characters of selectors that are compiled for one request, up to 0.25 s. The others are with the next one."""


TO_JUDGE: Final = Bound(100_000)
"""About 0.2 s, of an explanation."""
TO_SCORE: Final = Bound(3_000, of_a_node=2, of_a_read=10, of_a_search=20, compiled=4 * 1024)
"""About 6 ms, because a decision waits for it. Outcomes are kept, so the next decision continues with other nodes.

To compile selectors takes up to 0.06 s more, but only once. A longer one counts in no decision before an explanation
has compiled it.
"""


class CompileBudget:
    """How many characters of expressions one request may still compile."""

    __slots__ = ("_left",)

    def __init__(self, characters: int) -> None:
        self._left = characters

    def spend(self, expression: str) -> None:
        """Count an expression that is compiled. Raises UndecidedError if it is too long."""
        if len(expression) > self._left:
            raise UndecidedError("its selectors are too long to be compiled at once")
        self._left -= len(expression)


class Outcome(NamedTuple):
    """What came of the search on a node. `undecided` is the reason if Kindred cannot tell, and then the node passes."""

    status: Status
    score: int = 0
    undecided: str = ""

    @property
    def is_of_one(self) -> bool:
        """Whether it says nothing of other nodes: the text names a device or the claim, or the search had no end."""
        return self.status.code is Code.ERROR or bool(self.undecided)
