"""What cel-go answers to selectors of devices: `python -m tests.upstream.selectors` records it for each release.

The package k8s.io/dynamic-resource-allocation/cel of a release is copied, with selectors_test.go in it. Its own test
answers the rows of upstream's table (compile_test.go), and the expressions of selectors.json for each device there.
The answers are in selectors-RELEASE.json. Needs Go and the module proxy; a minute for each release.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.e2e.binaries import RELEASES, BuildError, go_environment, go_output, module_of

HERE: Final = Path(__file__).parent
CONSUMABLE_SINCE: Final = "1.36"
"""The first release with DRAConsumableCapacity on by default."""


def queries_of_all() -> dict[str, Any]:
    """Return the expressions and the devices that every release is asked about."""
    read: dict[str, Any] = json.loads((HERE / "selectors.json").read_text("utf-8"))
    return read


def file_of(release: str) -> Path:
    """Return the file of a release, such as 1.37."""
    return HERE / f"selectors-{release}.json"


def recorded(release: str) -> dict[str, Any]:
    """Return the rows of upstream's table, and the results of each expression: a letter for each device.

    t and f: it matches or not. c: it does not compile. r: an error at run time. x: the limit of cost.
    """
    every = queries_of_all()
    queries = [{"name": "", "expression": each, "devices": every["devices"]} for each in every["expressions"]]
    responses = responses_of(release, queries)
    rows = [each for each in responses if each["name"]]
    results = {each["expression"]: letters(each) for each in responses if not each["name"]}
    return {"rows": rows, "results": results}


def letters(response: dict[str, Any]) -> str:
    """Return a letter for each result."""
    return "".join({"cost": "x"}.get(each, each[0]) for each in response["results"])


def responses_of(release: str, queries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of the table, and the queries, with `results`. Raises BuildError."""
    module = module_of(release)
    go = shutil.which("go")
    if go is None:
        raise BuildError("there is no Go to run upstream's package")
    name = "k8s.io/dynamic-resource-allocation"
    source = go_output(module, go, "list", "-m", "-f", "{{.Dir}}", name).strip()
    with tempfile.TemporaryDirectory() as made:
        copy = Path(shutil.copytree(module, Path(made) / "go"))
        package = Path(shutil.copytree(Path(source) / "cel", copy / "selectors"))
        package.chmod(0o755)
        shutil.rmtree(copy / "cmd")
        shutil.copy(HERE / "selectors_test.go", package)
        request_file, results = Path(made) / "queries", Path(made) / "results"
        request_file.write_text("".join(f"{json.dumps(each)}\n" for each in queries), "utf-8")
        go_output(copy, go, "mod", "tidy")
        variables = {"KINDRED_QUERIES": str(request_file), "KINDRED_ANSWERS": str(results)}
        if float(release) >= float(CONSUMABLE_SINCE):
            variables["KINDRED_CONSUMABLE"] = "yes"
        done = subprocess.run(  # noqa: S603  # our own arguments
            [go, "test", "-vet=off", "-p=1", "-count=1", "-run=^TestAnswer$", "./selectors"],
            cwd=copy,
            env={**os.environ, **go_environment(), **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BuildError(f"{done.stdout[-4000:]}{done.stderr[-4000:]}")
        return [json.loads(line) for line in results.read_text("utf-8").splitlines()]


def encoded(found: dict[str, Any]) -> str:
    """Return the text of a file, with a line for each row and each expression."""
    rows = ",\n".join(json.dumps(each, ensure_ascii=False) for each in found["rows"])
    results = ",\n".join(
        f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(each)}" for name, each in found["results"].items()
    )
    return f'{{"rows": [\n{rows}\n],\n"results": {{\n{results}\n}}}}\n'


if __name__ == "__main__":
    for need in sys.argv[1:] or RELEASES:
        file_of(need).write_text(encoded(recorded(need)), "utf-8")
