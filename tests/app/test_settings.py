"""Settings come from the environment, flags win, and a wrong value is refused by its name."""

import pytest
from pydantic import ValidationError

from app.settings import Settings, SettingsError, load_settings


def kebab_case(part: object) -> str:
    return str(part).lower().replace("_", "-").replace(" ", "-") or "empty"


def test_nothing_set_gives_the_defaults() -> None:
    expected = {
        "host": "127.0.0.1",
        "port": 8888,
        "max_score": 100,
        "max_body_bytes": 64 * 1024 * 1024,
        "hard_pod_affinity_weight": 1,
        "ignore_preferred_terms_of_existing_pods": False,
        "log_level": "info",
    }
    assert expected == load_settings().model_dump()


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("HOST", "0.0.0.0", "0.0.0.0"),  # noqa: S104 - nothing listens
        ("PORT", "0", 0),
        ("PORT", "65535", 65535),
        ("MAX_SCORE", "1", 1),
        ("MAX_SCORE", "20", 20),
        ("MAX_BODY_BYTES", "1024", 1024),
        ("HARD_POD_AFFINITY_WEIGHT", "0", 0),
        ("HARD_POD_AFFINITY_WEIGHT", "100", 100),
        ("IGNORE_PREFERRED_TERMS_OF_EXISTING_PODS", "true", True),
        ("LOG_LEVEL", "error", "error"),
    ],
    ids=kebab_case,
)
def test_a_variable_sets_the_field_of_its_name(
    variable: str, value: str, expected: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"KINDRED_{variable}", value)
    assert load_settings().model_dump() == {**Settings().model_dump(), variable.lower(): expected}
    assert expected == getattr(load_settings(), variable.lower())


def test_a_flag_wins_over_the_environment_and_a_flag_not_given_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINDRED_PORT", "1000")
    monkeypatch.setenv("KINDRED_HOST", "localhost")
    settings = load_settings(host=None, port="2000")
    assert (settings.host, settings.port) == ("localhost", 2000)


def test_a_variable_without_the_prefix_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "1")
    assert load_settings().port == 8888


@pytest.mark.parametrize(
    ("variable", "value", "rule"),
    [
        ("PORT", "65536", "less than or equal to 65535"),
        ("PORT", "-1", "greater than or equal to 0"),
        ("PORT", "http", "valid integer"),
        ("PORT", "", "valid integer"),
        ("MAX_SCORE", "0", "greater than or equal to 1"),
        ("MAX_SCORE", "101", "less than or equal to 100"),
        ("MAX_SCORE", "1.5", "valid integer"),
        ("MAX_BODY_BYTES", "1023", "greater than or equal to 1024"),
        ("HARD_POD_AFFINITY_WEIGHT", "-1", "greater than or equal to 0"),
        ("HARD_POD_AFFINITY_WEIGHT", "101", "less than or equal to 100"),
        ("IGNORE_PREFERRED_TERMS_OF_EXISTING_PODS", "perhaps", "valid boolean"),
        ("LOG_LEVEL", "loud", "'debug', 'info', 'warning' or 'error'"),
    ],
    ids=kebab_case,
)
def test_a_wrong_value_is_refused_with_its_variable_and_the_rule(
    variable: str, value: str, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"KINDRED_{variable}", value)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert str(caught.value).startswith(f"KINDRED_{variable}={value!r}: ")
    assert rule in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_wrong_value_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINDRED_MAX_SCORE", "many")
    with pytest.raises(SettingsError, match=r"^KINDRED_PORT='99999': .*; KINDRED_MAX_SCORE='many': "):
        load_settings(port="99999")


def test_a_setting_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"^KINDRED_PROT=1: "):
        load_settings(prot=1)


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        load_settings().port = 1
