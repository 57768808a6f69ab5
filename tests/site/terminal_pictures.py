"""Pictures of commands in a terminal: `python -m tests.site.terminal_pictures` writes them to docs/images."""

import gc
import inspect
import re
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from typing import Final
from unittest.mock import patch

from click.testing import CliRunner
from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, DIMMED_MONOKAI, TerminalTheme
from rich.text import Text

from app.commands.cli import main
from app.commands.text_columns import WIDTH

FOLDER: Final = Path(__file__).parents[2] / "docs" / "images"
COMMANDS: Final[Mapping[str, str]] = MappingProxyType(
    {"pending": "pending --demo", "explain": "explain data/queue-3 --demo"}
)
"""Name of the picture -> the command after `kindred`."""
THEMES: Final[Mapping[str, TerminalTheme]] = MappingProxyType({"light": DEFAULT_TERMINAL_THEME, "dark": DIMMED_MONOKAI})
_NOW: Final = 1_759_718_000.0
"""Seconds since the epoch: minutes after the demo's pending pods were created, so that their ages stay the same."""
_FORMAT: Final[str] = inspect.signature(Console.export_svg).parameters["code_format"].default
_WITHOUT_FONTS: Final = re.sub(r"@font-face {{.*?}}\n", "", _FORMAT, flags=re.DOTALL)
"""Rich's format without its web fonts: a picture loads nothing from another host."""


def picture(name: str, theme: str) -> str:
    """Return the output of a command as SVG, the same for the same output."""
    command = f"kindred {COMMANDS[name]}"
    with patch("time.time", return_value=_NOW), patch.object(gc, "freeze"):
        result = CliRunner().invoke(main, command.split()[1:], color=True, catch_exceptions=False)
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text(f"$ {command}", style="bold"))
    console.print(Text.from_ansi(result.stdout))
    return console.export_svg(
        title=command, theme=THEMES[theme], code_format=_WITHOUT_FONTS, unique_id=f"{name}-{theme}"
    )


def path_of(name: str, theme: str) -> Path:
    """Return the file of a picture."""
    return FOLDER / f"terminal-{name}-{theme}.svg"


if __name__ == "__main__":
    for each in COMMANDS:
        for shade in THEMES:
            path_of(each, shade).write_text(picture(each, shade), "utf-8")
