"""The container image: what is in it and what is not, and that it runs as a cluster's strictest policy wants it to."""

import fnmatch
import importlib.util
import json
import os
import re
import signal
import stat
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx
import pytest

from app import __version__
from tests.e2e.image_builder import MOUNTED, ROOT, Image, NoImageError, built_image
from tests.e2e.programs import PATIENCE, free_port, wait_until

USER: Final = 65532
SITE: Final = "opt/kindred/lib/python3.11/site-packages"
GRACE: Final = 20.0  # seconds; the default of grace_period
_IMPORT_ALL: Final = """
from importlib import import_module
from pkgutil import walk_packages
import app, core
from kubernetes.config import incluster_config, kube_config  # imported where a cluster is followed
for package in (app, core):
    for module in walk_packages(package.__path__, package.__name__ + "."):
        try:
            import_module(module.name)
        except ModuleNotFoundError as missing:  # of the optional packages for selectors of devices
            if missing.name not in ("google", "cel_expr_python"):
                raise
print(module.name)
"""
_UNCHECKED_HASH: Final = 0b01  # PEP 552: neither its time nor the source is looked at


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    try:
        with built_image() as image:
            yield image
    except NoImageError as error:
        pytest.skip(f"the image is not built here: {error}")


@pytest.fixture(scope="module")
def contents(image: Image) -> list[str]:
    """Every path of the image, relative to its root."""
    found = []
    for folder, folders, files in os.walk(image.files):
        if Path(folder) == image.files:
            folders[:] = [name for name in folders if name not in {"dev", "proc", "sys"}]
        inside = Path(folder).relative_to(image.files)
        found += [str(inside / name) for name in (*folders, *files)]
    return sorted(set(found) - set(MOUNTED))


def matching(contents: Sequence[str], *patterns: str) -> list[str]:
    return [path for path in contents if any(fnmatch.fnmatch(path, pattern) for pattern in patterns)]


# What is in it.


def test_it_has_nothing_that_builds_downloads_or_installs(contents: list[str]) -> None:
    programs = {Path(path).name for path in matching(contents, "bin/*", "usr/bin/*", "usr/local/bin/*", "opt/*/bin/*")}
    assert {"python3", "kindred", "sh"} <= programs
    builders = ("pip*", "*gcc*", "*g++*", "cc", "c++", "cpp", "ld", "as", "ar", "make", "cmake", "git", "uv", "curl")
    assert matching(sorted(programs), *builders) == []
    packages = ("pip", "setuptools", "wheel", "ensurepip", "distutils", "pkg_resources", "_distutils_hack", "f2py")
    assert matching(contents, *(f"*/{package}" for package in packages)) == []
    assert matching(contents, "*/pip-*.whl", "*/setuptools-*.whl") == []
    assert matching(contents, "usr/local/include/*", "opt/*.[ach]", "opt/*.pyx", "usr/lib/*.a") == []


