"""No job of a workflow both runs what it fetched and may write; what jobs hand over is checked before it is used."""

import hashlib
import re
import shlex
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

Job = Mapping[str, Any]

FOLDER: Final = Path(".github/workflows")
TEXTS: Final = {path.stem: path.read_text("utf-8") for path in sorted(FOLDER.glob("*.yml"))}
PROGRAMS: Final = frozenset(
    re.findall(
        r"\S+", "[ awk base64 cd chmod cosign cp diff echo find gh git mkdir mv printf sha256sum skopeo sort test tr"
    )
)
"""Of the runner, and cosign of a pinned action. A job with rights may run these. Others may be fetched."""
ACTIONS: Final = frozenset({"actions/cache", "actions/checkout", "actions/attest", "sigstore/cosign-installer"})
"""Actions that a job with rights may use. They run no file of the workspace."""
_RUNNING_OTHERS: Final = re.compile(r"-exec|--to-command|\bsystem\(|\balias\b|\bextension\b|core\.|\bhooks?\b")
_COMMAND: Final = re.compile(
    r"(?:^|[|;&(!]|(?<!\$)\{ )[ \t]*((?:[A-Za-z_]\w*=[^\s(]*[ \t]+)*)([^\s|;&()<>!{}]+)",
    re.MULTILINE,
)
_HERE: Final = re.compile(r"<< 'END'\n.*?^END$", re.DOTALL | re.MULTILINE)
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=.*")
_KEYWORDS: Final = frozenset({"if", "then", "else", "fi", "for", "do", "done", "while", "exec"})
_SECRET: Final = re.compile(r"\bsecrets\b|github\.token")


def programs(script: str) -> set[str]:
    """Return the first words of the commands of a script. It may return too many, which a test then shows."""
    script = re.sub(r"'[^']*'", "''", _HERE.sub("", script)).replace("\\\n", " ")
    for keyword in _KEYWORDS:
        script = re.sub(rf"\b{keyword} ", ";", script)
    words = {word.strip('"') for _, word in _COMMAND.findall(script)}
    return {word for word in words if word not in _KEYWORDS and not _ASSIGNMENT.fullmatch(word)}


def has_rights(job: Job) -> bool:
    """Return whether a job may write, sign, or has a token in a variable or an input."""
    rights = job.get("permissions", {})
    if rights == "write-all" or (isinstance(rights, dict) and "write" in rights.values()):
        return True
    return _SECRET.search(yaml.safe_dump({**job, "permissions": None})) is not None


def fetched(job: Job) -> Iterator[str]:
    """Yield what of a job is, or may run, code that was fetched: programs, and actions that run or install some."""
    if "container" in job or "services" in job or "uses" in job:
        yield "an image or another workflow"
    for step in job.get("steps", ()):
        yield from programs(step.get("run", "")) - PROGRAMS
        yield from _RUNNING_OTHERS.findall(step.get("run", ""))
        action = step.get("uses", "").partition("@")[0]
        if action and action not in ACTIONS:
            yield action


def handed_over(job: Job) -> Iterator[str]:
    """Yield what is wrong with the way in which a job with rights takes the files of another job."""
    found = job["steps"]
    for place, step in enumerate(found):
        if not step.get("uses", "").startswith("actions/cache@"):
            continue
        key, check = step["with"].get("key", ""), found[place + 1] if place + 1 < len(found) else {}
        source = re.fullmatch(r"\$\{\{ needs\.(\w+)\.outputs\.key \}\}", key)
        if source is None or step["with"].keys() != {"path", "key", "fail-on-cache-miss"}:
            yield "a cache that is not of this run"
        if place != 1 or found[0].get("run") != UNPACK:
            yield "unpacked with tar -P, or into a workspace with other files"
        if source is None or check.get("env") != {"SUMS": f"${{{{ needs.{source[1]}.outputs.sums }}}}"}:
            yield "no sums of the job that made the files"
        script = check.get("run", "")
        if not all(
            part in script for part in ('"$SUMS', "sha256sum --check --strict", 'test -e "$RUNNER_TEMP/unpacked"')
        ):
            yield "no check of the sums"
        if "find . -mindepth 1 -printf '%y %P\\n'" not in script or "diff " not in script:
            yield "no check of the names and types"


def problems(text: str) -> list[str]:
    """Return what a workflow does against the rules."""
    workflow = yaml.safe_load(text)
    found = [] if workflow.get("permissions") in ({}, {"contents": "read"}) else ["rights of all jobs"]
    found += ["a token in a variable of all jobs"] if _SECRET.search(str(workflow.get("env", {}))) else []
    found += ["started by the code of others"] if {"pull_request_target", "workflow_run"} & {*workflow["on"]} else []
    for name, job in workflow["jobs"].items():
        for step in job.get("steps", ()):
            kept = (step.get("with") or {}).get("persist-credentials", True) is not False
            found += (
                [f"{name}: credentials kept"] if step.get("uses", "").startswith("actions/checkout@") and kept else []
            )
        if has_rights(job):
            found += [f"{name}: runs {each}" for each in fetched(job)]
            found += [f"{name}: {each}" for each in handed_over(job)]
    return found


