"""`kindred doctor`: which inputs it takes together, what it prints, and how it ends."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from app.commands.doctor.command import doctor_command
from app.commands.doctor.examination import OTHER_CHECKS, REGISTRATION_CHECKS
from app.settings.configuration import HEAD
from tests.app.api_server.client_setting import write_kubeconfig
from tests.app.commands.doctor.registrations import BESIDE, FULL_OFFLOAD, SCORE_OFFLOAD
from tests.app.serving import ANY_PORT, kindred


def doctor(*arguments: str | Path) -> Result:
    return CliRunner().invoke(doctor_command, [str(argument) for argument in arguments])


def report(*arguments: str | Path) -> dict[str, Any]:
    result = doctor(*arguments, "--output", "json")
    assert result.exit_code != 2, result.stderr
    loaded: dict[str, Any] = json.loads(result.stdout)
    return loaded


def written(folder: Path, document: object, name: str = "scheduler.yaml") -> Path:
    (folder / name).write_text(yaml.safe_dump(document))
    return folder / name


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """Write settings of Kindred that are right for a score offload."""
    return written(tmp_path, {**HEAD, "maxScore": 20}, "kindred.yaml")


def test_it_ends_with_0_where_nothing_is_wrong(tmp_path: Path, settings: Path) -> None:
    result = doctor("--scheduler-config", written(tmp_path, SCORE_OFFLOAD), "--config", settings, "--strict")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.endswith("\n0 errors, 0 warnings, 0 to know, 6 checks not made\n")


def test_it_ends_with_1_where_there_is_an_error(tmp_path: Path, settings: Path) -> None:
    wrong = written(tmp_path, {**SCORE_OFFLOAD, "extenders": []})
    result = doctor("--scheduler-config", wrong, "--config", settings)
    assert result.exit_code == 1
    assert "Errors\n  which-extender  extenders\n    there is no extender: " in result.stdout


def test_it_ends_with_1_for_warnings_where_they_count(tmp_path: Path) -> None:
    document = written(tmp_path, SCORE_OFFLOAD)
    assert doctor("--scheduler-config", document).exit_code == 0
    result = doctor("--scheduler-config", document, "--strict")
    assert result.exit_code == 1
    assert result.stdout.endswith("\n0 errors, 1 warning, 0 to know, 7 checks not made\n")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param([], "Give --scheduler-config FILE, --url URL, --kubeconfig FILE", id="nothing"),
        pytest.param(["--scheduler-config", "absent.yaml"], "absent.yaml: No such file or directory", id="no file"),
        pytest.param(["--scheduler-config", "README.md"], "README.md: no YAML: ", id="no configuration"),
        pytest.param(["--url", "http://kindred", "--config", "absent"], "absent: No such file", id="no settings"),
        pytest.param(["--kubeconfig", "absent"], "absent", id="no kubeconfig"),
        pytest.param(["--kubeconfig", "x", "--service-account", "x"], "expected NAMESPACE/NAME", id="no account"),
    ],
)
def test_bad_input_ends_with_2_and_a_line_that_says_it(arguments: list[str], told: str) -> None:
    result = doctor(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr.splitlines()[-1]


def test_json_has_every_field(tmp_path: Path, settings: Path) -> None:
    told = report("--scheduler-config", written(tmp_path, FULL_OFFLOAD), "--config", settings)
    assert {"inputs", "findings", "skipped", "summary"} == set(told)
    for finding in told["findings"]:
        assert {"id", "severity", "where", "message", "fix", "reference"} == set(finding)
    assert told["summary"] == {"errors": 2, "warnings": 0, "infos": 1, "skipped": 6}
    assert [finding["severity"] for finding in told["findings"]] == ["error", "error", "info"]
    assert {"settings", "scheduler configuration", "extender"} == set(told["inputs"])


def test_yaml_is_the_same_report_and_wide_text_has_each_sentence_on_one_line(tmp_path: Path) -> None:
    given = ("--scheduler-config", written(tmp_path, FULL_OFFLOAD))
    assert yaml.safe_load(doctor(*given, "-o", "yaml").stdout) == report(*given)
    wide = doctor(*given, "-o", "wide").stdout.splitlines()
    messages = [finding["message"] for finding in report(*given)["findings"]]
    assert max(map(len, messages)) > 80
    assert {f"    {message}" for message in messages} <= set(wide)


def test_checks_that_were_not_made_are_counted(tmp_path: Path) -> None:
    document = written(tmp_path, BESIDE)
    counted = doctor("--scheduler-config", document).stdout.partition("Not checked\n")[2]
    assert counted.startswith("  without Kindred's settings: --config FILE: 1 check\n  without --url URL: 3 checks\n")
    assert "service-" not in counted


def test_checks_that_lack_an_input_are_named_with_it(tmp_path: Path) -> None:
    needs = {each["id"]: each["needs"] for each in report("--scheduler-config", written(tmp_path, BESIDE))["skipped"]}
    assert {"--url URL"} == {needs.pop(check) for check in OTHER_CHECKS[:3]}
    assert needs.pop("rbac") == "--kubeconfig FILE or --context NAME"
    assert needs.pop("kubernetes-release") == "--kubeconfig FILE or --context NAME"
    assert needs.pop("feature-gates") == "--scheduler-feature-gates TEXT"
    assert list(needs) == ["tls-of-kindred"]


def test_without_settings_the_defaults_are_said_to_be_assumed(tmp_path: Path) -> None:
    told = report("--scheduler-config", written(tmp_path, SCORE_OFFLOAD))
    assert told["inputs"]["settings"] == "the defaults, because none were given"
    assert [finding["id"] for finding in told["findings"]] == ["weight-balance"]


def test_a_running_service_is_looked_at(tmp_path: Path, settings: Path) -> None:
    document = written(tmp_path, SCORE_OFFLOAD)
    with kindred(tmp_path, "serve", "--demo", *ANY_PORT) as service:
        told = report("--scheduler-config", document, "--url", service.url, "--config", settings)
    assert service.url == told["inputs"]["service"]
    assert [finding["id"] for finding in told["findings"]] == []
    assert [each["id"] for each in told["skipped"]] == ["rbac", "kubernetes-release", "feature-gates"]


def test_a_service_that_is_not_there_is_an_error_and_the_rest_is_looked_at() -> None:
    told = report("--url", "http://127.0.0.1:1")
    assert [finding["id"] for finding in told["findings"]] == ["service-reachable"]
    needs = {each["id"]: each["needs"] for each in told["skipped"]}
    assert {"a Kindred that responds at --url"} == {needs[check] for check in OTHER_CHECKS[1:3]}
    assert {"--scheduler-config FILE"} == {needs[check.id] for check in REGISTRATION_CHECKS}


def test_an_api_server_that_is_not_there_leaves_rights_and_release_unchecked(tmp_path: Path) -> None:
    told = report("--kubeconfig", write_kubeconfig(tmp_path / "config", "http://127.0.0.1:1"))
    needs = {each["id"]: each["needs"] for each in told["skipped"]}
    for check in ("rbac", "kubernetes-release"):
        assert needs[check].startswith("a response of the API server: ")
    assert told["findings"] == []


SCHEDULER = Path("manifests/scheduler")
OVERLAYS = Path("manifests/overlays")
BROKEN = "docs/examples/broken-scheduler.yaml"
PAGE = Path("docs/doctor.md")
CONFIGURATIONS = sorted(path.stem for path in SCHEDULER.glob("*.yaml") if (OVERLAYS / path.stem).is_dir())


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_what_is_shipped_together_is_right(name: str) -> None:
    scheduler, kindred = SCHEDULER / f"{name}.yaml", OVERLAYS / name / "kindred.yaml"
    result = doctor("--scheduler-config", str(scheduler), "--config", str(kindred), "--strict")
    assert result.exit_code == 0, result.output
    assert "\n0 errors, 0 warnings, " in result.stdout


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
    assert rows == ["which-extender", *(check.id for check in REGISTRATION_CHECKS), *OTHER_CHECKS]


def test_what_findings_refer_to_is_there() -> None:
    references = {each.reference for each in REGISTRATION_CHECKS}
    pages = {reference.partition(",")[0] for reference in references if reference.partition(",")[0].endswith(".md")}
    assert [page for page in sorted(pages) if not Path(page).is_file()] == []
    for page, _, heading in (reference.partition(", ") for reference in references if ".md, " in reference):
        assert re.search(rf"^#+ {re.escape(heading)}$", Path(page).read_text("utf-8"), re.MULTILINE), heading
