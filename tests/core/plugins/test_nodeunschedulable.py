"""NodeUnschedulable: a cordoned node takes only pods that tolerate it."""

from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import ClusterEvent
from core.framework.evaluation import Evaluation, FreshEvaluation
from core.framework.interface import SKIP, SUCCESS, Code, Status
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.node import Node
from core.objects.pod import Pod, Taint, Toleration
from core.plugins.nodeunschedulable import NodeUnschedulable
from tests.builders import make_node
from tests.core.decoded import mirror_of, node_of

CORDONED: Final = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) were unschedulable",))
KEY: Final = "node.kubernetes.io/unschedulable"
NODE: Final = make_node("n1")


def tolerating(*tolerations: Toleration) -> Pod:
    return Pod("default/p", "default", "p", tolerations=frozenset(tolerations))


def statuses(evaluation: Evaluation, batch: NodeBatch) -> list[Status]:
    verdicts = evaluation.verdicts(NodeUnschedulable(), batch)
    return [SUCCESS if verdicts is None else verdicts.status(position) for position in range(len(batch))]


def test_a_pod_that_tolerates_cordons_skips_the_filter() -> None:
    mirror = mirror_of(NODE)
    assert NodeUnschedulable().pre_filter(mirror, tolerating(Toleration(KEY, "Exists"))) == (SKIP, None)


def test_a_node_that_the_mirror_does_not_know_is_judged_by_what_the_question_says() -> None:
    mirror = mirror_of(NODE.unschedulable())
    strangers = {1: Node("s1", unschedulable=True), 2: Node("s2")}
    batch = mirror.batch(["n1", "s1", "s2"], strangers)
    assert statuses(FreshEvaluation(mirror, tolerating()), batch) == [CORDONED, CORDONED, SUCCESS]


@given(cordons=st.lists(st.tuples(st.sampled_from(("n1", "n2", "n3")), st.sampled_from((True, False, None)))))
def test_kept_answers_are_those_of_a_mirror_made_anew(cordons: Sequence[tuple[str, bool | None]]) -> None:
    mirror = ClusterMirror()
    cache = EquivalenceCache(mirror, (NodeUnschedulable(),), CacheOptions(mode="spec"))
    present: dict[str, bool] = {}
    for name, cordoned in cordons:
        mirror.apply(ClusterEvent("Delete" if cordoned is None else "Update", Node(name, unschedulable=bool(cordoned))))
        present.pop(name, None)
        if cordoned is not None:
            present[name] = cordoned
        expected = [CORDONED if each else SUCCESS for each in present.values()]
        assert expected == statuses(cache.evaluation(tolerating()), mirror.batch(list(present)))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(Node("n"), Node("n", unschedulable=True), True, id="cordoned"),
        pytest.param(Node("n", unschedulable=True), Node("n"), True, id="uncordoned"),
        pytest.param(Node("n"), Node("n", taints=(Taint(KEY),)), False, id="tainted"),
        pytest.param(node_of(NODE.condition("Ready", "True")), node_of(NODE), False, id="condition"),
        pytest.param(Node("n"), Node("n", {"zone": "a"}, {"cpu": 1}), False, id="labels-and-allocatable"),
    ],
)
def test_an_answer_is_invalidated_by_a_cordon_alone(before: Node, after: Node, *, expected: bool) -> None:
    (rule,) = NodeUnschedulable().invalidated_by
    assert expected is rule.touches(before, after)
