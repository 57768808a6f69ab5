"""The doctor has no complaint about what is shipped, and the page about it shows what it prints."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from app.commands.doctor import rbac_checks, release_checks
from app.commands.doctor.command import doctor_command
from app.commands.doctor.examination import REGISTRATION_CHECKS
from app.commands.doctor.service_checks import CHECKS, CHECKS_OF_KINDRED

SCHEDULER = Path("manifests/scheduler")
OVERLAYS = Path("manifests/overlays")
BROKEN = "docs/examples/broken-scheduler.yaml"
PAGE = Path("docs/doctor.md")
CONFIGURATIONS = sorted(path.stem for path in SCHEDULER.glob("*.yaml") if (OVERLAYS / path.stem).is_dir())


def doctor(*arguments: str) -> Result:
    return CliRunner().invoke(doctor_command, arguments)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_what_is_shipped_together_is_right(name: str) -> None:
    scheduler, kindred = SCHEDULER / f"{name}.yaml", OVERLAYS / name / "kindred.yaml"
    result = doctor("--scheduler-config", str(scheduler), "--config", str(kindred), "--strict")
    assert result.exit_code == 0, result.output
    assert "\n0 errors, 0 warnings, " in result.stdout


def test_there_is_one_of_each() -> None:
    assert CONFIGURATIONS == ["decide", "full-offload", "score-offload"]


def test_the_page_shows_how_the_report_of_the_broken_configuration_begins_and_ends() -> None:
    result = doctor("--scheduler-config", BROKEN)
    assert result.exit_code == 1
    (shown,) = re.findall(
        rf"^```console\n\$ kindred doctor --scheduler-config {BROKEN}\n(.*?)^```$",
        PAGE.read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    begin, end = shown.split("...\n")
    assert begin == result.stdout[: len(begin)]
    assert end == result.stdout[-len(end) :]


def test_the_page_has_a_row_for_every_check() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \|", PAGE.read_text("utf-8"), re.MULTILINE)
    of_reading = ["wrong-kind", "unknown-field", "wrong-type", "bad-duration", "duplicate-field", "several-documents",
                  "which-extender"]  # fmt: skip
    of_registrations = [check.id for check in REGISTRATION_CHECKS]
    of_services = [check.id for check in (*CHECKS, *CHECKS_OF_KINDRED)]
    of_cluster = [rbac_checks.CHECK, release_checks.CHECK, release_checks.GATES_CHECK]
    assert rows == [*of_reading, *of_registrations, *of_services, *of_cluster]


def test_what_findings_refer_to_is_there() -> None:
    checks = [each.reference for each in REGISTRATION_CHECKS]
    references = {*checks, *(each.reference for each in (*CHECKS, *CHECKS_OF_KINDRED))}
    pages = {reference.partition(",")[0] for reference in references if reference.partition(",")[0].endswith(".md")}
    assert [page for page in sorted(pages) if not Path(page).is_file()] == []
    for page, _, heading in (reference.partition(", ") for reference in references if ".md, " in reference):
        assert re.search(rf"^#+ {re.escape(heading)}$", Path(page).read_text("utf-8"), re.MULTILINE), heading