def script(workflow: str, job: str, step: str) -> str:
    """Return the script of the step whose name begins with a text."""
    steps = yaml.safe_load(TEXTS[workflow])["jobs"][job]["steps"]
    return next(str(each["run"]) for each in steps if each.get("name", "").startswith(step))


UNPACK: Final = script("release", "sign", "Let nothing")


@pytest.mark.parametrize("name", TEXTS)
def test_no_job_breaks_a_rule(name: str) -> None:
    assert problems(TEXTS[name]) == []


def test_the_jobs_with_rights_are_these_three() -> None:
    jobs = {(name, job): each for name, text in TEXTS.items() for job, each in yaml.safe_load(text)["jobs"].items()}
    assert [place for place, job in jobs.items() if has_rights(job)] == [
        ("release", "sign"),
        ("release", "publish"),
        ("update", "propose"),
    ]
    assert {name for name, job in jobs.items() if [*fetched(job)]} == jobs.keys() - {
        ("release", "sign"),
        ("release", "publish"),
        ("update", "propose"),
    }


LOCK: Final = "    timeout-minutes: 60\n    outputs:\n      key: locks-"
BUILD: Final = "    timeout-minutes: 60\n    outputs:\n      key: release-"
PROPOSED: Final = "          git switch --create update-locks\n"
SIGNED: Final = "          cosign sign-blob"
PUBLISHED: Final = '          echo "$BUNDLE" | base64'
RESTORED: Final = "          fail-on-cache-miss: true\n"


@pytest.mark.parametrize(
    ("name", "before", "after", "problem"),
    [
        ("update", "permissions:\n  contents: read", "permissions: write-all", "rights of all jobs"),
        ("release", "permissions:\n  contents: read", "permissions:\n  contents: write", "rights of all jobs"),
        ("ci", "permissions:\n  contents: read\n", "", "rights of all jobs"),
        ("ci", "  pull_request: {}", "  pull_request_target: {}", "started by the code of others"),
        ("ci", "          persist-credentials: false\n", "          fetch-depth: 0\n", "check: credentials kept"),
        (
            "update",
            "          persist-credentials: false\n",
            "          persist-credentials: true\n",
            "lock: credentials",
        ),
        ("update", LOCK, f"    permissions:\n      contents: write\n{LOCK}", "lock: runs make"),
        ("update", LOCK, f"    permissions: write-all\n{LOCK}", "lock: runs make"),
        ("update", LOCK, "    env:\n      GH_TOKEN: ${{ github.token }}\n" + LOCK, "lock: runs make"),
        ("update", LOCK, "    env:\n      PYPI: ${{ secrets.PYPI }}\n" + LOCK, "lock: runs make"),
        ("update", "jobs:\n", "env:\n  A: ${{ secrets.A }}\njobs:\n", "a token in a variable of all jobs"),
        ("release", BUILD, f"    permissions:\n      id-token: write\n{BUILD}", "build: runs make"),
        *(
            ("update", PROPOSED, f"          {command}\n{PROPOSED}", f"propose: runs {program}")
            for command, program in (
                ("make check", "make"),
                ("pip install uv", "pip"),
                ("npm ci", "npm"),
                ("A=1 uv lock", "uv"),
                ("git status && ./.ci/run", "./.ci/run"),
                ("echo $(python3 setup.py)", "python3"),
                ('echo "$(.venv/bin/python x)"', ".venv/bin/python"),
                ("if bash x; then echo y; fi", "bash"),
                ("find . -exec sh {} +", "-exec"),
                ("git -c core.hooksPath=tests commit", "core."),
            )
        ),
        ("release", SIGNED, f"          make lock\n{SIGNED}", "sign: runs make"),
        ("release", PUBLISHED, f"          cat notes | sh\n{PUBLISHED}", "publish: runs sh"),
        (
            "update",
            "      - name: Open a pull request",
            "      - uses: actions/setup-node@0\n      - name: Open a pull request",
            "propose: runs actions/setup-node",
        ),
        ("update", RESTORED, "          restore-keys: locks-\n", "propose: a cache that is not of this run"),
        ("update", "key: ${{ needs.lock.outputs.key }}", "key: locks", "propose: a cache that is not of this run"),
        ("release", '[ "$each" = -P ] ||', "", "sign: unpacked with tar -P"),
        ("update", 'echo "$RUNNER_TEMP/bin" >> "$GITHUB_PATH"', "echo", "propose: unpacked with tar -P"),
        ("release", "SUMS: ${{ needs.build.outputs.sums }}", "SUMS: sums", "sign: no sums of the job"),
        (
            "update",
            '          (cd locks && echo "$SUMS" | sha256sum --check --strict)\n',
            "",
            "propose: no check of the",
        ),
        ("update", "find . -mindepth 1 -printf '%y %P\\n'", "ls", "propose: no check of the names and types"),
    ],
)
def test_a_change_that_breaks_a_rule_is_found(name: str, before: str, after: str, problem: str) -> None:
    assert before in TEXTS[name]
    assert [each for each in problems(TEXTS[name].replace(before, after)) if each.startswith(problem)]


