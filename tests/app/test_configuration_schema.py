"""The published JSON schema takes what the settings take, and nothing else."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from click.testing import CliRunner

from app.commands.cli import main
from app.settings.configuration import HEAD, SCHEMA_ADDRESS, configuration_schema, parse
from app.settings.settings import Settings, SettingsError, key_of

PUBLISHED = Path("docs/schemas/kindredconfiguration-v1alpha1.json")
OVERLAYS = sorted(Path("manifests/overlays").glob("*/kindred.yaml"))
SCHEMA = jsonschema_rs.validator_for(configuration_schema())


def printed(*arguments: str) -> str:
    result = CliRunner().invoke(main, ["config", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_published_schema_is_what_the_command_prints() -> None:
    assert printed("--schema") == PUBLISHED.read_text("utf-8"), "run: python -m tests.tables --write"
    assert json.loads(printed("--schema")) == configuration_schema()
    assert SCHEMA_ADDRESS.endswith(f"/{PUBLISHED.name}")


def test_every_setting_has_a_property_with_a_description() -> None:
    properties = configuration_schema()["properties"]
    assert {*HEAD, *map(key_of, Settings.model_fields)} == properties.keys()
    assert all(each["description"] for key, each in properties.items() if key not in HEAD)
    jsonschema_rs.meta.validate(configuration_schema())


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.parent.name)
def test_the_settings_of_each_overlay_have_a_head_and_are_valid(overlay: Path) -> None:
    text = overlay.read_text("utf-8")
    assert parse(text, str(overlay))
    SCHEMA.validate(yaml.safe_load(text))


def test_what_config_print_prints_is_valid() -> None:
    SCHEMA.validate(yaml.safe_load(printed()))
    SCHEMA.validate(yaml.safe_load(printed("--changed", "--health-port", "1", "--tls-client-names", "")))


@pytest.mark.parametrize(
    ("setting", "valid"),
    [
        ({"healthPort": 0}, True),
        ({"healthPort": 65536}, False),
        ({"healthPort": 8889}, True),
        ({"httpTimeout": 4}, True),
        ({"httpTimeout": 0.01}, False),
        ({"bind": True}, True),
        ({"preempt": "evict"}, True),
        ({"preempt": "on"}, False),
        ({"kubernetes": 1.36}, True),
        ({"kubernetes": "1.36"}, True),
        ({"kubernetes": "1.2"}, False),
        ({"profile": "full"}, True),
        ({"profile": ["NodeName", "NodeAffinity=2"]}, True),
        ({"profile": 7}, False),
        ({"bypassNamespaces": ["a"]}, True),
        ({"bypassNamespaces": [7]}, False),
        ({"featureGates": {"NodeDeclaredFeatures": False}}, True),
        ({"featureGates": {"NodeDeclaredFeatures": "no!"}}, False),
        ({"pluginArgs": {"NodeResourcesFit": {}}}, True),
        ({"pluginArgs": ["NodeName"]}, False),
        ({"schedulerConfig": "/a.yaml"}, True),
        ({"schedulerConfig": 7}, False),
        ({"leaderElection": ""}, False),
        ({"maxScroe": 1}, False),
    ],
    ids=str,
)
def test_the_schema_and_the_settings_agree(setting: dict[str, Any], valid: bool) -> None:  # noqa: FBT001  # a case
    document = {**HEAD, **setting}
    assert valid == SCHEMA.is_valid(document)
    try:
        Settings(**parse(yaml.safe_dump(document), "k"))
    except (SettingsError, ValueError):
        assert not valid
    else:
        assert valid


@pytest.mark.parametrize("missing", [*HEAD])
def test_a_file_without_its_head_is_not_valid(missing: str) -> None:
    head = {key: value for key, value in HEAD.items() if key != missing}
    assert not SCHEMA.is_valid(head)
    assert not SCHEMA.is_valid({**head, missing: "v1"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("profile: nope", "KINDRED_PROFILE='nope': unknown plugin nope"),
        (
            "pluginArgs: {NodeAffinity: {nope: 1}}",
            "KINDRED_PLUGIN_ARGS: NodeAffinity: object contains unknown field nope",
        ),
        ("partition: {selector: 3}", "KINDRED_PARTITION="),
        ("decide: any-node", "KINDRED_DECIDE=any-node: needs every filter of the profile full"),
    ],
)
def test_what_no_service_starts_with_is_an_error(text: str, message: str, tmp_path: Path) -> None:
    """docs/install.md has the command in front of an upgrade."""
    file = tmp_path / "kindred.yaml"
    file.write_text("".join(f"{key}: {value}\n" for key, value in HEAD.items()) + text)
    result = CliRunner().invoke(main, ["config", "--config", str(file), "--changed"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"Error: {message}")
