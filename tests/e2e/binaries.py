"""etcd, kube-apiserver, kube-scheduler and other Go programs: found, or built from their modules (tests/e2e/go).

Looked for as envtest does: in KUBEBUILDER_ASSETS, on PATH, and then in a cache outside of the checkout, which is filled
where something is missing. A build belongs to the module files, the program's own source and the Go that made it.

KINDRED_E2E_KUBERNETES=1.37 (or v1.37.2, for another patch release) takes those of another release than that of
tests/e2e/go, and so does `python -m tests.e2e.binaries 1.37`. `--built` prints the other releases that are built.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

MODULE: Final = Path(__file__).parent / "go"
ETCD: Final = "etcd"
API_SERVER: Final = "kube-apiserver"
SCHEDULER: Final = "kube-scheduler"
CONTROL_PLANE: Final = (ETCD, API_SERVER, SCHEDULER)
RELEASES: Final[Mapping[str, str]] = {"1.34": "v1.34.1", "1.35": "v1.35.4", "1.36": "v1.36.3", "1.37": "v1.37.1"}
"""Release -> the patch release whose programs are built."""
_RELEASE: Final = re.compile(r"v1\.\d+\.\d+")
_FIRST_MINOR: Final = 34
"""The oldest release that programs are built of; what is newer has build tags."""
_SHOW_EVERY: Final = 10.0  # seconds between two lines of progress


class BuildError(RuntimeError):
    """A program is neither there nor can it be built."""


def binaries(names: Sequence[str] = CONTROL_PLANE, module: Path = MODULE) -> Mapping[str, Path]:
    """Return program -> its file, and build what is missing, with progress on stderr. Raises BuildError.

    With a module of another release, only its own builds will do.
    """
    found = {name: path for name in names if (path := _given(name)) is not None} if module == MODULE else {}
    missing = [name for name in names if name not in found]
    if missing:
        found.update(_built(missing, module))
    for name in names:
        _say(f"{name}: {found[name]}")
    return found


def _given(name: str) -> Path | None:
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets and (Path(assets) / name).exists():
        return Path(assets) / name
    on_path = shutil.which(name)
    return Path(on_path) if on_path else None


def cache_folder() -> Path:
    """Return where builds are kept: KINDRED_E2E_CACHE, or a folder in the user's cache."""
    chosen = os.environ.get("KINDRED_E2E_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kindred-e2e"


def build_key(module: Path, name: str, go_version: str) -> str:
    """Return what a build of a program belongs to: neither the source nor the build of another program changes it."""
    digest = hashlib.sha256(go_version.encode())
    for path in (module / "go.mod", module / "go.sum", *sorted((module / "cmd" / name).glob("*.go"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _built(names: Sequence[str], module: Path) -> Mapping[str, Path]:
    go = shutil.which("go")
    if go is None:
        raise BuildError(f"{', '.join(names)}: not found, and there is no Go to build them; set KUBEBUILDER_ASSETS")
    files = _files(names, module, go)
    needed = [name for name, file in files.items() if not file.exists()]
    if needed:
        cache_folder().mkdir(parents=True, exist_ok=True)
        # Renamed when complete: a build that was interrupted leaves nothing that looks like a program.
        with tempfile.TemporaryDirectory(dir=cache_folder()) as made:
            _build(go, needed, Path(made), module)
            for name in needed:
                files[name].parent.mkdir(exist_ok=True)
                (Path(made) / name).rename(files[name])
    return files


def _files(names: Sequence[str], module: Path, go: str) -> dict[str, Path]:
    version = go_output(module, go, "version")
    return {name: cache_folder() / build_key(module, name, version) / name for name in names}


def built_already(names: Sequence[str], module: Path) -> Mapping[str, Path] | None:
    """Return program -> its file, if an earlier build of all of them is in the cache."""
    go = shutil.which("go")
    files = {} if go is None else _files(names, module, go)
    return files if files and all(file.exists() for file in files.values()) else None


def other_releases() -> list[str]:
    """Return the releases other than that of MODULE whose programs are in the cache. Nothing is downloaded."""
    folders = {release: _module_folder(version) for release, version in RELEASES.items()}
    return [each for each, folder in folders.items() if folder.exists() and built_already(CONTROL_PLANE, folder)]


def _build(go: str, names: Sequence[str], folder: Path, module: Path) -> None:
    packages = [f"./cmd/{name}" for name in names]
    _say(f"building {', '.join(names)}; the first time this takes up to ten minutes on two cores")
    _say("fetching the modules")
    tags, flags = _release_options(module)
    total = len(go_output(module, go, "list", "-deps", tags, *packages).splitlines())
    begin = rendered = time.monotonic()
    command = [go, "build", "-v", "-trimpath", tags, "-ldflags", flags, "-o", f"{folder}{os.sep}", *packages]
    lines: list[str] = []
    for line in _lines(command, module):
        lines.append(line)
        if time.monotonic() - rendered >= _SHOW_EVERY:
            rendered = time.monotonic()
            _say(f"{len(lines)} of at most {total} packages compiled after {rendered - begin:.0f} s")
    missing = [name for name in names if not (folder / name).exists()]
    if missing:
        raise BuildError(f"go build made no {', '.join(missing)}:\n" + "\n".join(lines[-40:]))
    _say(f"built in {time.monotonic() - begin:.0f} s")


def _release_options(module: Path) -> tuple[str, str]:
    """Return `-tags` and the value of `-ldflags`. A module without Kubernetes, such as kustomize's, has no release.

    The version is set as upstream's build sets it. Otherwise the programs call themselves v0.0.0-master.
    """
    version = _required_kubernetes(module)
    if version is None:
        return "-tags=", "-s -w"
    return (
        f"-tags={','.join(release_tags(version))}",
        f"-s -w -X k8s.io/component-base/version.gitVersion={version}",
    )


def kubernetes_version(module: Path) -> str:
    """Return the release of Kubernetes that a module requires. Raises BuildError."""
    found = _required_kubernetes(module)
    if found is None:
        raise BuildError("go.mod requires no k8s.io/kubernetes")
    return found


def _required_kubernetes(module: Path) -> str | None:
    found = re.search(r"^\tk8s\.io/kubernetes (v\S+)$", (module / "go.mod").read_text("utf-8"), re.MULTILINE)
    return None if found is None else found[1]


def release_tags(version: str) -> list[str]:
    """Return the build tags of a release: `kubernetes1.36` is set from v1.36 on, as Go sets `go1.26`."""
    minor = int(version.split(".")[1])
    return [f"kubernetes1.{each}" for each in range(_FIRST_MINOR + 1, minor + 1)]


def module_of(version: str) -> Path:
    """Return the module for a release of Kubernetes, `1.37` or `v1.37.1`: a copy of MODULE with the release's versions.

    The copy is in the cache; `go mod tidy` has completed it from the module proxy. Raises BuildError.
    """
    own = kubernetes_version(MODULE)
    version = RELEASES.get(version, version)
    if version == own:
        return MODULE
    if _RELEASE.fullmatch(version) is None:
        raise BuildError(f"{version}: not a release such as {own}, and none of {', '.join(RELEASES)}")
    go = shutil.which("go")
    if go is None:
        raise BuildError(f"{version}: there is no Go to make its module")
    folder = _module_folder(version)
    if not folder.exists():
        cache_folder().mkdir(parents=True, exist_ok=True)
        _say(f"making the module of {version}")
        with tempfile.TemporaryDirectory(dir=cache_folder()) as made:
            copy = Path(shutil.copytree(MODULE, Path(made) / "go"))
            text = (copy / "go.mod").read_text("utf-8")
            text = of_release(text, own, version, staged_modules(_release_go_mod(copy, go, version)))
            (copy / "go.mod").write_text(text, "utf-8")
            go_output(copy, go, "mod", "tidy")
            copy.rename(folder)
    return folder


def _module_folder(version: str) -> Path:
    return cache_folder() / f"module-{version}-{_sources_key()}"


def chosen_module() -> Path:
    """Return the module of the release that KINDRED_E2E_KUBERNETES names, or MODULE. Raises BuildError."""
    return module_of(os.environ.get("KINDRED_E2E_KUBERNETES") or kubernetes_version(MODULE))


def chosen_minor() -> int:
    """Return the 36 of that release, if it is 1.36. Raises BuildError."""
    return int(kubernetes_version(chosen_module()).split(".")[1])


def of_release(go_mod: str, own: str, version: str, staged: Sequence[str]) -> str:
    """Return a go.mod with another release: v1.N.P of Kubernetes, v0.N.P of the modules of its staging folder.

    Not every release has the same of them: lines of others go, and what is new is replaced, too.
    """
    lines = []
    for line in go_mod.splitlines():
        found = re.search(rf"(?<![\w.])(k8s\.io/\S+) v0{re.escape(own[2:])}\b", line)
        if found is None or found[1] in staged:
            lines.append(line.replace(f" v0{own[2:]}", f" v0{version[2:]}") if found else line)
    replaced = {line.split()[0] for line in lines if " => " in line}
    lines += [f"replace {each} => {each} v0{version[2:]}" for each in staged if each not in replaced]
    return "\n".join(lines).replace(f"k8s.io/kubernetes {own}", f"k8s.io/kubernetes {version}") + "\n"


def staged_modules(go_mod: str) -> list[str]:
    """Return the modules of the staging folder, by the go.mod of k8s.io/kubernetes itself."""
    return re.findall(r"^\s*(k8s\.io/\S+) => \./staging/", go_mod, re.MULTILINE)


def _release_go_mod(module: Path, go: str, version: str) -> str:
    described = go_output(module, go, "mod", "download", "-json", f"k8s.io/kubernetes@{version}")
    return Path(json.loads(described)["GoMod"]).read_text("utf-8")


def _sources_key() -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in MODULE.rglob("*") if path.is_file()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def go_environment() -> dict[str, str]:
    return {**os.environ, "CGO_ENABLED": "0"}


def _lines(command: Sequence[str], module: Path) -> Iterator[str]:
    """Run a command and give the lines of its stderr as they come; by its files one sees whether it succeeded."""
    with subprocess.Popen(  # noqa: S603  # our own arguments
        command, cwd=module, env=go_environment(), stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                yield line.rstrip("\n")
        finally:
            process.terminate()


def go_output(module: Path, go: str, *arguments: str) -> str:
    done = subprocess.run(  # noqa: S603  # our own arguments
        [go, *arguments], cwd=module, env=go_environment(), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise BuildError(f"go {' '.join(arguments)}:\n{done.stderr}")
    return done.stdout


def _say(text: str) -> None:
    print(f"e2e: {text}", file=sys.stderr, flush=True)  # noqa: T201  # shown while the user waits


if __name__ == "__main__":
    if sys.argv[1:] == ["--built"]:
        sys.stdout.write(f"{' '.join(other_releases())}\n")
        sys.exit()
    try:
        binaries(module=module_of(sys.argv[1]) if len(sys.argv) > 1 else chosen_module())
    except BuildError as error:
        sys.exit(str(error))
