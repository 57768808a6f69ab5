"""The rule of the partition: which nodes it lets in, and which rules are refused."""

import json

import pytest

from app.objects.decode import DecodeError
from app.objects.partition import set_partition
from core.mirror.cluster import ClusterMirror
from tests.app.questions import mirror_of
from tests.builders import Object, make_node
from tests.core.decoded import in_partition
from tests.core.mirror.audit import audit

ZONE_A = {"matchLabels": {"zone": "a"}}


def three_nodes() -> ClusterMirror:
    """Two nodes in zone a, and one in zone b."""
    return mirror_of(*(make_node(name).label("zone", name[0]) for name in ("a1", "a2", "b1")))


@pytest.mark.parametrize(
    ("rule", "inside"),
    [
        pytest.param({}, ["a1", "a2", "b1", "c1"], id="nothing"),
        pytest.param({"selector": None}, ["a1", "a2", "b1", "c1"], id="null"),
        pytest.param({"selector": {}}, ["a1", "a2", "b1", "c1"], id="an-empty-selector"),
        pytest.param({"selector": ZONE_A}, ["a1", "a2"], id="a-selector"),
        pytest.param({"selector": ZONE_A, "in": ["b1", "c1"], "out": ["a1"]}, ["a2", "b1", "c1"], id="names-first"),
        pytest.param({"out": ["a2"]}, ["a1", "b1", "c1"], id="names-alone"),
    ],
)
def test_a_rule_lets_nodes_in_by_their_labels_and_their_names(rule: Object, inside: list[str]) -> None:
    mirror = three_nodes()
    set_partition(mirror, json.dumps(rule))
    assert in_partition(mirror, "a1", "a2", "b1", "c1") == inside
    assert audit(mirror) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param('{"node": []}', "object contains unknown field node", id="unknown-field"),
        pytest.param(
            '{"selector": {"matchExpressions": [{"key": "a", "operator": "In", "value": "b"}]}}',
            "selector.matchExpressions[0]: object contains unknown field value",
            id="unknown-in-expression",
        ),
        pytest.param(
            '{"selector": {"matchExpressions": [{"key": "a"}]}}',
            'selector.matchExpressions[0].operator: "" is not a valid label selector operator',
            id="no-operator",
        ),
        pytest.param('{"out": ["a1", 2]}', "out[1]: expected str, got int", id="number-as-name"),
        pytest.param('{"in": ["a1", ""]}', "in[1]: empty", id="empty-name-in"),
        pytest.param('{"in": ["a2", "a1"], "out": ["b1", "a1"]}', "out[1]: a1 is in[1], too", id="in-and-out"),
        pytest.param(
            '{"selector": {"matchExpressions": [{"key": "zone", "operator": "Equals", "values": ["a"]}]}}',
            'selector.matchExpressions[0].operator: "Equals" is not a valid label selector operator',
            id="unknown-operator",
        ),
    ],
)
def test_a_rule_that_is_not_clear_is_refused_and_changes_nothing(text: str, problem: str) -> None:
    mirror = three_nodes()
    with pytest.raises(DecodeError) as raised:
        set_partition(mirror, text)
    assert str(raised.value) == problem
    assert in_partition(mirror, "a1", "a2", "b1") == ["a1", "a2", "b1"]


def test_an_invalid_label_is_named() -> None:
    with pytest.raises(DecodeError, match=r"^selector\.matchLabels\[zone\]: "):
        set_partition(three_nodes(), '{"selector": {"matchLabels": {"zone": "-"}}}')
