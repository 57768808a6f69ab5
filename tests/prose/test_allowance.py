"""The ratchet: numbers that may only fall."""

import pytest

from tests.prose import allowance
from tests.prose.findings import Finding, Rule

FOUND = [Finding("core/mirror/topology.py", line, Rule.WORDS, "...") for line in (1, 2)]


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        pytest.param({"core/mirror": {"words": 2}}, [], id="as-many"),
        pytest.param({"core/mirror": {"words": 3}}, [], id="fewer"),
        pytest.param({"core/mirror": {"words": 1}}, [("core/mirror", Rule.WORDS)], id="more"),
        pytest.param({"core/mirror": {"length": 5}}, [("core/mirror", Rule.WORDS)], id="none-allowed"),
    ],
)
def test_an_area_with_more_findings_than_allowed_fails(
    allowed: allowance.Allowance, expected: list[tuple[str, Rule]]
) -> None:
    assert allowance.exceeded(allowed, FOUND) == expected


def test_writing_lowers_a_number_and_never_raises_one() -> None:
    allowed = {"core/mirror": {"words": 5, "length": 1}, "core/gangs": {"words": 1}}
    assert allowance.lowered(allowed, FOUND) == {"core/mirror": {"words": 2}}
    assert allowance.lowered({"core/mirror": {"words": 1}}, FOUND) == {"core/mirror": {"words": 1}}


def test_a_module_counts_in_its_package_and_a_page_by_itself() -> None:
    assert [FOUND[0].area, Finding("docs/run.md", 1, Rule.LENGTH, "").area] == ["core/mirror", "docs/run.md"]
