"""Each fault can still be planted, even if its file has moved. `make mutants` checks that the tests find it."""

from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from tests.mutants.fault import Fault, MisplacedFaultError, first_tests, plant, planted, sources
from tests.mutants.faults import FAULTS

ROOT: Final = Path(__file__).parents[2]
ALL: Final = [fault for faults in FAULTS.values() for fault in faults]


def test_every_fault_stands_in_one_place_and_leaves_valid_python() -> None:
    texts = sources(ROOT)
    for fault in ALL:
        file, text = planted(texts, fault)  # raises for a fault without a place, or with several
        compile(text, f"{file} with {fault.id}", "exec", dont_inherit=True)


def test_the_tests_of_every_fault_are_there() -> None:
    for fault in ALL:
        assert first_tests(ROOT, fault)  # raises for a missing test


def test_no_two_faults_have_the_same_id() -> None:
    assert [name for name, number in Counter(fault.id for fault in ALL).items() if number > 1] == []


def test_no_fault_is_the_text_that_it_replaces() -> None:
    assert [fault.id for fault in ALL if fault.old == fault.new] == []


def test_every_area_has_faults() -> None:
    assert [area for area, faults in FAULTS.items() if not faults] == []


@pytest.mark.parametrize("text", ["limit = 2\n", "limit = 1\nmost = 1\n"], ids=["absent", "ambiguous"])
def test_a_fault_that_has_no_place_of_its_own_is_named(tmp_path: Path, text: str) -> None:
    _tree(tmp_path, text)
    with pytest.raises(MisplacedFaultError, match="off-by-one: its text has to be there once"):
        plant(tmp_path, _fault("= 1"))


def test_a_planted_fault_changes_its_text_alone(tmp_path: Path) -> None:
    file = _tree(tmp_path, "limit = 1\nmost = 2\n")
    plant(tmp_path, _fault("limit = 1"))
    assert file.read_text("utf-8") == "limit = 0\nmost = 2\n"


def test_tests_are_found_where_they_have_moved_to_and_not_among_those_of_tools(tmp_path: Path) -> None:
    for place in ("tests/app/server", "tests/load"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "test_limits.py").touch()
    assert first_tests(tmp_path, _fault("limit = 1")) == ["tests/app/server/test_limits.py"]


def test_a_test_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(MisplacedFaultError, match=r"its test test_limits\.py is not there"):
        first_tests(tmp_path, _fault("limit = 1"))


def _fault(old: str) -> Fault:
    return Fault(id="off-by-one", breaks="A limit.", old=old, new="limit = 0", tests=("test_limits.py",))


def _tree(root: Path, text: str) -> Path:
    for package in ("app", "core"):
        (root / package).mkdir()
    file = root / "core" / "limits.py"
    file.write_text(text, "utf-8")
    return file
