"""The commands of docs/install.md, to be run as they are written."""

import re
from pathlib import Path
from typing import Final

INSTALL: Final = (Path(__file__).parents[2] / "docs" / "install.md").read_text("utf-8")
_CONSOLE: Final = re.findall(r"^ *```console\n(.*?)^ *```$", INSTALL, re.MULTILINE | re.DOTALL)


def commands(beginning: str) -> list[str]:
    """Return the commands that begin so, each on one line."""
    lines = "\n".join(_CONSOLE).replace("\\\n", "").splitlines()
    found = [line.strip().removeprefix("$ ") for line in lines]
    return [command for command in found if command.startswith(beginning)]
