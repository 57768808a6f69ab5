"""The terminal pictures of the docs."""

import pytest

from tests.site.terminal_pictures import COMMANDS, THEMES, path_of, picture


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_committed_picture_is_the_newest_and_loads_nothing(name: str, theme: str) -> None:
    expected = picture(name, theme)
    assert expected == path_of(name, theme).read_text("utf-8"), "run: python -m tests.site.terminal_pictures"
    assert "url(http" not in expected
