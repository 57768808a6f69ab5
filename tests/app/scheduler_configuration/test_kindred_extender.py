"""It is known which extender of a configuration is Kindred, or why not."""

import pytest

from app.scheduler_configuration.scheduler_config import choose_extender
from tests.app.scheduler_configuration.test_scheduler_config import config


@pytest.mark.parametrize(
    ("prefixes", "prefix", "url", "chosen"),
    [
        pytest.param(["http://a"], "", "", 0, id="the only one"),
        pytest.param(["http://a", "http://kindred.x:1"], "", "", 1, id="by its name"),
        pytest.param(["http://kindred", "http://10.0.0.1:8888"], "", "http://10.0.0.1:8888/", 1, id="by the URL asked"),
        pytest.param(
            ["http://kindred", "http://a:80/x"], "", "http://a", 1, id="by the URL asked, its port understood"
        ),
        pytest.param(["http://a/x", "http://a/y"], "http://a/y", "", 1, id="by what was given"),
        pytest.param(["http://a", "http://b"], "", "", None, id="none that is called so"),
        pytest.param(["http://kindred", "http://kindred-2"], "", "", None, id="two that are called so"),
        pytest.param(["http://a"], "http://b", "", None, id="none that was given"),
        pytest.param([], "", "", None, id="none at all"),
    ],
)
def test_it_is_known_which_extender_is_kindred(prefixes: list[str], prefix: str, url: str, chosen: int | None) -> None:
    read = config("extenders: [" + ", ".join(f"{{urlPrefix: '{each}'}}" for each in prefixes) + "]")
    extender, problem = choose_extender(read, prefix, url)
    assert chosen == (extender.index if extender else None)
    assert bool(problem) == (extender is None)
