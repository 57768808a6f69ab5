"""A question is asked in steps, so that it shows how far it is, and ends at once at Ctrl-C."""

import sys
from functools import partial
from typing import TypeVar

import click

from app.simulation.questions import Running
from core.simulation.placing import finished

T = TypeVar("T")
_UPDATE: int = 200  # steps


def result_of(running: Running[T], label: str) -> T:
    """Take all steps of a question, and return their result. An interrupt undoes what they suppose."""
    steps, length = running
    hidden = not sys.stderr.isatty()
    with click.progressbar(length=length, label=label, file=sys.stderr, hidden=hidden, update_min_steps=_UPDATE) as bar:
        try:
            result = finished(steps, partial(bar.update, 1))
            bar.update(max(0, length - bar.pos))
            return result
        finally:
            steps.close()
