"""The command: `python -m tests.e2e.turn` runs a part of the end-to-end tests beside another release than `make e2e`.

The release changes with the day of the year, among those whose programs are in the cache already: building them takes
ten minutes. Where there are none, nothing is run, and a line says so.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from tests.e2e.binaries import MODULE, RELEASES, control_plane_is_built, kubernetes_version

PART: Final = (
    "test_release_scores.py",
    "test_score_offload.py",
    "test_chart.py",
    "test_scheduling_group_cases.py",
    "test_scheduling_group_permit.py",
)
"""What differs most by release: scores, the configuration of kube-scheduler, what the API server admits, and groups."""


def others() -> Sequence[str]:
    """Return the releases other than that of `make e2e` whose programs are built."""
    own = kubernetes_version(MODULE)
    return [version for version in RELEASES.values() if version != own and control_plane_is_built(version)]


def chosen(built: Sequence[str], day: date) -> str | None:
    """Return the release of a day. None if none is built."""
    return built[day.timetuple().tm_yday % len(built)] if built else None


def main() -> int:
    """Run the part, and return the exit status of pytest; 0 where no release is built."""
    version = chosen(others(), datetime.now(UTC).date())
    if version is None:
        print(  # noqa: T201  # shown to who runs the gate
            "e2e-turn: SKIPPED, because the programs of no other release are built; "
            f"`KINDRED_E2E_KUBERNETES={[*RELEASES][-1]} make e2e` builds some"
        )
        return 0
    print(f"e2e-turn: beside {version}", flush=True)  # noqa: T201  # shown to who runs the gate
    files = [str(Path(__file__).with_name(name)) for name in PART]
    environment = {**os.environ, "KINDRED_E2E_KUBERNETES": version}
    return subprocess.run([sys.executable, "-m", "pytest", *files], env=environment, check=False).returncode  # noqa: S603  # our own


if __name__ == "__main__":
    sys.exit(main())
