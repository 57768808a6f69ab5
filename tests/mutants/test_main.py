"""The options of the program."""

import pytest

from tests.mutants.__main__ import main


def test_a_list_names_the_faults_that_are_chosen_and_tries_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--only", "queue-takes-*"]) == 0
    assert capsys.readouterr().out.split()[:2] == ["verbs", "queue-takes-one-more"]


def test_an_area_stands_for_its_faults(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--only", "doctor"]) == 0
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines()} == {"doctor"}


def test_a_pattern_that_nothing_matches_is_an_error() -> None:
    with pytest.raises(SystemExit, match="no fault matches nothing-such"):
        main(["--only", "nothing-such"])
