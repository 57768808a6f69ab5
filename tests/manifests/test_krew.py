"""The krew plugin: its manifest is as krew wants it, and the archive that is built holds what it names.

Source: sigs.k8s.io/krew internal/index/validation/validate.go (v0.4.5).
"""

import hashlib
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from app import __version__
from tests.manifests.kustomize import MANIFESTS

KREW = MANIFESTS / "krew"
ADDRESS = "https://example.com/kubectl-kindred.tar.gz"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the archive and its manifest, and give the folder."""
    folder = tmp_path_factory.mktemp("krew")
    build(folder)
    return folder


def build(folder: Path) -> None:
    command = [str(KREW / "build.sh"), sys.executable, str(folder), ADDRESS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own script
    assert done.returncode == 0, done.stderr


@pytest.fixture
def manifest(built: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((built / "kindred.yaml").read_text())
    return loaded


def test_the_manifest_is_one_that_krew_takes(manifest: dict[str, Any]) -> None:
    assert (manifest["apiVersion"], manifest["kind"]) == ("krew.googlecontainertools.github.com/v1alpha2", "Plugin")
    assert re.fullmatch(r"[\w-]+", manifest["metadata"]["name"])
    spec = manifest["spec"]
    assert spec["version"] == f"v{__version__}"
    assert spec["shortDescription"]
    assert "\n" not in spec["shortDescription"]
    for platform in spec["platforms"]:
        assert platform["uri"] == ADDRESS
        assert re.fullmatch("[0-9a-f]{64}", platform["sha256"])
        assert platform["bin"]
        assert platform["selector"]
        assert platform.keys() <= {"uri", "sha256", "selector", "files", "bin"}


def test_the_checksum_is_that_of_the_archive_which_holds_the_program(built: Path, manifest: dict[str, Any]) -> None:
    archive = built / "kubectl-kindred.tar.gz"
    (platform,) = manifest["spec"]["platforms"]
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == platform["sha256"]
    with tarfile.open(archive) as opened:
        members = {member.name.removeprefix("./"): member for member in opened if member.isfile()}
        wheel = f"kindred_scheduler-{__version__}-py3-none-any.whl"
        assert {platform["bin"], "requirements.lock", "LICENSE", wheel} == members.keys()
        assert members[platform["bin"]].mode & 0o111 == 0o111
        locked = opened.extractfile(members["requirements.lock"])
        assert locked is not None
        assert locked.read() == Path("requirements.lock").read_bytes()


def test_the_same_files_give_the_same_archive(built: Path, tmp_path: Path) -> None:
    build(tmp_path)
    assert (tmp_path / "kubectl-kindred.tar.gz").read_bytes() == (built / "kubectl-kindred.tar.gz").read_bytes()


def test_what_is_installed_is_run_with_its_arguments_and_only_the_first_run_installs(
    built: Path, tmp_path: Path
) -> None:
    """With a Python that makes an environment of scripts, as the real one takes a network."""
    with tarfile.open(built / "kubectl-kindred.tar.gz") as opened:
        opened.extractall(tmp_path / "plugin", filter="data")
    fake = tmp_path / "bin" / "python3"
    fake.parent.mkdir()
    fake.write_text(FAKE_PYTHON)
    fake.chmod(0o755)
    link = tmp_path / "kubectl-kindred"  # krew links to what it has installed
    link.symlink_to(tmp_path / "plugin" / "kubectl-kindred")
    environment = {"PATH": f"{fake.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    runs = [
        subprocess.run(  # noqa: S603 - our own script
            [str(link), "why", "web 0"], env=environment, capture_output=True, text=True, check=False
        )
        for _ in range(2)
    ]
    assert [run.stdout for run in runs] == ["ran why,web 0,\n"] * 2, runs[0].stderr
    assert "installing into" in runs[0].stderr
    assert runs[1].stderr == ""
    installed = (tmp_path / "pip.log").read_text().splitlines()
    assert len(installed) == 2
    assert "--require-hashes --requirement" in installed[0]
    assert installed[1].endswith(f"--no-deps {tmp_path}/plugin/kindred_scheduler-{__version__}-py3-none-any.whl")


FAKE_PYTHON = """#!/bin/sh
[ "$1" = -m ] || exit 0
mkdir -p "$3/bin"
printf '#!/bin/sh\necho "$@" >> "$HOME/pip.log"\n' > "$3/bin/pip"
printf '#!/bin/sh\nprintf "ran "\nprintf "%%s," "$@"\necho\n' > "$3/bin/kubectl-kindred"
chmod +x "$3/bin/pip" "$3/bin/kubectl-kindred"
"""
