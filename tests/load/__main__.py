"""Simulated schedulers against a service of its own, which follows a fake API server: `make load`.

Fails where too many answers are wrong (--max-failures), and where the mirror is not as the cluster is in the end. With
--host it is any running service that is asked. What is no option of this program is locust's, or of our locustfile:
`python -m locust -f tests/load/locustfile.py --help` lists them; names of classes of users choose among these.
"""

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Final

from tests.bench.live import FakeApi, Kindred, fake_api, kindred, machine, say

ROOT: Final = Path(__file__).parents[2]
LOCUSTFILE: Final = Path(__file__).with_name("locustfile.py")
KEPT_REPORT: Final = ROOT / "docs" / "bench" / "load.html"
_SPAWN_RATE: Final = 100  # users a second
_PATIENCE: Final = 10  # seconds for the last answers, and again until locust is killed
_SETTLED_WITHIN: Final = 30.0  # seconds until the last events are in the mirror


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; 1 if locust says so, or if the mirror is wrong in the end."""
    options, others = _options(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)
    command = _command(options, others)
    if options.host:
        return _run([*command, "--host", options.host])
    say(f"{machine()}; the fake API server, Kindred and locust share them")
    say(f"Starting on a cluster of {options.nodes:,} nodes and {options.pods:,} pods ...")
    with fake_api(options.nodes, options.pods) as api, kindred(api) as service:
        service.wait_until_ready()
        status = _run([*command, "--host", service.url, "--fake-api", api.url])
        faults = _faults(api, service)
        say(f"{api.stats()['churn_events']:,} pod events meanwhile")
    say("\n".join(faults) or "The mirror and a fresh list of the cluster are the same.")
    return 1 if status or faults else 0


def _command(options: argparse.Namespace, others: Sequence[str]) -> list[str]:
    command = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--headless", "--only-summary"]
    command += ["--nodes", str(options.nodes), "--pods", str(options.pods)]
    command += ["--users", str(options.users), "--spawn-rate", str(_SPAWN_RATE)]
    command += ["--run-time", f"{options.seconds}s", "--stop-timeout", str(_PATIENCE)]
    report = options.html or (None if options.host else KEPT_REPORT)
    return [*command, *(["--html", str(report)] if report else []), *others]


def _run(command: Sequence[str]) -> int:
    """Run locust and return its exit status. Whatever ends this program ends it first.

    In a process group of its own it gets one signal: of the two that Ctrl-C would make, the second disturbs its end.
    """
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0) as process:  # noqa: S603 - our own program
        try:
            return process.wait()
        finally:
            process.terminate()
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()


def _faults(api: FakeApi, service: Kindred) -> list[str]:
    """Compare the mirror with the cluster, until they are the same or do not become so."""
    api.quiet()
    deadline = time.monotonic() + _SETTLED_WITHIN
    while (faults := service.differences()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return faults


def _end(number: int, _: FrameType | None) -> None:
    """End by leaving all `with` blocks, which end the processes; a second signal must not keep them from that."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    sys.exit(128 + number)


def _options(arguments: Sequence[str] | None) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__, allow_abbrev=False)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument(
        "--users", type=int, default=4, help="one changes pods; of the others two of three ask with names"
    )
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--host", default="", metavar="URL", help="a running service to ask, instead of one of its own")
    help_text = f"report  [default: {KEPT_REPORT.relative_to(ROOT)}, none with --host]"
    parser.add_argument("--html", type=Path, metavar="FILE", help=help_text)
    return parser.parse_known_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
