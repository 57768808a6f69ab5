"""Raw scores over a small cluster, each rule a row, and their normalisation."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from core.plugins.interpodaffinity.plugin import normalized


@settings(deadline=None)
@given(st.lists(st.integers(-(10**6), 10**6), min_size=1))
def test_normalisation_is_what_go_computes(raw: list[int]) -> None:
    lowest, highest = min(raw), max(raw)
    expected = [int(100.0 * ((score - lowest) / (highest - lowest))) if highest > lowest else 0 for score in raw]
    assert expected == normalized(np.array(raw, np.int64)).tolist()


def test_normalisation_leaves_the_raw_scores_as_they_were() -> None:
    raw = np.array([1, 2, 3], np.int64)
    normalized(raw)
    assert raw.tolist() == [1, 2, 3]
