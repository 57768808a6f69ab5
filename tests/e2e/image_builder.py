"""The container image, built by buildah or podman without a package index, and its programs, run without an engine.

Its base is one that is there: that of the Dockerfile, or a Debian with the same Python that debootstrap makes. The
wheels are downloaded before, with pip as it is configured here, and compared with the hashes of the lock in the build.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.e2e.binaries import cache_folder

# What a lock pins, as wheels in the cache of the end-to-end tests, so that an install needs no package index.
#
# pip downloads them as it is configured here.


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


ROOT: Final = Path(__file__).parents[2]
NAME: Final = "localhost/kindred-e2e"
_BASE: Final = "docker.io/library/python:3.11-slim"
_DEBIAN: Final = "localhost/kindred-e2e-base:bookworm"
_PYTHON: Final = "3.11"
_OFFLINE: Final = "[global]\nno-index = true\nfind-links = /wheels\n"
MOUNTED: Final = ("etc/pip.conf", "wheels")
"""What a build leaves behind, empty, of what was mounted for it."""
# A mount namespace of its own, where the root is read-only; and one of processes, where the program is process 1.
_SANDBOX: Final = """
mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && mount --bind /dev "$0/dev" && mount -t proc proc "$0/proc" &&
exec chroot --userspec="$USERSPEC" "$0" /usr/bin/env -i "$@"
"""


class NoImageError(Exception):
    """No image can be built here; the message is why."""


class Image(NamedTuple):
    """A built image."""

    files: Path
    """Its root, mounted."""
    config: Mapping[str, Any]
    base: str

    @property
    def environment(self) -> Sequence[str]:
        """Return NAME=VALUE."""
        return [*self.config["Env"]]

    def command(self, *arguments: str, environment: Sequence[str] = ()) -> list[str]:
        """Return what runs a program as the image's user, as process 1, and with a root that nobody can write to."""
        unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", _SANDBOX]
        return [*unshare, str(self.files), *self.environment, *environment, *arguments]

    def next_to(self, process: int, *arguments: str, environment: Sequence[str] = ()) -> list[str]:
        """Return what runs a program as an engine's `exec` does, in the container of that process 1."""
        user, _, group = self.config["User"].partition(":")
        inside = ["nsenter", "-t", str(process), "-m", "-p", "-r", "-w", "-S", user, "-G", group, "/usr/bin/env", "-i"]
        return [*inside, *self.environment, *environment, *arguments]

    @property
    def sandbox(self) -> Mapping[str, str]:
        """Return the environment for `command`."""
        return {"PATH": os.environ["PATH"], "USERSPEC": self.config["User"]}


@contextmanager
def built_image() -> Iterator[Image]:
    """Build the image; it is gone afterwards. Raises NoImageError."""
    tool = _tool()
    base = _base(tool)
    with tempfile.TemporaryDirectory() as folder:
        pip_config = Path(folder) / "pip.conf"
        pip_config.write_text(_OFFLINE)
        mounts = (
            "--volume",
            f"{pip_config}:/etc/pip.conf:ro",
            "--volume",
            f"{locked_wheels(ROOT / 'requirements.lock', _PYTHON)}:/wheels:ro",
        )
        arguments = ("--build-arg", f"BASE={base}", "--build-arg", "REVISION=e2e")
        _run(tool, "build", "--format", "docker", *mounts, *arguments, "-t", NAME, str(ROOT))
    try:
        with _mounted(tool) as files:
            yield Image(files, _config(tool), base)
    finally:
        _run(tool, "rmi", "--force", NAME)


def _tool() -> str:
    if os.geteuid():
        raise NoImageError("needs root")
    for tool in ("buildah", "podman"):
        if shutil.which(tool):
            return tool
    raise NoImageError("needs buildah or podman")


def _base(tool: str) -> str:
    """Return the first base that there is, or can be had. Raises NoImageError."""
    for base in (_BASE, _DEBIAN):
        if _run(tool, "images", "--quiet", "--filter", f"reference={base}"):
            return base
    if shutil.which("debootstrap"):
        return _debian(tool)
    try:
        _run(tool, "pull", "--quiet", _BASE)
    except subprocess.CalledProcessError:
        raise NoImageError(f"needs {_BASE}, a registry that has it, or debootstrap") from None
    return _BASE


def _debian(tool: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        packages = f"--include=python{_PYTHON}-minimal,python3,python3-venv,ca-certificates"
        root = Path(folder) / "root"
        _run("debootstrap", "--variant=minbase", packages, "bookworm", str(root))
        _run("tar", "-C", str(root), "--exclude=./var/cache/apt/archives/*", "-cf", f"{folder}/root.tar", ".")
        (Path(folder) / "Dockerfile").write_text("FROM scratch\nADD root.tar /\n")
        (Path(folder) / ".dockerignore").write_text("root\n")
        _run(tool, "build", "--format", "docker", "-t", _DEBIAN, folder)
    return _DEBIAN


@contextmanager
def _mounted(tool: str) -> Iterator[Path]:
    if tool == "podman":
        yield Path(_run(tool, "image", "mount", NAME))
        _run(tool, "image", "unmount", NAME)
        return
    container = _run(tool, "from", "--pull-never", NAME)
    try:
        yield Path(_run(tool, "mount", container))
    finally:
        _run(tool, "rm", container)


def _config(tool: str) -> Mapping[str, Any]:
    if tool == "podman":
        (described,) = json.loads(_run(tool, "image", "inspect", NAME))
        return {**described["Config"], "Healthcheck": described["Healthcheck"]}
    config: Mapping[str, Any] = json.loads(_run(tool, "inspect", "--type", "image", NAME))["Docker"]["config"]
    return config


def _run(*command: str) -> str:
    """Return the output of a program; what it says of an error is shown where it fails."""
    # chroot: works inside of a container, and with any version of cgroups. It has the network of this machine.
    environment = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603  # our own arguments
    if done.returncode:
        sys.stderr.write(f"{' '.join(command)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}\n")
        done.check_returncode()
    return done.stdout.strip()
