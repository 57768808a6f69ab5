"""NodeName: a pod that names its node fits that one alone."""

from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import ClusterEvent
from core.framework.evaluation import Evaluation, FreshEvaluation
from core.framework.interface import SUCCESS, Code, Status
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.node import Node
from core.plugins.nodename import NodeName
from tests.builders import NodeBuilder, make_node, make_pod
from tests.core.decoded import mirror_of, node_of, pod_of

OTHER: Final = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) didn't match the requested node name",))
ON_N1: Final = make_pod("p").on("n1")


def statuses(evaluation: Evaluation, batch: NodeBatch) -> list[Status]:
    verdicts = evaluation.verdicts(NodeName(), batch)
    return [SUCCESS if verdicts is None else verdicts.status(position) for position in range(len(batch))]


@pytest.mark.parametrize(
    "known",
    [
        pytest.param([make_node("n1")], id="which-the-mirror-knows"),
        pytest.param([make_node("n2")], id="which-only-the-question-knows"),
        pytest.param([], id="where-the-mirror-knows-none"),
    ],
)
def test_a_node_fits_by_its_name(known: Sequence[NodeBuilder]) -> None:
    mirror = mirror_of(*known)
    batch = mirror.batch(["n2", "n1"], {0: node_of(make_node("n2")), 1: node_of(make_node("n1"))})
    assert statuses(FreshEvaluation(mirror, pod_of(ON_N1)), batch) == [OTHER, SUCCESS]


@given(names=st.lists(st.sampled_from(("n1", "n2", "n3")), max_size=20))
def test_kept_answers_are_right_while_nodes_come_and_go(names: Sequence[str]) -> None:
    mirror = ClusterMirror()
    cache = EquivalenceCache(mirror, (NodeName(),), CacheOptions(mode="spec"))
    for name in names:
        mirror.apply(ClusterEvent("Delete" if name in mirror.nodes.slots else "Add", Node(name)))
        present = sorted(mirror.nodes.slots)
        expected = [SUCCESS if each == "n1" else OTHER for each in present]
        assert expected == statuses(cache.evaluation(pod_of(ON_N1)), mirror.batch(present))


def test_no_update_of_a_node_invalidates_an_answer() -> None:
    assert NodeName().invalidated_by == ()
