"""The command: `python -m release.audit` holds the locked packages against a database of known vulnerabilities.

Exit status 0 where none is known, 1 where one is, 3 where no database was reached or it did not know a package: then
nothing is said of the packages.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
# The first has the packages of all other locks but the tools of the site and of a release.
LOCKS: Final = ("requirements-dev.lock", "requirements-docs.lock", "requirements-release.lock")
SERVICES: Final = ("osv", "pypi")
CLEAN, VULNERABLE, UNKNOWN = 0, 1, 3


class UnreachableError(Exception):
    """A database did not say anything of the packages; the message says why."""


def audited(tools: Path, lock: Path, service: str) -> list[str]:
    """Return the known vulnerabilities of the packages of a lock. Raises UnreachableError."""
    command = [
        str(tools / "pip-audit"),
        "--vulnerability-service",
        service,
        "--format",
        "json",
        "--progress-spinner",
        "off",
    ]
    done = subprocess.run(  # noqa: S603  # our own arguments
        [*command, "--disable-pip", "--no-deps", "--requirement", str(lock)],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        report = json.loads(done.stdout)
    except ValueError:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise UnreachableError(last) from None
    return found(report["dependencies"])


def found(dependencies: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each vulnerability. Raises UnreachableError if a package was skipped."""
    skipped = [each["name"] for each in dependencies if "skip_reason" in each]
    if skipped:
        raise UnreachableError(
            f"{len(skipped)} of {len(dependencies)} packages are not known to it, such as {skipped[0]}"
        )
    if not dependencies:
        raise UnreachableError("it was asked about no package")
    return [
        f"{each['name']} {each['version']}: {problem['id']}, fixed in {', '.join(problem['fix_versions']) or 'none'}"
        for each in dependencies
        for problem in each["vulns"]
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is known, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m release.audit", description=__doc__)
    parser.add_argument("--tools", type=Path, required=True, help="the folder with pip-audit")
    tools = parser.parse_args(arguments).tools.absolute()
    problems: list[str] = []
    for lock in LOCKS:
        failures = []
        for service in SERVICES:
            try:
                problems += [f"{lock}: {line}" for line in audited(tools, ROOT / lock, service)]
                print(f"audit: {lock}: held against {service}")
                break
            except UnreachableError as error:
                failures.append(f"{service}: {error}")
        else:
            print(f"audit: {lock}: NOT AUDITED. " + "; ".join(failures), file=sys.stderr)
            return UNKNOWN
    for line in problems:
        print(line)
    return VULNERABLE if problems else CLEAN


if __name__ == "__main__":
    sys.exit(main())
