"""Arguments of plugins come from KINDRED_PLUGIN_ARGS or from a setting of their own, and errors name the setting."""

import json
from typing import Any

import pytest

from app.objects.plugin_args import plugin_arguments
from app.settings import Settings, SettingsError
from app.wiring.engine import create_profile


def args_of(plugin: str, **args: object) -> str:
    return json.dumps({plugin: args})


def test_wrong_args_are_an_error_of_the_setting_whether_the_plugin_is_enabled_or_not() -> None:
    settings = Settings(plugin_args=args_of("NodeResourcesFit", scoringStrategy={"type": "Random"}))
    with pytest.raises(SettingsError, match=r"^KINDRED_PLUGIN_ARGS: NodeResourcesFit\.scoringStrategy\.type: must be "):
        create_profile(settings)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, (1, False), id="neither"),
        pytest.param({"hard_pod_affinity_weight": 7}, (7, False), id="a-setting"),
        pytest.param(
            {"plugin_args": args_of("InterPodAffinity", hardPodAffinityWeight=7)}, (7, False), id="an-argument"
        ),
        pytest.param(
            {
                "plugin_args": args_of("InterPodAffinity", hardPodAffinityWeight=7),
                "ignore_preferred_terms_of_existing_pods": True,
            },
            (7, True),
            id="one-of-each",
        ),
    ],
)
def test_what_is_a_setting_too_can_be_given_either_way(given: dict[str, Any], expected: tuple[int, bool]) -> None:
    keywords = plugin_arguments(Settings(**given))["InterPodAffinity"]
    names = ("hard_pod_affinity_weight", "ignore_preferred_terms_of_existing_pods")
    assert expected == tuple(keywords[name] for name in names)


@pytest.mark.parametrize(
    ("variable", "value", "argument"),
    [
        ("HARD_POD_AFFINITY_WEIGHT", "7", {"hardPodAffinityWeight": 7}),
        (
            "IGNORE_PREFERRED_TERMS_OF_EXISTING_PODS",
            "false",
            {"ignorePreferredTermsOfExistingPods": False},
        ),
    ],
)
def test_what_is_given_by_a_setting_and_an_argument_is_an_error_even_if_they_agree(
    variable: str, value: str, argument: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"KINDRED_{variable}", value)
    monkeypatch.setenv("KINDRED_PLUGIN_ARGS", args_of("InterPodAffinity", **argument))
    with pytest.raises(SettingsError) as raised:
        create_profile(Settings())
    expected = f"KINDRED_PLUGIN_ARGS: InterPodAffinity.{next(iter(argument))}: given by KINDRED_{variable}, too"
    assert expected == str(raised.value)


def test_a_profile_that_is_none_is_an_error_of_the_setting() -> None:
    with pytest.raises(SettingsError, match=r"^KINDRED_PROFILE='NodeName=3': NodeName=3: only scores have a weight$"):
        create_profile(Settings(profile="NodeName=3"))
