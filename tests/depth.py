"""The depth of random tests: the number of examples, event streams and requests of each.

`make test` uses the default depth. `make test-all` uses the full depth, too.
`KINDRED_TEST_DEPTH` is a multiple of the full depth: 1 is the full depth, 20 is 20 times as much.
"""

import os
from typing import Final

import pytest
from hypothesis import is_hypothesis_test, settings


def _multiple() -> float | None:
    given = os.environ.get("KINDRED_TEST_DEPTH")
    if not given:
        return None
    try:
        return float(given)
    except ValueError:
        raise ValueError(
            f"KINDRED_TEST_DEPTH is a multiple of the full depth, such as 1 or 20, not {given!r}"
        ) from None


_MULTIPLE: Final = _multiple()


def tries(*, default: int, full: int) -> int:
    """Return the number of tries: `default` in an ordinary run, a multiple of `full` if a depth is set."""
    return default if _MULTIPLE is None else max(1, round(_MULTIPLE * full))


def has_depth(item: pytest.Item) -> bool:
    """Return whether a test tries more at the full depth: by hypothesis, or where its module asks for `tries`."""
    module, function = getattr(item, "module", None), getattr(item, "function", None)
    return is_hypothesis_test(function) or getattr(module, "tries", None) is tries


def use_depth() -> None:
    """Set the depth of hypothesis tests without settings of their own."""
    settings.register_profile(
        "depth",
        deadline=None,  # other processes share the CPUs, so the duration of one example means nothing
        max_examples=tries(default=60, full=100),
        stateful_step_count=50 if (_MULTIPLE or 0) > 1 else 20,
    )
    settings.load_profile("depth")
