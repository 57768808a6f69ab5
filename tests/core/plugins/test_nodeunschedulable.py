"""NodeUnschedulable: a cordoned node takes only pods that tolerate it."""

from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import ClusterEvent
from core.framework.evaluation import Evaluation, FreshEvaluation
from core.framework.status import SKIP, SUCCESS, Code, Status
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.node import Node
from core.objects.pod import Pod
from core.objects.toleration import Taint, Toleration
from core.plugins.nodeunschedulable import NodeUnschedulable
from tests.builders import NodeBuilder, make_node
from tests.core.decoded import mirror_of, node_of

CORDONED: Final = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) were unschedulable",))
KEY: Final = "node.kubernetes.io/unschedulable"
NODE: Final = make_node("n1")


def tolerating(*tolerations: Toleration) -> Pod:
    return Pod("default/p", "default", "p", tolerations=frozenset(tolerations))


def statuses(evaluation: Evaluation, batch: NodeBatch) -> list[Status]:
    verdicts = evaluation.verdicts(NodeUnschedulable(), batch)
    return [SUCCESS if verdicts is None else verdicts.status(position) for position in range(len(batch))]


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        # node_unschedulable_test.go
        pytest.param(NODE.unschedulable(), CORDONED, id="unschedulable-node"),
        pytest.param(NODE, SUCCESS, id="normal-node"),
        pytest.param(NODE.taint(KEY, "", "NoSchedule"), SUCCESS, id="the-taint-alone-which-is-another-plugin-s"),
    ],
)
def test_a_cordoned_node_fails(node: NodeBuilder, expected: Status) -> None:
    mirror = mirror_of(node, make_node("n2"))
    assert [expected, SUCCESS] == statuses(FreshEvaluation(mirror, tolerating()), mirror.batch(["n1", "n2"]))


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        # node_unschedulable_test.go: the taint's value is empty, and so is that of Equal without a value
        pytest.param(Toleration(KEY, effect="NoSchedule"), SUCCESS, id="the-taint-without-an-operator"),
        pytest.param(Toleration(KEY, "Exists", effect="NoSchedule"), SUCCESS, id="the-key"),
        pytest.param(Toleration(KEY, "Exists"), SUCCESS, id="the-key-with-any-effect"),
        pytest.param(Toleration(operator="Exists"), SUCCESS, id="everything"),
        pytest.param(Toleration(KEY, "Exists", effect="NoExecute"), CORDONED, id="another-effect"),
        pytest.param(Toleration(KEY, value="true", effect="NoSchedule"), CORDONED, id="another-value"),
        pytest.param(Toleration("gpu", "Exists"), CORDONED, id="another-key"),
    ],
)
def test_a_pod_that_tolerates_the_taint_of_the_same_meaning_fits(toleration: Toleration, expected: Status) -> None:
    mirror = mirror_of(NODE.unschedulable())
    pod = tolerating(Toleration("other"), toleration)
    assert [expected] == statuses(FreshEvaluation(mirror, pod), mirror.batch(["n1"]))


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
