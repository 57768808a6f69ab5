"""Requests that schemathesis makes up from the OpenAPI description: all kinds of them, and answers as it says."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.depth import tries
from tests.robustness.watched import REQUESTS, watched

EXAMPLES: Final = tries(default=15, full=50)  # of each operation, besides all edge cases
NO_REJECTIONS: Final = "negative_data_rejection"  # the verbs answer bad requests with status 200
RULES_BEYOND_SCHEMAS: Final = "positive_data_acceptance"  # such as: a node only with a class
PATIENCE: Final = "1200"  # seconds: a loss in 100 orders takes 5 s of CPU, of what the tests beside it leave idle
ONE_METHOD_A_ROUTE: Final = "allow_header_conformance"  # Starlette names the methods of the first route of a path


def schemathesis(folder: Path, url: str, excluded_checks: str) -> tuple[int, str]:
    """Run it as a person does; give the exit status and what it printed."""
    command = ["-m", "schemathesis.cli", "run", f"{url}/openapi.json", "--phases", "examples,coverage,fuzzing"]
    options = ["--mode", "all", "--max-examples", str(EXAMPLES), "--generation-deterministic", "--no-color"]
    options += ["--request-timeout", PATIENCE]
    done = subprocess.run(  # noqa: S603 - our own arguments
        [sys.executable, *command, *options, "--exclude-checks", excluded_checks],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("port", "excluded_checks"),
    [
        pytest.param("extender", NO_REJECTIONS, id="extender"),
        pytest.param("admin", f"{RULES_BEYOND_SCHEMAS},{ONE_METHOD_A_ROUTE}", id="admin"),
    ],
)
def test_whatever_the_description_allows_or_forbids_is_answered_as_it_says(
    port: str, excluded_checks: str, tmp_path: Path
) -> None:
    with watched(tmp_path) as service:
        question = (REQUESTS / "web.json").read_bytes()
        before = httpx.post(f"{service.url}/prioritize", content=question).content
        url = service.admin_url if port == "admin" else service.url
        status, printed = schemathesis(tmp_path, url, excluded_checks)
        assert status == 0, printed
        assert " generated" in printed
        assert before == httpx.post(f"{service.url}/prioritize", content=question).content
        service.assert_unharmed()