# What the steps do.


def run(text: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a step as the runner does: by `shell: bash`, in the workspace."""
    environment = {"PATH": "/usr/bin:/bin", "RUNNER_TEMP": str(folder.parent / "temp"), **variables}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)  # noqa: S603


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "temp").mkdir()
    (tmp_path / "workspace").mkdir()
    return tmp_path / "workspace"


def unpacked(workspace: Path, *members: tuple[tarfile.TarInfo, bytes]) -> int:
    """Unpack an archive as actions/cache does, after the step that keeps it inside. Return the exit status."""
    archive, path = workspace.parent / "cache.tar", workspace.parent / "path"
    with tarfile.open(archive, "w") as opened:
        for member, content in members:
            member.size = len(content)
            opened.addfile(member, BytesIO(content))
    path.touch()
    assert run(UNPACK, workspace, GITHUB_PATH=str(path)).returncode == 0
    command = shlex.join(["tar", "-xf", str(archive), "-P", "-C", str(workspace)])
    return run(command, workspace, PATH=f"{path.read_text().splitlines()[-1]}:/usr/bin:/bin").returncode


def member(name: str, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = (tarfile.SYMTYPE, link) if link else (tarfile.REGTYPE, "")
    return made


def test_an_archive_is_unpacked_into_the_workspace_and_a_hostile_one_writes_nothing_else(workspace: Path) -> None:
    assert unpacked(workspace, (member("dist/a"), b"a")) == 0
    assert (workspace / "dist" / "a").read_text() == "a"
    assert (workspace.parent / "temp" / "unpacked").exists()
    for hostile in (
        [(member(f"{workspace.parent}/hostile"), b"x")],
        [(member("../hostile"), b"x")],
        [(member("dist/up", "../.."), b""), (member("dist/up/hostile"), b"x")],
    ):
        bin_folder = workspace.parent / "temp" / "bin"
        for path in (bin_folder / "tar", bin_folder):
            path.unlink() if path.is_file() else path.rmdir()
        unpacked(workspace, *hostile)
        assert not (workspace.parent / "hostile").exists()


LOCKS: Final = ("package-lock.json", *sorted(path.name for path in Path().glob("requirements*.lock")))


def gathered(folder: Path, names: tuple[str, ...]) -> str:
    """Write files into a folder. Return their sums, as `sha256sum` does."""
    folder.mkdir()
    for name in names:
        (folder / name).write_text(name)
    return "".join(f"{hashlib.sha256(name.encode()).hexdigest()}  {name}\n" for name in names)


def damaged(folder: Path, way: str, name: str) -> None:
    """Change the files of a folder in one way."""
    if way == "another file":
        (folder / "hook").touch()
    elif way == "a file beside the folder":
        (folder.parent / "hook").touch()
    elif way == "a link":
        (folder / name).rename(folder.parent.parent / "content")
        (folder / name).symlink_to(folder.parent.parent / "content")
    elif way == "a missing file":
        (folder / name).unlink()
    elif way == "another content":
        (folder / name).write_text("other")
    elif way == "unpacked by another tar":
        (folder.parent.parent / "temp" / "unpacked").unlink()


WAYS: Final = (
    "another file",
    "a file beside the folder",
    "a link",
    "a missing file",
    "another content",
    "unpacked by another tar",
)


@pytest.mark.parametrize("way", ["", *WAYS, "too large"])
def test_only_the_locks_as_they_were_made_get_into_the_pull_request(workspace: Path, way: str) -> None:
    (workspace.parent / "temp" / "unpacked").touch()
    sums = gathered(workspace / "locks", LOCKS)
    damaged(workspace / "locks", way, "requirements.lock")
    if way == "too large":
        content = b"x" * (2 * 1024 * 1024 + 1)
        (workspace / "locks" / "requirements.lock").write_bytes(content)
        sums = sums.replace(hashlib.sha256(b"requirements.lock").hexdigest(), hashlib.sha256(content).hexdigest())
    done = run(script("update", "propose", "Check"), workspace, SUMS=sums)
    assert (done.returncode == 0) == (way == ""), done.stderr
    assert (workspace.parent / "temp" / "locks").exists() == (way == "")
    assert {path.name for path in Path().rglob("*.lock") if path.parent == Path()} == {*LOCKS} - {"package-lock.json"}


@pytest.mark.parametrize("way", ["", *WAYS, "other sums"])
@pytest.mark.parametrize("job", ["sign", "publish"])
def test_only_the_files_as_they_were_built_are_signed_and_published(workspace: Path, job: str, way: str) -> None:
    (workspace.parent / "temp" / "unpacked").touch()
    sums = gathered(workspace / "dist", ("a.whl", "b.tar.gz"))
    (workspace / "dist" / "SHA256SUMS").write_text(sums + "x" * (way == "other sums"))
    damaged(workspace / "dist", way, "a.whl")
    done = run(script("release", job, "Check"), workspace, SUMS=hashlib.sha256(sums.encode()).hexdigest())
    assert (done.returncode == 0) == (way == ""), done.stderr
