"""The types of settings. A password in a URL is an error, and no output has it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml
from click.testing import CliRunner

from app.commands.cli import main
from app.settings.configuration import HEAD, flag_of, load_configuration
from app.settings.settings import Settings, SettingsError, is_quoted, key_of, variable_of
from app.wiring.main import create_service
from core.mirror.cluster import ClusterMirror
from tests.app.asgi import ask

PASSWORD: Final = "s3cr3t-7f3a"  # noqa: S105  # of a test
URLS: Final = tuple(name for name in Settings.model_fields if not is_quoted(name))
"""Every setting whose value errors do not repeat, found by its type."""
WITH_A_PASSWORD: Final = (
    f"https://user:{PASSWORD}@host:9090",
    f"https://{PASSWORD}@host",
    f"https://user:{PASSWORD}@[::1]:9090/base",
    f"https://user:9/{PASSWORD}@host",
    f"https://user:9?{PASSWORD}@host",
    f"https://user:9#{PASSWORD}@host",
    f"https://user%3A{PASSWORD}%40host",
    f"https://user:{PASSWORD}",
    f"https://host?token={PASSWORD}",
    f"https://host#{PASSWORD}",
    f"https:user:{PASSWORD}@host",
    f"user:{PASSWORD}@host",
    f"ftp://user:{PASSWORD}@host",
    f"https://user:{PASSWORD}@ho\u2100st",
    f"https://[{PASSWORD}",
    f"https:\\\\user:{PASSWORD}@host",
    f"https://host/ {PASSWORD}",
    f"https://host\n{PASSWORD}",
)
each_setting = pytest.mark.parametrize("name", URLS)
each_url = pytest.mark.parametrize(
    "url", WITH_A_PASSWORD, ids=[str(number) for number, _ in enumerate(WITH_A_PASSWORD)]
)


def test_every_setting_with_a_url_has_the_type_that_refuses_a_password() -> None:
    named = {name for name in Settings.model_fields if re.search("url|endpoint|address|server", name)}
    reported = {name for name, field in Settings.model_fields.items() if re.search(r"\bURL\b", field.description or "")}
    assert set(URLS) >= named | reported
    assert URLS


@pytest.mark.parametrize(
    "url", ["collector:4318", "ftp://collector", "http://", "http://[", "http://a:port", "http://a:0", "http:///path"]
)
@each_setting
def test_what_is_no_url_of_a_server_is_refused(name: str, url: str) -> None:
    with pytest.raises(SettingsError) as rejected:
        load_configuration(flags={name: url})
    assert str(rejected.value) == f"{flag_of(name)}: Value error, expected a URL such as https://HOST:PORT"


def errors(name: str, value: object, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str]]:
    """Yield the name of the setting in each source, and the error of a value from there."""
    file = folder / "kindred.yaml"
    file.write_text(yaml.safe_dump({**HEAD, key_of(name): value}))
    with pytest.raises(SettingsError) as rejected:
        load_configuration(file)
    yield f"{file}: {key_of(name)}", str(rejected.value)
    with pytest.raises(SettingsError) as rejected:
        load_configuration(flags={name: value})
    yield flag_of(name), str(rejected.value)
    if isinstance(value, str) and "\n" not in value:
        with monkeypatch.context() as patch:
            patch.setenv(variable_of(name), value)
            with pytest.raises(SettingsError) as rejected:
                load_configuration()
        yield variable_of(name), str(rejected.value)
    with pytest.raises(ValueError, match=name) as invalid:  # a program that makes settings by itself
        Settings.model_validate({name: value})
    yield name, str(invalid.value)


@each_url
@each_setting
def test_a_password_in_a_url_is_refused_without_being_printed(
    name: str, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for where, error in errors(name, url, tmp_path, monkeypatch):
        assert where in error
        assert PASSWORD not in error


@pytest.mark.parametrize(
    "value",
    [[f"https://u:{PASSWORD}@h"], {"url": f"https://u:{PASSWORD}@h"}, {f"https://u:{PASSWORD}@h": 1}],
    ids=["list", "object", "key"],
)
@each_setting
def test_a_value_of_another_type_is_refused_without_being_printed(
    name: str, value: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for where, error in errors(name, value, tmp_path, monkeypatch):
        assert where in error
        assert PASSWORD not in error


@pytest.mark.parametrize("tag", ["!!int", "!!float", "!!timestamp", "!!binary", "!!set", "!mine"])
@each_setting
def test_a_value_that_does_not_fit_its_yaml_tag_is_not_printed(name: str, tag: str, tmp_path: Path) -> None:
    file = tmp_path / "kindred.yaml"
    file.write_text(yaml.safe_dump(HEAD) + f"{key_of(name)}: {tag} 'https://u:{PASSWORD}@h'\n")
    with pytest.raises(SettingsError) as rejected:
        load_configuration(file)
    assert PASSWORD not in str(rejected.value)


def outputs(name: str, url: str, folder: Path) -> Iterator[str]:
    """Yield all that commands write about a setting from each source."""
    file = folder / "kindred.yaml"
    file.write_text(yaml.safe_dump({**HEAD, key_of(name): url}))
    for command in (
        *(["config", "-o", form] for form in ("yaml", "json", "table")),
        ["config", "--changed"],
        ["serve", "--demo", "--listen", "127.0.0.1:0"],
        ["doctor", "--url", "http://127.0.0.1:1"],
    ):
        for arguments, environment in (
            (["--config", str(file)], {}),
            ([], {variable_of(name): url}),
            *([([flag_of(name), url], {})] if command[0] != "doctor" else []),
        ):
            result = CliRunner().invoke(main, [*command, *arguments], env=environment)
            assert result.exit_code == 2
            assert result.exception is None or isinstance(result.exception, SystemExit)
            yield result.output


@each_setting
def test_no_command_prints_a_password_and_none_goes_on_with_it(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for output in outputs(name, WITH_A_PASSWORD[0], tmp_path):
        assert "a URL must have no user and no password" in output
        assert PASSWORD not in output
    assert PASSWORD not in caplog.text


@pytest.mark.parametrize("token", ["admin", "reader"])
@each_setting
def test_what_the_admin_port_tells_of_a_setting_has_no_password(name: str, token: str, tmp_path: Path) -> None:
    files = {each: tmp_path / each for each in ("admin", "reader")}
    for file in files.values():
        file.write_text(file.name)
    proofs = {"admin": "127.0.0.1:0", "admin_token_file": files["admin"], "admin_read_token_file": files["reader"]}
    settings = Settings.model_validate({**proofs, name: "https://host:1"})
    admin = create_service(settings, ClusterMirror(), None, {name: flag_of(name)}).admin
    assert admin is not None
    reported = ask(admin, "GET", "/debug/config", headers={"Authorization": f"Bearer {token}"})
    assert reported.json()[key_of(name)] == {"value": "https://host:1", "source": flag_of(name)}
    for url in WITH_A_PASSWORD:
        with pytest.raises(ValueError, match=name):  # so no service has one to tell
            Settings.model_validate({name: url})
