"""A flag wins over a variable, and that over the file; what is wrong is named as where it came from calls it."""

from pathlib import Path
from textwrap import dedent

import msgspec
import pytest
import yaml
from click.testing import CliRunner

from app.commands.cli import main
from app.commands.output import yaml_text
from app.settings.configuration import Configuration, flag_of, load_configuration
from app.settings.settings import Settings, SettingsError, key_of, variable_of

REMARK = "Input should be less than or equal to 100"
HEAD = "apiVersion: kindred.dev/v1alpha1\nkind: KindredConfiguration\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "kindred.yaml"


def of_file(file: Path, text: str, **flags: object) -> Configuration:
    file.write_text(HEAD + dedent(text), "utf-8")
    return load_configuration(file, flags)


def test_each_source_wins_over_the_one_before_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINDRED_PROFILE", "full")
    monkeypatch.setenv("KINDRED_HEALTH_PORT", "2")
    settings, sources, *_ = of_file(
        file, "healthPort: 1\nprofile: NodeName\nmaxScore: 10\nhttpTimeout: 4", health_port="3", max_score=None
    )
    assert (settings.profile, settings.health_port, settings.max_score, settings.http_timeout) == ("full", 3, 10, 4)
    assert {
        "profile": "KINDRED_PROFILE",
        "health_port": "--health-port",
        "max_score": f"{file}: maxScore",
        "http_timeout": f"{file}: httpTimeout",
    } == sources


