"""`make pythons`: the type checks and the tests under each supported Python that this machine has.

The classifiers in pyproject.toml are the supported releases. Interpreters are searched on PATH, in pyenv, and by uv.
Nothing is downloaded. Each interpreter gets its own virtual environment (.venv-3.12) from the lock.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click

LOCK: Final = Path("requirements-dev.lock")
PROJECT: Final = Path("pyproject.toml")
_CLASSIFIER: Final = re.compile(r"Programming Language :: Python :: (3\.\d+)")
_ASK: Final = "import sys; print('%d.%d' % sys.version_info[:2])"
_PIP: Final = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")


def supported() -> list[str]:
    """Return the releases that the classifiers name."""
    classifiers = tomllib.loads(PROJECT.read_text("utf-8"))["project"]["classifiers"]
    return [found[1] for found in map(_CLASSIFIER.fullmatch, classifiers) if found]


def candidates(version: str) -> Iterator[Path]:
    """Yield the paths where an interpreter of that release may be, the best one first."""
    on_path = shutil.which(f"python{version}")
    if on_path is not None:
        yield Path(on_path)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(pyenv.glob(f"versions/{version}.*/bin/python"), key=_patch_release, reverse=True)
    uv = shutil.which("uv", path=Path(sys.executable).parent)
    if uv is not None:
        yield from map(Path, _output(uv, "python", "find", "--system", "--no-project", "--offline", version))


def _patch_release(python: Path) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", python.parents[1].name)))


def find(version: str) -> Path | None:
    """Return a working interpreter of that release. None if there is none."""
    # The file alone is not enough: pyenv puts a python3.12 on PATH that only prints how to choose another release.
    return next((each for each in candidates(version) if _output(str(each), "-c", _ASK) == [version]), None)


def _output(*command: str) -> list[str]:
    """Return the lines that a command printed. Empty if it failed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)  # noqa: S603  # our own
    except (OSError, subprocess.SubprocessError):
        return []
    return done.stdout.splitlines()


def environment(version: str, interpreter: Path) -> Path:
    """Make the virtual environment of a release, unless it exists for this lock. Return its interpreter."""
    folder = Path(f".venv-{version}")
    python, stamp = folder / "bin" / "python", folder / ".installed"
    wanted = hashlib.sha256(LOCK.read_bytes() + PROJECT.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text("utf-8") != wanted:
        _run(interpreter, "-m", "venv", "--clear", str(folder))
        _run(python, *_PIP, "--require-hashes", "-r", str(LOCK))
        _run(python, *_PIP, "--no-deps", "--no-build-isolation", "--editable", ".")
        stamp.write_text(wanted, "utf-8")
    return python


def _run(python: Path, *arguments: str) -> None:
    subprocess.run([python, *arguments], check=True)  # noqa: S603  # our own


def tried(version: str, arguments: Sequence[str]) -> str:
    """Run the checks and the tests under a release. Return the result."""
    interpreter = find(version)
    if interpreter is None:
        return "not found"
    step = "the environment"
    try:
        python = environment(version, interpreter)
        step = "mypy"
        _run(python, "-m", "mypy", "--python-version", version)
        step = "the tests"
        _run(python, "-m", "pytest", "-p", "no:cacheprovider", *arguments)
    except subprocess.CalledProcessError as error:
        return f"failed: {step}, status {error.returncode}"
    return "passed"


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--only", multiple=True, help="A release, such as 3.12; by default all that are supported.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def main(only: Sequence[str], arguments: Sequence[str]) -> None:
    """Try the supported releases of Python. ARGUMENTS are for pytest."""
    results = {version: tried(version, arguments) for version in only or supported()}
    for version, result in results.items():
        click.echo(f"Python {version}: {result}")
    good = set(results.values()) <= {"passed", "not found"} and "passed" in results.values()
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
