"""Simulated schedulers against a new service, which follows a fake API server: `make load`.

It fails if too many responses are wrong (--max-failures), if the mirror differs from the cluster at the end, or if the
memory has grown. With --host it uses any running service. Other options belong to locust or to the locustfile:
`python -m locust -f tests/load/locustfile.py --help` lists them. Names of user classes select among the classes.
"""

import argparse
import json
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, Final

from tests.bench.live import fake_api, machine, say
from tests.load.trial import Trial

LOCUSTFILE: Final = Path(__file__).with_name("locustfile.py")
_SOAK: Final = "--seconds=600 --faults --tls --churn-rate=200 --sheds-allowed --report=docs/bench/soak.json"
"""What `--soak` stands for. Options beside it win."""
_SPAWN_RATE: Final = 100  # users a second
_PATIENCE: Final = 10  # seconds for the last responses, and again until locust is killed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the load. Return 1 if locust fails, or if a check at the end fails."""
    options, others = _options(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)
    command = _command(options, others)
    if options.host:
        return _run([*command, "--host", options.host, "--churn-rate", str(options.churn_rate)])
    say(f"{machine()}; the fake API server, Kindred and locust share them")
    say(f"Starting on a cluster of {options.nodes:,} nodes and {options.pods:,} pods ...")
    with TemporaryDirectory() as folder, fake_api(options.nodes, options.pods) as api:
        trial = Trial(options, api, Path(folder))
        with trial.service() as service:
            with trial.troubled(service):
                status = _run([*command, *trial.locust_options(service)])
            problems = trial.problems(service)
            _tell(options, trial.report(problems))
    say("\n".join(problems) or "The mirror and a fresh list of the cluster are the same.")
    return 1 if status or problems else 0


def _tell(options: argparse.Namespace, report: Mapping[str, Any]) -> None:
    say(f"{report['pod_events']:,} pod events meanwhile; resident memory, MB: {report['rss_mb']}")
    if options.faults:
        say(f"Faults of the API server: {report['faults']}")
    if options.tls:
        say(f"Certificates: {report['rotations']} new ones")
    if options.report:
        options.report.write_text(json.dumps(report, indent=2) + "\n", "utf-8")


def _command(options: argparse.Namespace, others: Sequence[str]) -> list[str]:
    command = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--headless", "--only-summary"]
    command += ["--nodes", str(options.nodes), "--pods", str(options.pods)]
    command += ["--users", str(options.users), "--spawn-rate", str(_SPAWN_RATE)]
    return [*command, "--run-time", f"{options.seconds}s", "--stop-timeout", str(_PATIENCE), *others]


def _run(command: Sequence[str]) -> int:
    """Run locust and return its exit status. If this program ends, it ends locust first.

    locust has its own process group, so it gets one signal. Ctrl-C would send two, and the second disturbs its end.
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


def _end(number: int, _: FrameType | None) -> None:
    """End by leaving all `with` blocks, which end the processes. A second signal must not interrupt this."""
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
    parser.add_argument("--churn-rate", type=float, default=1_000.0, help="pod events a second, 0 for none")
    parser.add_argument("--faults", action="store_true", help="let things go wrong at the API server meanwhile")
    parser.add_argument("--fault-gap", type=float, default=5.0, metavar="SECONDS", help="between two, on average")
    parser.add_argument("--seed", type=int, default=1, help="of the faults")
    parser.add_argument("--tls", action="store_true", help="TLS, with client certificates; the server's is replaced")
    parser.add_argument("--soak", action="store_true", help=f"the same as {_SOAK}")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the numbers there, as JSON")
    given = sys.argv[1:] if arguments is None else [*arguments]
    return parser.parse_known_args([*_SOAK.split(), *given] if "--soak" in given else given)


if __name__ == "__main__":
    sys.exit(main())
