"""What a release is made from: a commit with nothing changed beside it, and a version that all files agree on."""

import io
import re
import subprocess
import tarfile
from pathlib import Path
from typing import Final, NamedTuple

_MOST_NAMED: Final = 10
_HEADING: Final = re.compile(r"^## (\d+\.\d+\.\d+\S*) - (\d{4}-\d{2}-\d{2})$", re.MULTILINE)
_VERSION: Final = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)


class ReleaseError(Exception):
    """No release can be made; the message says what to change."""


class Checkout(NamedTuple):
    """A commit, and the version that it releases."""

    root: Path
    commit: str
    epoch: int
    """Seconds since 1970 of the commit: the time of every file that is made."""
    version: str

    def export(self, folder: Path) -> None:
        """Write the files of the commit, and nothing that git ignores, into a folder."""
        archive = git(self.root, "archive", "--format=tar", self.commit)
        with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
            opened.extractall(folder, filter="data")


def checkout(root: Path) -> Checkout:
    """Return what is checked out in a folder. Raises ReleaseError, which names the files that are in the way."""
    # -z: names as they are, also with spaces in them.
    changed = [line[3:] for line in git(root, "status", "--porcelain", "-z").decode().split("\0") if line]
    if changed:
        named = ", ".join(changed[:_MOST_NAMED])
        further = len(changed) - _MOST_NAMED
        more = f" and {further} more" if further > 0 else ""
        raise ReleaseError(f"the working tree differs from its commit: {named}{more}; commit them or remove them")
    commit, epoch = git(root, "log", "-1", "--format=%H %ct").decode().split()
    return Checkout(root, commit, int(epoch), _version(root))


def _version(root: Path) -> str:
    found = _VERSION.search((root / "app" / "__init__.py").read_text("utf-8"))
    version = found[1] if found else ""
    newest = newest_release((root / "CHANGELOG.md").read_text("utf-8"))
    if version != newest:
        raise ReleaseError(
            f"app/__init__.py has version {version!r}, and the newest release in CHANGELOG.md is {newest!r}"
        )
    return version


def newest_release(changelog: str) -> str:
    """Return the version of the first heading that has a date. Empty if there is none."""
    found = _HEADING.search(changelog)
    return found[1] if found else ""


def git(root: Path, *arguments: str) -> bytes:
    """Return what git prints. Raises ReleaseError."""
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False)  # noqa: S603, S607  # our own arguments
    if done.returncode != 0:
        raise ReleaseError(f"git {' '.join(arguments)}: {done.stderr.decode().strip()}")
    return done.stdout
