"""Whatever is made from code or from measurements is the present one."""

from pathlib import Path

import pytest

from tests.tables import FILES, written


@pytest.mark.parametrize("file", FILES)
def test_what_is_made_is_the_present_one(file: str) -> None:
    assert written(file) == Path(file).read_text("utf-8"), "run: python -m tests.tables --write"
