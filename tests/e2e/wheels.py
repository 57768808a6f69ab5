"""What a lock pins, as wheels in the cache of the end-to-end tests, so that an install needs no package index.

pip downloads them as it is configured here.
"""

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.e2e.binaries import cache_folder


def locked_wheels(lock: Path, python: str) -> Path:
    """Return a folder with the wheels of a lock, for a Python such as `3.11`. Raises CalledProcessError."""
    folder = cache_folder() / f"wheels-{python}-{hashlib.sha256(lock.read_bytes()).hexdigest()[:16]}"
    if not folder.exists():
        cache_folder().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache_folder()) as made:
            kind = ("--only-binary", ":all:", "--python-version", python, "--require-hashes")
            command = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                *kind,
                "-r",
                str(lock),
                "-d",
                f"{made}/wheels",
            ]
            subprocess.run(command, check=True)  # noqa: S603  # our own arguments
            (Path(made) / "wheels").rename(folder)  # when it is complete
    return folder
