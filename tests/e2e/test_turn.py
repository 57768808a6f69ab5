"""Which other release is the one of a day."""

from datetime import date, timedelta
from pathlib import Path

import pytest

from tests.e2e.binaries import MODULE, RELEASES, kubernetes_version
from tests.e2e.turn import PART, chosen, main, others


def test_each_release_that_is_built_has_its_turn_within_as_many_days() -> None:
    built = ["v1.34.1", "v1.35.4", "v1.37.1"]
    days = [date(2026, 11, 23) + timedelta(each) for each in range(3)]
    assert sorted(built) == sorted(str(chosen(built, day)) for day in days)


def test_without_a_release_that_is_built_none_is_chosen() -> None:
    assert chosen([], date(2026, 11, 23)) is None


def test_where_nothing_is_built_nothing_is_run_and_a_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KINDRED_E2E_CACHE", str(tmp_path))
    assert others() == []
    assert main() == 0
    assert "e2e-turn: SKIPPED" in capsys.readouterr().out
    assert [*tmp_path.iterdir()] == [], "nothing was made to find out"


def test_the_release_of_make_e2e_is_one_of_those_that_have_a_name() -> None:
    assert kubernetes_version(MODULE) in RELEASES.values()


def test_every_file_of_the_part_is_there() -> None:
    assert all(Path(__file__).with_name(name).is_file() for name in PART)