def test_of_the_project_it_has_the_program_and_nothing_else(image: Image, contents: list[str]) -> None:
    program = {
        str(path.relative_to(ROOT))
        for folder in ("app", "core")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    found = {
        path.removeprefix(f"{SITE}/")
        for path in matching(contents, f"{SITE}/app/*", f"{SITE}/core/*")
        if "__pycache__" not in path and (image.files / path).is_file()
    }
    assert program == found
    assert matching(contents, "opt/*") == matching(contents, "opt/kindred", "opt/kindred/*")
    assert matching(contents, "src", "*/.git", "*/manifests", "*/requirements*.lock", "*/tests", "*/conftest.py") == []


def test_every_module_is_compiled_and_the_source_is_not_looked_at_again(image: Image, contents: list[str]) -> None:
    modules = matching(contents, "opt/*.py", "usr/lib/python3.11/*.py", "usr/local/lib/python3.11/*.py")
    assert len(modules) > 1000
    for module in modules:
        source = image.files / module
        compiled = source.parent / "__pycache__" / f"{source.stem}.cpython-311.pyc"
        head = compiled.read_bytes()[:8]
        assert head == importlib.util.MAGIC_NUMBER + _UNCHECKED_HASH.to_bytes(4, "little"), module


def test_its_user_owns_nothing_writes_nowhere_else_and_no_program_gives_the_rights_of_its_owner(
    image: Image, contents: list[str]
) -> None:
    found = {path: (image.files / path).lstat() for path in contents}
    assert [path for path, each in found.items() if USER in (each.st_uid, each.st_gid)] == []
    writable = {path for path, each in found.items() if each.st_mode & stat.S_IWOTH and not stat.S_ISLNK(each.st_mode)}
    assert writable <= {"tmp", "var/tmp", "run/lock"}
    special = stat.S_ISUID | stat.S_ISGID
    assert [path for path, each in found.items() if stat.S_ISREG(each.st_mode) and each.st_mode & special] == []
    assert sum(found[path].st_size for path in matching(contents, "opt/*")) < 200e6


# What it says of itself.


def test_it_is_started_without_a_shell_and_without_root(image: Image) -> None:
    config = image.config
    assert config["User"] == f"{USER}:{USER}"
    assert (config["Entrypoint"], config["Cmd"]) == (["kindred"], ["serve", "--demo", "--listen", "0.0.0.0:8888"])
    assert config["StopSignal"] == "SIGTERM"
    assert set(config["ExposedPorts"]) == {"8888/tcp", "8889/tcp"}
    assert config["Healthcheck"]["Test"][:3] == ["CMD", "python", "-c"]


def test_its_labels_say_what_it_is_and_what_it_stands_on(image: Image) -> None:
    prefix = "org.opencontainers.image."
    labels = {key.removeprefix(prefix): text for key, text in image.config["Labels"].items() if prefix in key}
    described = {"title", "description", "licenses", "version", "revision", "base.name", "base.digest"}
    assert described == set(labels)
    assert (labels["base.name"], labels["revision"]) == (image.base, "e2e")


# That it runs, with a root that is read-only.


def output(image: Image, *arguments: str, text: str = "") -> str:
    command = image.command(*image.config["Entrypoint"], *arguments)
    return subprocess.run(  # noqa: S603  # our own arguments
        command, env=image.sandbox, input=text, capture_output=True, text=True, check=True, timeout=PATIENCE
    ).stdout


def test_it_tells_its_version(image: Image) -> None:
    assert output(image, "--version") == f"kindred, version {__version__}\n"


def test_nothing_that_it_imports_was_left_out(image: Image) -> None:
    command = image.command("python", "-c", _IMPORT_ALL)
    done = subprocess.run(command, env=image.sandbox, capture_output=True, text=True, check=False, timeout=PATIENCE)  # noqa: S603  # our own arguments
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("core.")


def test_it_answers_about_the_demo(image: Image) -> None:
    requested = json.loads((ROOT / "app/demo/requests/required-affinity.json").read_bytes())
    arguments = ("--demo", "--pod", "-", "--nodes", ",".join(requested["NodeNames"]))
    assert json.loads(output(image, "filter", *arguments, text=json.dumps(requested["Pod"])))["NodeNames"] == ["node1"]


@contextmanager
def container(
    image: Image, *command: str, environment: Sequence[str] = ()
) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """Run a command in the image; give the process, and the number outside of its process 1."""
    requested = image.command(*command, environment=environment)
    with subprocess.Popen(  # noqa: S603  # our own arguments
        requested, env=image.sandbox, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        try:
            wait_until(lambda: bool(children.read_text().split()), PATIENCE, "process 1")
            yield process, int(children.read_text())
        finally:
            process.kill()


def healthy(image: Image, process: int, environment: Sequence[str]) -> bool:
    """Ask as an engine does: by the command of the HEALTHCHECK."""
    command = image.next_to(process, *image.config["Healthcheck"]["Test"][1:], environment=environment)
    return not subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE).returncode  # noqa: S603  # our own arguments


@pytest.mark.parametrize("with_health_port", [False, True])
def test_it_serves_is_found_healthy_and_ends_at_sigterm(image: Image, with_health_port: bool) -> None:  # noqa: FBT001  # one of two cases
    port = free_port()
    environment = [f"KINDRED_LISTEN=127.0.0.1:{port}"]
    if with_health_port:
        environment.append(f"KINDRED_HEALTH_PORT={free_port()}")
    with container(image, *image.config["Entrypoint"], "serve", "--demo", environment=environment) as (process, first):
        wait_until(lambda: healthy(image, first, environment), PATIENCE, "health")
        assert httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=PATIENCE).status_code == 200
        assert re.search(rf"^Uid:\t{USER}\t{USER}\t", Path(f"/proc/{first}/status").read_text(), re.MULTILINE)
        requested = (ROOT / "app/demo/requests/required-affinity.json").read_bytes()
        response = httpx.post(f"http://127.0.0.1:{port}/filter", content=requested, timeout=PATIENCE).json()
        assert response["NodeNames"] == ["node1"]
        os.kill(first, signal.SIGTERM)
        assert process.wait(GRACE) == 0


def test_it_is_found_unhealthy_where_nothing_answers(image: Image) -> None:
    environment = (f"KINDRED_LISTEN=127.0.0.1:{free_port()}",)
    with container(image, "python", "-c", "import time; time.sleep(60)", environment=environment) as (_, first):
        assert not healthy(image, first, environment)


def test_nothing_can_be_written(image: Image) -> None:
    command = image.command("python", "-c", "open('/tmp/a', 'w')")
    done = subprocess.run(command, env=image.sandbox, capture_output=True, text=True, check=False)  # noqa: S603  # our own arguments
    assert "Read-only file system: '/tmp/a'" in done.stderr
