"""A question is asked in steps, so that it shows how far it is, and ends at once at Ctrl-C."""

import sys
from typing import TypeVar

import click

from core.simulation.placing import Steps

T = TypeVar("T")
_UPDATE: int = 200  # steps


def result_of(steps: Steps[T], label: str, length: int) -> T:
    """Take all steps, about `length`, and return their result. An interrupt undoes what they suppose."""
    hidden = not sys.stderr.isatty()
    with click.progressbar(length=length, label=label, file=sys.stderr, hidden=hidden, update_min_steps=_UPDATE) as bar:
        try:
            while True:
                try:
                    next(steps)
                except StopIteration as end:
                    bar.update(max(0, length - bar.pos))
                    result: T = end.value
                    return result
                bar.update(1)
        finally:
            steps.close()
