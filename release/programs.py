"""The programs that a release is made with, and what they say when they fail."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from release.checkout import ReleaseError

_LAST_LINES: Final = 20


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Return what a command prints. Raises ReleaseError with the end of what it said."""
    try:
        done = subprocess.run(  # noqa: S603  # our own arguments
            command,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise ReleaseError(f"{command[0]}: {error.strerror}") from None
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-_LAST_LINES:])
        raise ReleaseError(f"{' '.join(command)}: exit status {done.returncode}\n{said}")
    return done.stdout


def succeeds(command: Sequence[str]) -> bool:
    """Return whether a command ends with exit status 0."""
    return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603  # our own arguments
