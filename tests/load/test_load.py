"""The load as a separate process, at a small size, because locust patches the process that imports it."""

import json
import subprocess
import sys
from pathlib import Path

from tests.http_server import Handler, http_server

ROOT = Path(__file__).parents[2]


def load(*arguments: str) -> tuple[int, str]:
    """Run the load as a user does. Return the status and the output."""
    command = [sys.executable, "-m", "tests.load", "--nodes", "30", "--pods", "300", *arguments]
    done = subprocess.run(  # noqa: S603 - our own program
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.returncode, done.stdout


class Garbage(Handler):
    """Returns the same wrong response to every request: fields of ExtenderFilterResult are missing."""

    def respond(self) -> None:
        self.body()
        self.reply(200, b'{"NodeNames":["node-00001"]}')


def test_schedulers_get_right_responses_while_the_api_server_fails_and_certificates_are_replaced(
    tmp_path: Path,
) -> None:
    report = tmp_path / "soak.json"
    options = ("--faults", "--fault-gap", "0.5", "--tls", "--churn-rate", "100", "--sheds-allowed")
    status, printed = load("--seconds", "6", "--check-every", "1", *options, "--report", str(report))
    assert status == 0, printed
    for name in ("NodeNamesUser filter", "NodeNamesUser prioritize", "WholeNodesUser filter"):
        assert name in printed
    found = json.loads(report.read_text())
    assert found["requests"] > 0
    assert (found["failures"], found["problems"]) == (0, [])
    assert found["faults"]["all"] > 0
    assert found["pod_events"] > 0


def test_wrong_responses_make_it_fail_and_are_reported() -> None:
    with http_server(Garbage) as port:
        status, printed = load("--host", f"http://127.0.0.1:{port}", "--seconds", "1")
    assert status == 1, printed
    assert "100.00 % of the requests failed." in printed
    assert "no ExtenderFilterResult: Object missing required field" in printed
