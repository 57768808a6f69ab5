"""What a demo adds to the page: an admin port that nobody asked for, where only this machine can reach it."""

import pytest

from app.commands.serve import samples, with_page
from app.process.json_text import decode
from app.settings.configuration import Configuration
from app.settings.settings import Settings


def configured(**settings: object) -> Configuration:
    return Configuration(Settings.model_validate(settings), dict.fromkeys(settings, "here"), ())


@pytest.mark.parametrize(
    ("settings", "port"),
    [
        pytest.param({}, 8890, id="beside-the-usual-port"),
        pytest.param({"listen": "127.0.0.1:9000"}, 9002, id="beside-another-port"),
        pytest.param({"listen": "127.0.0.1:0"}, 0, id="any"),
        pytest.param({"listen": "127.0.0.1:65534"}, 0, id="no-port-left"),
        pytest.param({"listen": "localhost:8888"}, 8890, id="localhost"),
    ],
)
def test_a_demo_has_its_page_beside_the_port_of_schedulers(settings: dict[str, object], port: int) -> None:
    found = with_page(configured(**settings))
    assert (f"127.0.0.1:{port}", "--demo") == (found.settings.admin, found.sources["admin"])


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"admin": "127.0.0.1:7000"}, id="a-port-of-ones-own"),
        pytest.param({"admin": ""}, id="none-wanted"),
        pytest.param({"listen": "0.0.0.0:8888"}, id="others-can-reach-it"),
    ],
)
def test_what_was_said_of_the_admin_port_holds_and_no_page_is_opened_to_others(settings: dict[str, object]) -> None:
    assert configured(**settings) == with_page(configured(**settings))


def test_the_samples_are_the_pods_of_the_requests_of_the_demo() -> None:
    found = {each.name: decode(bytes(each.pod))["metadata"]["name"] for each in samples()}
    assert found == {
        "required-affinity": "pod-podaffinity-required",
        "required-anti-affinity": "pod-podantiaffinity-required",
        "target": "pod-podaffinity-target",
        "web": "web-2kr5hxrdc4-btm4c",
    }
