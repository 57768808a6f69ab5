"""How much of its storage a node would give (upstream scorer_test.go, with the default shape)."""

import pytest

from core.plugins.volumebinding.scoring import Storage, score_of


def storage(*claims: tuple[int, int]) -> Storage:
    made = Storage()
    for requested, capacity in claims:
        made.add(requested, capacity)
    return made


@pytest.mark.parametrize(
    ("by_class", "expected"),
    [
        pytest.param({}, 0, id="no-class"),
        pytest.param({"a": storage((0, 100))}, 100, id="nothing-asked"),
        pytest.param({"a": storage((30, 100))}, 70, id="a-share"),
        pytest.param({"a": storage((1, 3))}, 67, id="the-share-is-rounded-down"),
        pytest.param({"a": storage((100, 100))}, 0, id="everything"),
        pytest.param({"a": storage((101, 100))}, 0, id="more-than-there-is"),
        pytest.param({"a": storage((0, 0))}, 0, id="nothing-there"),
        pytest.param({"a": storage((10, 100), (30, 100))}, 80, id="claims-of-a-class-together"),
        pytest.param({"a": storage((0, 1)), "b": storage((55, 100))}, 73, id="the-mean-is-rounded-up-from-a-half"),
    ],
)
def test_the_score_is_the_mean_over_the_classes(by_class: dict[str, Storage], expected: int) -> None:
    assert score_of(by_class) == expected


def test_volumes_to_be_made_share_one_capacity() -> None:
    made = Storage()
    made.take_from(20, 100)
    made.take_from(30, 100)
    assert made.score == 50


def test_sums_overflow_as_go_s_do() -> None:
    assert storage((2**62, 2**62), (2**62, 2**62)).score == 100  # -2^63 of -2^63, which times 100 is 0
