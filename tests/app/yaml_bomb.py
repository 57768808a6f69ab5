"""A short YAML text that stands for gigabytes."""

from typing import Final

_LAYERS: Final = [f"&a{at} [{', '.join([f'*a{at - 1}'] * 9)}]" for at in range(1, 9)]
BOMB: Final = f"[&a0 [x, x, x, x, x, x, x, x, x], {', '.join(_LAYERS)}]"
"""A list, in each of whose items are nine of the one before it."""
REJECTION: Final = "more than 4194304 bytes by aliases"
