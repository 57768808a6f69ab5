"""Each table that is made from code or from measurements is the present one."""

from pathlib import Path

import pytest

from tests.tables import PAGES, written


@pytest.mark.parametrize("page", PAGES)
def test_the_tables_of_a_page_are_the_present_ones(page: str) -> None:
    assert written(page) == Path(page).read_text("utf-8"), "run: python -m tests.tables --write"