def test_a_variable_names_the_file_and_a_flag_another(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(f"{HEAD}maxScore: 10")
    monkeypatch.setenv("KINDRED_CONFIG", str(file))
    assert load_configuration().settings.max_score == 10
    (other := tmp_path / "other.yaml").write_text(f"{HEAD}maxScore: 20")
    assert load_configuration(other).settings.max_score == 20


@pytest.mark.parametrize("text", ["", "# nothing\n", "healthPort: null\n"], ids=["empty", "comment", "null"])
def test_a_file_may_leave_everything_as_it_is(text: str, file: Path) -> None:
    assert Settings() == of_file(file, text).settings


def test_lists_and_json_may_be_yaml_in_the_file(file: Path) -> None:
    settings = of_file(
        file,
        """
        profile: [NodeName, NodeAffinity=2]
        bypassNamespaces: [a, b]
        pluginArgs: {NodeResourcesFit: {scoringStrategy: {type: MostAllocated}}}
        partition: '{"in": ["a"]}'
        """,
    ).settings
    assert settings.profile == "NodeName,NodeAffinity=2"
    assert settings.bypass_namespaces == ("a", "b")
    assert msgspec.json.decode(settings.plugin_args) == {
        "NodeResourcesFit": {"scoringStrategy": {"type": "MostAllocated"}}
    }
    assert settings.partition == '{"in": ["a"]}'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("maxScore: 101", f": maxScore=101: {REMARK}", id="a value"),
        pytest.param("maxScroe: 1", ": maxScroe: unknown key; did you mean maxScore?", id="a slip of the pen"),
        pytest.param("max_score: 1", ": max_score: unknown key; did you mean maxScore?", id="another spelling"),
        pytest.param("xyz: 1\nabc: 2", ": xyz: unknown key; %s: abc: unknown key", id="two keys"),
        pytest.param("1: 2", ": 1: unknown key", id="a key that is no text"),
        pytest.param("profile: {a: b}", ": profile={'a': 'b'}: Input should be a valid string", id="another type"),
        pytest.param("listen: 0.0.0.0", ": listen='0.0.0.0': Value error, expected HOST:PORT", id="address"),
        pytest.param("tlsClientNames: [a]", ": tlsClientNames=('a',): needs KINDRED_TLS_DIRECTORY", id="names"),
        pytest.param(
            "admin: 0.0.0.0:1",
            "KINDRED_ADMIN_TOKEN_FILE or KINDRED_ADMIN_READ_TOKEN_FILE",
            id="open",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_named(text: str, problem: str, file: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        of_file(file, text)
    assert problem.replace("%s", str(file)) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost"])
def test_the_loopback_needs_no_password_for_the_admin_port(host: str) -> None:
    assert load_configuration(flags={"admin": f"{host}:0"}).settings.admin == f"{host}:0"


def test_a_file_that_is_not_there_or_not_text_is_named(file: Path) -> None:
    with pytest.raises(SettingsError, match=r"No such file or directory$"):
        load_configuration(file)
    file.write_bytes(b"\xff")
    with pytest.raises(SettingsError, match=r"not UTF-8$"):
        load_configuration(file)


def test_all_that_is_wrong_is_named_by_where_it_is_from(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINDRED_HEALTH_PORT", "no")
    with pytest.raises(SettingsError) as caught:
        of_file(file, "maxScore: 101", preempt="on")
    assert [f"{file}: maxScore=101", "--preempt='on'", "KINDRED_HEALTH_PORT='no'"] == [
        problem.partition(": Input")[0] for problem in str(caught.value).split("; ")
    ]


def test_a_variable_that_looks_like_ours_and_is_none_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KINDRED_HEALTH_PRT", "KINDRED_PORT", "KINDRED_SERVICE_HOST", "KINDRED_METRICS_PORT_8888_TCP_ADDR"):
        monkeypatch.setenv(name, "1")
    assert load_configuration().unknown_variables == ("KINDRED_HEALTH_PRT; did you mean KINDRED_HEALTH_PORT?",)


def test_every_setting_is_a_key_a_variable_and_a_flag(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = {
        "tls_directory": "a",
        "admin_token_file": "f",
        "admin_read_token_file": "g",
        "scheduler_config": "h",
        "usage_prometheus_url": "https://prometheus",
        "usage_prometheus_token_file": "i",
        "usage_prometheus_ca_file": "j",
        "tls_client_names": ["e"],
    }
    expected = Settings(**changed)  # type: ignore[arg-type]  # checked by pydantic
    values = {name: getattr(expected, name) for name in Settings.model_fields}
    texts = {name: ",".join(v) if isinstance(v, tuple) else str(v) for name, v in values.items() if v is not None}
    texts["kubernetes"], texts["feature_gates"] = "1.36", "NodeDeclaredFeatures=false,PodLevelResources=true"
    gates = {"NodeDeclaredFeatures": False, "PodLevelResources": True}
    texts["health_port"] = "5"
    ports = {"health_port": 5}
    expected = expected.model_copy(update={"kubernetes": "1.36", "feature_gates": gates, **ports})
    typed = {key_of(name): getattr(expected, name) for name in texts}
    file.write_text(
        HEAD + yaml_text({key: str(each) if isinstance(each, Path) else each for key, each in typed.items()})
    )
    assert expected == load_configuration(file).settings
    assert expected == load_configuration(flags=texts).settings
    result = CliRunner().invoke(
        main, ["config", "-o", "json", *(f"{flag_of(name)}={text}" for name, text in texts.items())]
    )
    reported = msgspec.json.decode(result.stdout)
    assert {key_of(name): flag_of(name) for name in texts} == {key: entry["source"] for key, entry in reported.items()}
    for name, text in texts.items():
        monkeypatch.setenv(variable_of(name), text)
    assert expected == load_configuration().settings


def test_what_is_printed_can_be_given_back(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINDRED_PLUGIN_ARGS", '{"NodeName": {}}')
    file.write_text(f"{HEAD}maxScore: 20\nbypassNamespaces: [a]\n")
    printed = CliRunner().invoke(main, ["config", "--config", str(file), "--health-port", "0"]).stdout
    assert f"maxScore: 20  # {file}: maxScore\n" in printed
    assert "healthPort: 0  # --health-port\n" in printed
    assert 'pluginArgs: "{\\"NodeName\\": {}}"  # KINDRED_PLUGIN_ARGS\n' in printed
    assert 'listen: "127.0.0.1:8888"  # default\n' in printed
    (again := tmp_path / "again.yaml").write_text(printed)
    assert load_configuration(file, {"health_port": "0"}).settings == load_configuration(again).settings


def test_settings_are_printed_as_a_table_of_80_columns(file: Path) -> None:
    file.write_text(f"{HEAD}maxScore: 20\n")
    result = CliRunner().invoke(main, ["config", "--config", str(file), "-o", "table"])
    head, *lines = result.stdout.splitlines()
    assert head.split() == ["SETTING", "VALUE", "SOURCE"]
    assert max(map(len, lines)) <= 80
    assert ["listen", '"127.0.0.1:8888"', "default"] in [line.split() for line in lines]
    wide = CliRunner().invoke(main, ["config", "--config", str(file), "-o", "wide"]).stdout
    assert ["maxScore", "20", f"{file}:", "maxScore"] in [line.split() for line in wide.splitlines()]


def test_wrong_types_ranges_and_other_sources_are_named_together(file: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        of_file(file, "featureGates: {NodeDeclaredFeatures: 7}\nmaxScore: 101", preempt="on")
    assert [f"{file}: featureGates.NodeDeclaredFeatures=7", f"{file}: maxScore=101", "--preempt='on'"] == [
        problem.partition(": Input")[0] for problem in str(caught.value).split("; ")
    ]


def test_only_settings_that_differ_from_their_defaults_are_printed_on_request(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KINDRED_HTTP_TIMEOUT", "5.0")
    file.write_text(f"{HEAD}maxScore: 20\nlisten: 127.0.0.1:8888\n")
    arguments = ["config", "--config", str(file), "--changed", "--health-port", "7"]
    printed = CliRunner().invoke(main, arguments).stdout
    assert yaml.safe_load(printed) == {**yaml.safe_load(HEAD), "maxScore": 20, "healthPort": 7}
    as_json = msgspec.json.decode(CliRunner().invoke(main, [*arguments, "-o", "json"]).stdout)
    assert as_json.keys() == {"maxScore", "healthPort"}


def test_config_print_ends_with_2_where_anything_is_wrong(file: Path) -> None:
    file.write_text(f"{HEAD}maxScore: 101")
    result = CliRunner().invoke(main, ["config", "--config", str(file)])
    assert result.exit_code == 2
    assert result.stderr == f"Error: {file}: maxScore=101: {REMARK}\n"


def test_the_example_of_the_page_is_a_file_of_settings(file: Path) -> None:
    page = Path("docs/configuration.md").read_text("utf-8")
    example = page.partition("```yaml\n")[2].partition("```")[0]
    file.write_text(example)
    configuration = load_configuration(file)
    assert yaml.safe_load(example).keys() - {"apiVersion", "kind"} == {key_of(name) for name in configuration.sources}


@pytest.mark.parametrize("written", ["1.36", "'1.36'"])
def test_a_release_may_stand_in_the_file_with_and_without_quotes(file: Path, written: str) -> None:
    gates = "featureGates: {NodeDeclaredFeatures: false}"
    settings = of_file(file, f"kubernetes: {written}\n{gates}").settings
    assert (settings.kubernetes, settings.feature_gates) == ("1.36", {"NodeDeclaredFeatures": False})


def test_feature_gates_are_printed_as_the_file_has_them(file: Path) -> None:
    file.write_text(f"{HEAD}featureGates: {{NodeDeclaredFeatures: false}}")
    printed = CliRunner().invoke(main, ["config", "--config", str(file)]).stdout
    file.write_text(printed)
    assert load_configuration(file).settings.feature_gates == {"NodeDeclaredFeatures": False}
