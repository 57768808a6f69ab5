"""The workflows for GitHub: pinned actions, targets that exist, no more rights than needed, and checked files.

No job both runs what it fetched and may write, sign or read a token. What jobs hand over is checked before it is used.
"""

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

TEXTS: Final = {path.stem: path.read_text("utf-8") for path in sorted(Path(".github/workflows").glob("*.yml"))}
WORKFLOWS: Final[dict[str, dict[str, Any]]] = {name: yaml.safe_load(text) for name, text in TEXTS.items()}
RIGHTS: Final = {
    ("release", "sign"): {"id-token": "write", "attestations": "write"},
    ("release", "publish"): {"contents": "write", "packages": "write"},
    ("update", "propose"): {"contents": "write", "pull-requests": "write"},
}
"""Jobs that may do more than read."""
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
each_workflow = pytest.mark.parametrize("name", WORKFLOWS)


ACTION = re.compile(r"uses: ([^@\s]+)@(\S+)(?:  # (\S+))?$", re.MULTILINE)


def programs(script: str) -> set[str]:
    """Return the first words of the commands of a script. It may return too many, which a test then shows."""
    script = re.sub(r"'[^']*'", "''", _HERE.sub("", script)).replace("\\\n", " ")
    for keyword in _KEYWORDS:
        script = re.sub(rf"\b{keyword} ", ";", script)
    words = {word.strip('"') for _, word in _COMMAND.findall(script)}
    return {word for word in words if word not in _KEYWORDS and not _ASSIGNMENT.fullmatch(word)}


def steps(name: str) -> Iterator[Mapping[str, Any]]:
    for job in WORKFLOWS[name]["jobs"].values():
        yield from job["steps"]


def commands(name: str) -> list[str]:
    return [step["run"] for step in steps(name) if "run" in step]


def targets(text: str) -> list[str]:
    return re.findall(r"^make ([a-z0-9-]+)", text, re.MULTILINE)


@each_workflow
def test_a_target_that_is_called_is_in_the_makefile(name: str) -> None:
    makefile = Path("Makefile").read_text("utf-8")
    called = [target for command in commands(name) for target in targets(command)]
    assert called
    for target in called:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@each_workflow
def test_only_three_jobs_may_do_more_than_read_and_no_other_has_a_token(name: str) -> None:
    workflow = WORKFLOWS[name]
    assert workflow["permissions"] == {"contents": "read"}
    assert not {"pull_request_target", "workflow_run"} & {*workflow["on"]}, "started by the code of others"
    assert not _SECRET.search(str(workflow.get("env", {})))
    for job, each in workflow["jobs"].items():
        assert each.get("permissions") == RIGHTS.get((name, job)), job
        assert (name, job) in RIGHTS or not _SECRET.search(str(each)), job
    for step in steps(name):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize(("name", "job"), RIGHTS)
def test_a_job_with_rights_runs_nothing_that_was_fetched_and_takes_only_checked_files(name: str, job: str) -> None:
    each = WORKFLOWS[name]["jobs"][job]
    assert not {"container", "services", "uses"} & each.keys()
    for step in each["steps"]:
        assert programs(step.get("run", "")) <= PROGRAMS
        assert not _RUNNING_OTHERS.search(step.get("run", ""))
        assert step.get("uses", "").partition("@")[0] in {"", *ACTIONS}
    unpacked, cache, check = each["steps"][:3]
    assert unpacked["run"] == UNPACK
    source = re.fullmatch(r"\$\{\{ needs\.(\w+)\.outputs\.key \}\}", cache["with"]["key"])
    assert source is not None, "a cache that is not of this run"
    assert cache["with"].keys() == {"path", "key", "fail-on-cache-miss"}
    assert check["env"] == {"SUMS": f"${{{{ needs.{source[1]}.outputs.sums }}}}"}


@each_workflow
def test_no_text_of_another_person_gets_into_a_command(name: str) -> None:
    assert not any("${{" in command for command in commands(name)), (
        "variables of the environment are quoted, these are not"
    )


def test_only_a_tag_makes_a_release_and_the_tag_is_held_against_the_version() -> None:
    # Unquoted, YAML 1.1 would read the key as true.
    assert WORKFLOWS["release"]["on"] == {"push": {"tags": ["v*"]}}
    assert 'TAG="$GITHUB_REF_NAME"' in "\n".join(commands("release"))


def test_an_action_is_pinned_by_its_commit_and_the_same_one_everywhere() -> None:
    pins: dict[str, set[tuple[str, str]]] = {}
    for action, commit, version in (found for text in TEXTS.values() for found in ACTION.findall(text)):
        assert re.fullmatch("[0-9a-f]{40}", commit), action
        assert re.fullmatch(r"v\d+\.\d+\.\d+", version), action
        pins.setdefault(action, set()).add((commit, version))
    assert pins.keys() == {
        step["uses"].partition("@")[0] for name in WORKFLOWS for step in steps(name) if "uses" in step
    }
    assert {action: len(each) for action, each in pins.items()} == dict.fromkeys(pins, 1)


@each_workflow
def test_no_variable_of_the_environment_becomes_one_of_make(name: str) -> None:
    taken = set(re.findall(r"\$\(([A-Z_]+)\)", Path("Makefile").read_text("utf-8")))
    assert {"IMAGE", "TAG", "BASE_DIGEST"} <= taken
    workflow = WORKFLOWS[name]
    places = [workflow, *workflow["jobs"].values(), *steps(name)]
    assert {variable for place in places for variable in place.get("env", {})} & taken == set()


def script(workflow: str, job: str, step: str) -> str:
    """Return the script of the step whose name begins with a text."""
    steps = yaml.safe_load(TEXTS[workflow])["jobs"][job]["steps"]
    return next(str(each["run"]) for each in steps if each.get("name", "").startswith(step))


UNPACK: Final = script("release", "sign", "Let nothing")


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
