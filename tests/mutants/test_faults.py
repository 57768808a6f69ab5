"""Each fault can still be planted, even if its file has moved. `make mutants` checks that the tests find it."""

from collections import Counter
from pathlib import Path
from typing import Final

from tests.mutants.fault import first_tests, planted, sources
from tests.mutants.faults import FAULTS
from tests.mutants.trial import copied

ROOT: Final = Path(__file__).parents[2]
ALL: Final = [fault for faults in FAULTS.values() for fault in faults]


def test_every_fault_stands_in_one_place_and_leaves_valid_python() -> None:
    texts = sources(ROOT)
    for fault in ALL:
        file, text = planted(texts, fault)  # raises for a fault without a place, or with several
        compile(text, f"{file} with {fault.id}", "exec", dont_inherit=True)


def test_the_tests_of_every_fault_are_there() -> None:
    texts = sources(ROOT)
    for fault in ALL:
        assert first_tests(ROOT, texts, fault)  # raises for a missing test


def test_every_fault_changes_something_under_its_own_name_and_every_area_has_faults() -> None:
    assert [name for name, number in Counter(fault.id for fault in ALL).items() if number > 1] == []
    assert [fault.id for fault in ALL if fault.old == fault.new] == []
    assert [area for area, faults in FAULTS.items() if not faults] == []


def test_links_stay_links_in_the_copy_because_a_test_that_fails_there_alone_would_find_every_fault() -> None:
    with copied(ROOT) as tree:
        links = [file.relative_to(tree) for file in tree.rglob("*") if file.is_symlink()]
    assert len(links) > 20
    assert all((ROOT / link).is_symlink() for link in links)
