"""Which labels a PodDisruptionBudget covers, by the rule of upstream's preemption."""

from collections.abc import Mapping
from typing import Final

import pytest

from core.objects.kinds import PodDisruptionBudget
from core.objects.labels import EVERYTHING, NOTHING, Selector, parse_selector

WEB: Final = {"app": "web", "tier": "1"}


@pytest.mark.parametrize(
    ("selector", "labels", "covered"),
    [
        pytest.param(parse_selector({"app": "web"}, []), WEB, True, id="a-label-of-it"),
        pytest.param(parse_selector(WEB, []), WEB, True, id="all-of-several-labels"),
        pytest.param(parse_selector({**WEB, "tier": "2"}, []), WEB, False, id="only-one-of-several-labels"),
        pytest.param(NOTHING, WEB, False, id="a-null-selector"),
        pytest.param(EVERYTHING, WEB, False, id="an-empty-selector"),
        pytest.param(parse_selector({}, [("app", "NotIn", ["db"])]), WEB, True, id="a-negative-selector"),
        pytest.param(parse_selector({}, [("app", "NotIn", ["db"])]), {}, False, id="no-labels"),
    ],
)
def test_a_budget_covers_what_its_selector_matches(
    selector: Selector,
    labels: Mapping[str, str],
    covered: bool,  # noqa: FBT001 - a table's column
) -> None:
    assert covered is PodDisruptionBudget("a", "one", selector).covers(labels)
