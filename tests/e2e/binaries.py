"""etcd, kube-apiserver and kube-scheduler: found, or built from their Go modules (tests/e2e/go).

Looked for as envtest does: in KUBEBUILDER_ASSETS, on PATH, and then in a cache outside of the checkout, which is filled
where something is missing. A build belongs to the module files, the programs and the Go that made it.
"""

import hashlib
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
PROGRAMS: Final = (ETCD, API_SERVER, SCHEDULER)
_SHOW_EVERY: Final = 10.0  # seconds between two lines of progress


class BuildError(RuntimeError):
    """A program is neither there nor can it be built."""


def binaries() -> Mapping[str, Path]:
    """Return program -> its file, and build what is missing, with progress on stderr. Raises BuildError."""
    found = {name: path for name in PROGRAMS if (path := _given(name)) is not None}
    missing = [name for name in PROGRAMS if name not in found]
    if missing:
        folder = _built(missing)
        found.update({name: folder / name for name in missing})
    for name in PROGRAMS:
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


def _built(names: Sequence[str]) -> Path:
    go = shutil.which("go")
    if go is None:
        raise BuildError(f"{', '.join(names)}: not found, and there is no Go to build them; set KUBEBUILDER_ASSETS")
    folder = cache_folder() / _key(go)
    needed = [name for name in names if not (folder / name).exists()]
    if needed:
        folder.mkdir(parents=True, exist_ok=True)
        # Renamed when complete: a build that was interrupted leaves nothing that looks like a program.
        with tempfile.TemporaryDirectory(dir=folder) as made:
            _build(go, needed, Path(made))
            for name in needed:
                (Path(made) / name).rename(folder / name)
    return folder


def _key(go: str) -> str:
    digest = hashlib.sha256(_output(go, "version").encode())
    for path in (MODULE / "go.mod", MODULE / "go.sum", *sorted(MODULE.glob("cmd/*/*.go"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _build(go: str, names: Sequence[str], folder: Path) -> None:
    packages = [f"./cmd/{name}" for name in names]
    _say(f"building {', '.join(names)}; the first time this takes about ten minutes on two cores")
    _say("fetching the modules")
    total = len(_output(go, "list", "-deps", *packages).splitlines())
    begin = shown = time.monotonic()
    # The release is told as upstream's build tells it: unset, the programs call themselves v0.0.0-master.
    flags = f"-s -w -X k8s.io/component-base/version.gitVersion={_kubernetes_version()}"
    command = [go, "build", "-v", "-trimpath", "-ldflags", flags, "-o", f"{folder}{os.sep}", *packages]
    lines: list[str] = []
    for line in _lines(command):
        lines.append(line)
        if time.monotonic() - shown >= _SHOW_EVERY:
            shown = time.monotonic()
            _say(f"{len(lines)} of at most {total} packages compiled after {shown - begin:.0f} s")
    missing = [name for name in names if not (folder / name).exists()]
    if missing:
        raise BuildError(f"go build made no {', '.join(missing)}:\n" + "\n".join(lines[-40:]))
    _say(f"built in {time.monotonic() - begin:.0f} s")


def _kubernetes_version() -> str:
    found = re.search(r"^\tk8s\.io/kubernetes (v\S+)$", (MODULE / "go.mod").read_text("utf-8"), re.MULTILINE)
    if found is None:
        raise BuildError("go.mod requires no k8s.io/kubernetes")
    return found[1]


def _environment() -> dict[str, str]:
    return {**os.environ, "CGO_ENABLED": "0"}


def _lines(command: Sequence[str]) -> Iterator[str]:
    """Run a command and give the lines of its stderr as they come; by its files one sees whether it succeeded."""
    with subprocess.Popen(  # noqa: S603  # our own arguments
        command, cwd=MODULE, env=_environment(), stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                yield line.rstrip("\n")
        finally:
            process.terminate()


def _output(go: str, *arguments: str) -> str:
    done = subprocess.run(  # noqa: S603  # our own arguments
        [go, *arguments], cwd=MODULE, env=_environment(), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise BuildError(f"go {' '.join(arguments)}:\n{done.stderr}")
    return done.stdout


def _say(text: str) -> None:
    print(f"e2e: {text}", file=sys.stderr, flush=True)  # noqa: T201  # shown while the user waits


if __name__ == "__main__":
    try:
        binaries()
    except BuildError as error:
        sys.exit(str(error))
