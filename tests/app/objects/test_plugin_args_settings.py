"""Arguments of plugins come from KINDRED_PLUGIN_ARGS, and errors name the setting."""

import json

import pytest

from app.settings import Settings, SettingsError
from app.wiring.engine import create_profile


def args_of(plugin: str, **args: object) -> str:
    return json.dumps({plugin: args})


def test_wrong_args_are_an_error_of_the_setting_whether_the_plugin_is_enabled_or_not() -> None:
    settings = Settings(plugin_args=args_of("NodeResourcesFit", scoringStrategy={"type": "Random"}))
    with pytest.raises(SettingsError, match=r"^KINDRED_PLUGIN_ARGS: NodeResourcesFit\.scoringStrategy\.type: must be "):
        create_profile(settings)


def test_a_profile_that_is_none_is_an_error_of_the_setting() -> None:
    with pytest.raises(SettingsError, match=r"^KINDRED_PROFILE='NodeName=3': NodeName=3: only scores have a weight$"):
        create_profile(Settings(profile="NodeName=3"))
