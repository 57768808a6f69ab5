"""Which nodes meet what a pod requires of its node, and what is told of broken preferred terms."""

import pytest

from core.objects.affinity import (
    NO_NODE_AFFINITY,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PreferredTerm,
    parse_node_selector,
    selector_from_set,
)
from core.objects.labels import EVERYTHING

SSD = selector_from_set({"disk": "ssd"})
IN_A = parse_node_selector([([("zone", "In", ["a"])], ())])
IS_N1 = parse_node_selector([((), [("metadata.name", "In", ["n1"])])])
BROKEN = NodeSelectorTerm(errors=("broken",))


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        pytest.param(NO_NODE_AFFINITY, True, id="nothing-asked"),
        pytest.param(NodeAffinity(SSD), True, id="selector"),
        pytest.param(NodeAffinity(selector_from_set({"disk": "ssd", "gpu": "yes"})), False, id="a-label-too-many"),
        pytest.param(NodeAffinity(selector_from_set({"disk": ""})), False, id="other-value"),
        pytest.param(NodeAffinity(required=IN_A), True, id="required"),
        pytest.param(NodeAffinity(SSD, IN_A), True, id="both"),
        pytest.param(NodeAffinity(selector_from_set({"disk": "hdd"}), IN_A), False, id="only-required"),
        pytest.param(
            NodeAffinity(SSD, parse_node_selector([([("zone", "In", ["b"])], ())])), False, id="only-selector"
        ),
        pytest.param(NodeAffinity(required=IS_N1), True, id="name"),
        pytest.param(
            NodeAffinity(required=parse_node_selector([((), [("metadata.name", "NotIn", ["n1"])])])),
            False,
            id="other-name",
        ),
        pytest.param(NodeAffinity(required=NodeSelector()), False, id="required-without-terms"),
        pytest.param(NodeAffinity(required=NodeSelector((BROKEN,))), False, id="broken-term"),
        pytest.param(NodeAffinity(required=NodeSelector((BROKEN, *IN_A.terms))), True, id="broken-term-and-one-met"),
        pytest.param(NodeAffinity(preferred=(PreferredTerm(1, NodeSelectorTerm()),)), True, id="only-preferred"),
    ],
)
def test_a_node_must_meet_the_selector_and_a_required_term(
    affinity: NodeAffinity,
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert expected is affinity.matches({"zone": "a", "disk": "ssd"}, "n1")


def test_a_node_selector_without_labels_selects_everything() -> None:
    assert selector_from_set({}) is EVERYTHING


def test_a_node_selector_is_not_validated() -> None:
    assert selector_from_set({"no key": "no value"}).matches({"no key": "no value"})


def test_the_order_of_labels_in_a_node_selector_is_irrelevant() -> None:
    assert selector_from_set({"a": "1", "b": "2"}) == selector_from_set({"b": "2", "a": "1"})


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        pytest.param([], "", id="none"),
        pytest.param([("one",)], "one", id="one"),
        pytest.param([("one", "two"), (), ("three",)], "[one, two, three]", id="several"),
    ],
)
def test_the_errors_of_all_preferred_terms_are_told_at_once(errors: list[tuple[str, ...]], expected: str) -> None:
    terms = tuple(PreferredTerm(1, NodeSelectorTerm(errors=each)) for each in errors)
    assert expected == NodeAffinity(preferred=terms).preferred_error
