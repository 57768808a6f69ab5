"""Records the calls of upstream's unit tests to plugins: the tests run on a copy of the plugins that records each call.

The package of each plugin is copied from the module of Kubernetes. A call of `tables.Record` is inserted at the head of
its extension points (tests/e2e/go/tables). The calls are kept in the cache of the programs, and are not committed.
"""

import hashlib
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from tests.e2e.binaries import MODULE, BuildError, cache_folder, go_environment, go_output, module_of

PACKAGES: Final = (
    *("defaultpreemption", "dynamicresources", "imagelocality", "interpodaffinity", "nodeaffinity"),
    *("nodedeclaredfeatures", "nodename", "nodeports", "noderesources", "nodeunschedulable", "nodevolumelimits"),
    *("podtopologyspread", "tainttoleration", "volumebinding", "volumerestrictions", "volumezone"),
)
"""Below pkg/scheduler/framework/plugins. A release may lack one."""
_ALLOCATOR: Final = "k8s.io/dynamic-resource-allocation/structured/internal"
_ALLOCATE: Final = re.compile(r"^func \(a \*Allocator\) Allocate\(ctx context\.Context, node .*\{$", re.MULTILINE)
_POINT: Final = re.compile(
    r"^func \((?P<receiver>\w+) \*?\w+\) (?:PreFilter|Filter|PreScore|Score|SelectVictimsOnNode)\("
    r"(?P<parameters>[^{]*?)\) (?:\([^{]*\)|\*fwk\.Status) \{$",
    re.MULTILINE,
)
_PARAMETER: Final = re.compile(
    r"(\w+)\s+(\*v1\.Pod|fwk\.NodeInfo|\[\]fwk\.NodeInfo|\[\]\*policy\.PodDisruptionBudget)\b"
)


def instrumented(source: str, package: str) -> str:
    """Return the source of a plugin with a call of Record at the head of each extension point."""

    def recording(found: re.Match[str]) -> str:
        # A parameter without a name is unused. The others are recorded.
        given = [name for name, _ in _PARAMETER.findall(found["parameters"]) if name != "_"]
        pod = next(name for name, kind in _PARAMETER.findall(found["parameters"]) if kind == "*v1.Pod")
        others = "".join(f", {name}" for name in given if name != pod)
        return f'{found[0]} tables.Record({found["receiver"]}, "{package}", {pod}{others})'

    changed = _POINT.sub(recording, source)
    if changed == source:
        return source
    return changed.replace("import (", 'import (\n\t"kindred.test/e2e/tables"', 1)


def allocator(source: str) -> str:
    """Return a file of the allocator of DynamicResources as it is in the copy, with a call of RecordAllocation."""
    copied = source.replace(f'"{_ALLOCATOR}', '"kindred.test/e2e/tables/structured')
    if "allSlices" not in source:  # another file, or a release whose allocator has other fields
        return copied
    changed = _ALLOCATE.sub(r"\g<0> tables.RecordAllocation(a, node, claims)", copied)
    return changed if changed == copied else changed.replace("import (", 'import (\n\t"kindred.test/e2e/tables"', 1)


def recorded(version: str) -> Path:
    """Return the file of the calls of a release, such as v1.37.1. It takes ten minutes if no cache has it.

    Raises BuildError.
    """
    module = module_of(version)
    file = cache_folder() / f"calls-{version}-{_key()}.jsonl"
    if not file.exists():
        with tempfile.TemporaryDirectory(dir=cache_folder()) as made:
            copy = Path(shutil.copytree(module, Path(made) / "go"))
            calls = Path(made) / "calls.jsonl"
            _run_tests(copy, version, calls)
            calls.rename(file)
    return file


def _key() -> str:
    """Return the cache key of a recording. It does not depend on other programs."""
    digest = hashlib.sha256()
    for file in (MODULE / "go.mod", *sorted((MODULE / "tables").glob("*.go")), Path(__file__)):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _run_tests(module: Path, version: str, calls: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise BuildError("there is no Go to run upstream's tests")
    described = json.loads(go_output(module, go, "mod", "download", "-json", f"k8s.io/kubernetes@{version}"))
    plugins = Path(described["Dir"]) / "pkg" / "scheduler" / "framework" / "plugins"
    for package in PACKAGES:
        if (plugins / package).exists():
            _copy(plugins / package, module / "tables" / package, partial(instrumented, package=package))
    described = json.loads(go_output(module, go, "mod", "download", "-json", _ALLOCATOR.split("/structured")[0]))
    for folder in ("", "allocatortesting", "incubating"):
        _copy(
            Path(described["Dir"]) / "structured" / "internal" / folder,
            module / "tables" / "structured" / folder,
            allocator,
        )
    shutil.rmtree(module / "cmd")
    go_output(module, go, "mod", "tidy")
    command = [go, "test", "-vet=off", "-p=1", "-count=1", "./tables/..."]
    done = subprocess.run(  # noqa: S603  # our own arguments
        command,
        cwd=module,
        env={**go_environment(), "KINDRED_TABLES": str(calls)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:  # the tests after the failure did not run
        raise BuildError(f"{' '.join(command)}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")


def _copy(package: Path, into: Path, change: Callable[[str], str]) -> None:
    into.mkdir(parents=True, exist_ok=True)
    for file in package.glob("*.go"):
        text = file.read_text("utf-8")
        is_test = file.name.endswith("_test.go") and "incubating" not in package.parts
        (into / file.name).write_text(text if is_test else change(text), "utf-8")
