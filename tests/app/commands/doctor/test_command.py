"""`kindred doctor`: which inputs it takes together, what it prints, and how it ends."""

import copy
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from app.commands.doctor.command import doctor_command
from app.commands.doctor.examination import OTHER_CHECKS, REGISTRATION_CHECKS
from app.settings.configuration import HEAD
from tests.app.api_server.client_setting import write_kubeconfig
from tests.app.commands.doctor.registrations import DECIDE, FULL_OFFLOAD, NEXT_TO, SCORE_OFFLOAD
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
    document = written(tmp_path, {**FULL_OFFLOAD, "extenders": [{**FULL_OFFLOAD["extenders"][0], "preemptVerb": ""}]})
    assert doctor("--scheduler-config", document).exit_code == 0
    result = doctor("--scheduler-config", document, "--strict")
    assert result.exit_code == 1
    assert result.stdout.endswith("\n0 errors, 1 warning, 0 to know, 13 checks not made\n")


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        pytest.param([], "Give --scheduler-config FILE, --url URL, --kubeconfig FILE", id="nothing"),
        pytest.param(["--scheduler-config", "absent.yaml"], "absent.yaml: No such file or directory", id="no file"),
        pytest.param(["--scheduler-config", "README.md"], "README.md: no YAML: ", id="no configuration"),
        pytest.param(["--url", "http://kindred", "--config", "absent"], "absent: No such file", id="no settings"),
        pytest.param(["--kubeconfig", "absent"], "absent", id="no kubeconfig"),
        pytest.param(["--kubeconfig", "x", "--service-account", "x"], "expected NAMESPACE/NAME", id="no account"),
    ],
)
def test_bad_input_ends_with_2_and_a_line_that_says_it(arguments: list[str], reported: str) -> None:
    result = doctor(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert reported in result.stderr.splitlines()[-1]


def test_json_has_every_field(tmp_path: Path, settings: Path) -> None:
    reported = report("--scheduler-config", written(tmp_path, DECIDE), "--config", settings)
    assert {"inputs", "findings", "skipped", "summary"} == set(reported)
    (finding,) = reported["findings"]
    assert {"id", "severity", "where", "message", "fix", "reference"} == set(finding)
    assert reported["summary"] == {"errors": 1, "warnings": 0, "infos": 0, "skipped": 12}
    assert {"settings", "scheduler configuration", "extender"} == set(reported["inputs"])


def test_yaml_is_the_same_report_and_wide_text_has_each_sentence_on_one_line(tmp_path: Path) -> None:
    given = ("--scheduler-config", written(tmp_path, {**FULL_OFFLOAD, "percentageOfNodesToScore": 0}))
    assert yaml.safe_load(doctor(*given, "-o", "yaml").stdout) == report(*given)
    wide = doctor(*given, "-o", "wide").stdout.splitlines()
    messages = [finding["message"] for finding in report(*given)["findings"]]
    assert max(map(len, messages)) > 80
    assert {f"    {message}" for message in messages} <= set(wide)


def test_checks_that_were_not_made_are_counted(tmp_path: Path) -> None:
    document = written(tmp_path, NEXT_TO)
    counted = doctor("--scheduler-config", document).stdout.partition("Not checked\n")[2]
    assert counted.startswith("  without --url URL: 3 checks\n  without Kindred's settings: --config FILE: 7 checks\n")
    assert "service-" not in counted


def test_checks_that_lack_an_input_are_named_with_it(tmp_path: Path) -> None:
    needs = {each["id"]: each["needs"] for each in report("--scheduler-config", written(tmp_path, NEXT_TO))["skipped"]}
    assert {"--url URL"} == {needs.pop(check) for check in OTHER_CHECKS[:3]}
    assert needs.pop("rbac") == "--kubeconfig FILE or --context NAME"
    assert needs.pop("kubernetes-release") == "--kubeconfig FILE or --context NAME"
    assert needs.pop("feature-gates") == "--scheduler-feature-gates TEXT"
    assert list(needs) == [each.id for each in REGISTRATION_CHECKS if each.needs_settings]


def test_without_settings_those_that_the_configuration_implies_are_assumed(tmp_path: Path) -> None:
    reported = report("--scheduler-config", written(tmp_path, SCORE_OFFLOAD))
    assert reported["inputs"]["settings"] == "none given: those that the configuration implies"
    assert reported["findings"] == []


def test_a_variable_for_the_log_is_no_settings_of_kindred_and_one_for_the_verbs_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KINDRED_LOG_LEVEL", "debug")
    document = written(tmp_path, DECIDE)
    assert report("--scheduler-config", document)["findings"] == []
    monkeypatch.setenv("KINDRED_BIND", "true")
    assert [each["id"] for each in report("--scheduler-config", document)["findings"]] == ["other-registration"]
    monkeypatch.delenv("KINDRED_BIND")
    monkeypatch.setenv("KINDRED_CONFIG", str(written(tmp_path, {**HEAD, "logLevel": "info"}, "kindred.yaml")))
    assert [each["id"] for each in report("--scheduler-config", document)["findings"]] == ["other-registration"]


@pytest.mark.parametrize("left_in", ["NodeAffinity", "VolumeBinding"])
def test_decide_is_recognised_though_a_filter_is_left_in(tmp_path: Path, left_in: str) -> None:
    document = copy.deepcopy(DECIDE)
    document["profiles"][0]["plugins"]["multiPoint"]["enabled"].append({"name": left_in})
    reported = report("--scheduler-config", written(tmp_path, document))
    ids = [finding["id"] for finding in reported["findings"]]
    assert ids == ["decide-filters", "decide-preemption"], "which has no other filter for its dry run"


def test_all_scores_of_kindred_are_recognised_and_one_that_comes_twice_is_found(tmp_path: Path) -> None:
    disabled = [{"name": name} for name in ("TaintToleration", "PodTopologySpread", "InterPodAffinity")]
    off = {"disabled": disabled}
    one, other = ({"schedulerName": name, "plugins": {"preScore": off, "score": off}} for name in ("a", "b"))
    assert report("--scheduler-config", written(tmp_path, {**SCORE_OFFLOAD, "profiles": [one]}))["findings"] == []
    other["plugins"] = {"preScore": {"disabled": disabled[1:]}, "score": {"disabled": disabled[1:]}}
    (finding,) = report("--scheduler-config", written(tmp_path, {**SCORE_OFFLOAD, "profiles": [one, other]}))[
        "findings"
    ]
    assert (finding["id"], "profile b: TaintToleration" in finding["message"]) == ("score-once", True)


def test_a_running_service_is_looked_at(tmp_path: Path, settings: Path) -> None:
    document = written(tmp_path, SCORE_OFFLOAD)
    with kindred(tmp_path, "serve", "--demo", *ANY_PORT) as service:
        reported = report("--scheduler-config", document, "--url", service.url, "--config", settings)
    assert service.url == reported["inputs"]["service"]
    assert [finding["id"] for finding in reported["findings"]] == []
    assert [each["id"] for each in reported["skipped"]] == ["rbac", "kubernetes-release", "feature-gates"]


def test_a_service_that_is_not_there_is_an_error_and_the_rest_is_looked_at() -> None:
    reported = report("--url", "http://127.0.0.1:1")
    assert [finding["id"] for finding in reported["findings"]] == ["service-reachable"]
    needs = {each["id"]: each["needs"] for each in reported["skipped"]}
    assert {"a Kindred that responds at --url"} == {needs[check] for check in OTHER_CHECKS[1:3]}
    assert {"--scheduler-config FILE"} == {needs[check.id] for check in REGISTRATION_CHECKS}


def test_an_api_server_that_is_not_there_is_an_error_once(tmp_path: Path) -> None:
    reported = report("--kubeconfig", write_kubeconfig(tmp_path / "config", "http://127.0.0.1:1"))
    assert [(each["id"], each["severity"]) for each in reported["findings"]] == [("rbac", "error")]
    assert "Connection refused" in reported["findings"][0]["message"]
    needs = {each["id"]: each["needs"] for each in reported["skipped"]}
    assert needs["kubernetes-release"].startswith("a response of the API server: ")


SCHEDULER = Path("manifests/scheduler")
OVERLAYS = Path("manifests/overlays")
SHIPPED = [
    *sorted(SCHEDULER.glob("*.yaml")),
    *sorted(OVERLAYS.glob("*/scheduler.yaml")),
    Path("manifests/second-scheduler/scheduler.yaml"),
]
BROKEN = "docs/examples/broken-scheduler.yaml"
PAGE = Path("docs/doctor.md")
CONFIGURATIONS = sorted(path.stem for path in SCHEDULER.glob("*.yaml") if (OVERLAYS / path.stem).is_dir())


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_what_is_shipped_together_is_right(name: str) -> None:
    scheduler, kindred = SCHEDULER / f"{name}.yaml", OVERLAYS / name / "kindred.yaml"
    result = doctor("--scheduler-config", str(scheduler), "--config", str(kindred), "--strict")
    assert result.exit_code == 0, result.output
    assert "\n0 errors, 0 warnings, " in result.stdout


@pytest.mark.parametrize("file", SHIPPED, ids=str)
def test_of_each_shipped_configuration_nothing_is_said_without_settings(file: Path) -> None:
    reported = report("--scheduler-config", file)
    assert (reported["findings"], len(SHIPPED)) == ([], 5)


@pytest.mark.parametrize("file", CONFIGURATIONS)
@pytest.mark.parametrize("settings", CONFIGURATIONS)
def test_settings_of_another_registration_are_one_finding(file: str, settings: str) -> None:
    reported = report(
        "--scheduler-config", SCHEDULER / f"{file}.yaml", "--config", OVERLAYS / settings / "kindred.yaml"
    )
    ids = [finding["id"] for finding in reported["findings"]]
    assert ids == ([] if file == settings else ["other-registration"])


COMMANDS = [
    command.split()
    for page in [Path("README.md"), *sorted(Path("docs").glob("*.md"))]
    for command in re.findall(r"kindred doctor (--[^`\n]*)", page.read_text("utf-8").replace("\\\n", ""))
    if "--scheduler-config" in command
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_every_command_line_of_the_docs_says_nothing_of_what_is_shipped(name: str, command: list[str]) -> None:
    files = {"--scheduler-config": SCHEDULER / f"{name}.yaml", "--config": OVERLAYS / name / "kindred.yaml"}
    given = [files.get(option, value) for option, value in pairwise(["", *command])]
    assert report(*given)["findings"] == []
    assert len(COMMANDS) > 4


def test_the_page_has_a_row_for_every_check() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert rows == ["which-extender", *(check.id for check in REGISTRATION_CHECKS), *OTHER_CHECKS]


def test_what_findings_refer_to_is_there() -> None:
    references = {each.reference for each in REGISTRATION_CHECKS}
    pages = {reference.partition(",")[0] for reference in references if reference.partition(",")[0].endswith(".md")}
    assert [page for page in sorted(pages) if not Path(page).is_file()] == []
    for page, _, heading in (reference.partition(", ") for reference in references if ".md, " in reference):
        assert re.search(rf"^#+ {re.escape(heading)}$", Path(page).read_text("utf-8"), re.MULTILINE), heading
