"""Numbers, names and examples in sentences."""

from collections.abc import Sequence


def counted(number: int, name: str, plural: str = "") -> str:
    """Return `1 node`, `2 nodes`."""
    return f"{number:,} {name if number == 1 else plural or f'{name}s'}"


def which_have(number: int, has: str) -> str:
    """Return what a number of things has, behind it. Empty for nothing."""
    return f", which {'has' if number == 1 else 'have'} {has}" if has else ""


def such_as(examples: Sequence[str], number: int) -> str:
    """Return examples of a number of nodes: `such as a, b`, or the names alone if these are all."""
    return f"{'such as ' if len(examples) < number else ''}{', '.join(examples)}"


def listed(names: Sequence[str], most: int | None) -> str:
    """Return names with commas, and how many more there are than `most`. None: all names."""
    left = 0 if most is None else len(names) - most
    return f"{', '.join(names[:most])}{f' and {left:,} more' if left > 0 else ''}"
