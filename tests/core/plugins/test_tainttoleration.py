"""TaintToleration: taints that keep a pod off a node, and those that count against it."""

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
from core.objects.pod import Pod, Taint, Toleration
from core.plugins.tainttoleration import TaintToleration
from tests.core.plugins.told import mirror_of

DEDICATED: Final = Taint("dedicated", "user1", "NoSchedule")
FOO: Final = Taint("foo", "bar", "NoSchedule")
EVICTING: Final = Taint("down", "", "NoExecute")
ARM: Final = Taint("cpu-type", "arm64", "PreferNoSchedule")
SSD: Final = Taint("disk-type", "ssd", "PreferNoSchedule")
PREFERRED_FOO: Final = Taint("foo", "bar", "PreferNoSchedule")


def tolerating(*tolerations: Toleration) -> Pod:
    return Pod("default/p", "default", "p", tolerations=frozenset(tolerations))


def tainted(*taints: Taint, name: str = "n1") -> Node:
    return Node(name, taints=taints)


def untolerated(key: str, value: str) -> Status:
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (f"node(s) had untolerated taint {{{key}: {value}}}",))


def statuses(evaluation: Evaluation, batch: NodeBatch) -> list[Status]:
    verdicts = evaluation.verdicts(TaintToleration(), batch)
    assert verdicts is not None
    return [verdicts.status(position) for position in range(len(batch))]


def scores(evaluation: Evaluation, batch: NodeBatch) -> list[int]:
    raw = evaluation.raw_scores(TaintToleration(), batch)
    assert raw is not None
    return [*map(int, raw)]


def test_each_of_many_different_taints_is_told_of_its_own_node() -> None:
    values = [str(number) for number in range(300)]
    mirror = mirror_of(*(tainted(Taint("for", value, "NoSchedule"), name=value) for value in values))
    expected = [untolerated("for", value) for value in values]
    assert expected == statuses(FreshEvaluation(mirror, tolerating()), mirror.batch(values))


def test_a_node_that_the_mirror_does_not_know_is_judged_by_what_the_question_says() -> None:
    mirror = mirror_of(tainted(DEDICATED, ARM))
    strangers = {0: tainted(FOO, ARM, SSD, name="s1"), 2: tainted(name="s2")}
    batch, evaluation = mirror.batch(["s1", "n1", "s2"], strangers), FreshEvaluation(mirror, tolerating())
    assert statuses(evaluation, batch) == [untolerated("foo", "bar"), untolerated("dedicated", "user1"), SUCCESS]
    assert scores(evaluation, batch) == [2, 1, 0]


TAINTS: Final = st.lists(st.sampled_from((DEDICATED, FOO, EVICTING, ARM, SSD)), max_size=3, unique=True).map(tuple)


@given(changes=st.lists(st.tuples(st.sampled_from(("n1", "n2", "n3")), st.none() | TAINTS), max_size=20))
def test_kept_answers_are_those_of_a_mirror_made_anew(changes: Sequence[tuple[str, tuple[Taint, ...] | None]]) -> None:
    pod, mirror = tolerating(Toleration("foo", "Exists"), Toleration("disk-type", "Exists")), ClusterMirror()
    cache = EquivalenceCache(mirror, (TaintToleration(),), CacheOptions(mode="spec"))
    present: dict[str, Node] = {}
    for name, taints in changes:
        mirror.apply(ClusterEvent("Delete" if taints is None else "Update", tainted(*(taints or ()), name=name)))
        present.pop(name, None)
        if taints is not None:
            present[name] = tainted(*taints, name=name)
        anew = mirror_of(*present.values())
        kept, fresh = cache.evaluation(pod), FreshEvaluation(anew, pod)
        assert statuses(fresh, anew.batch(list(present))) == statuses(kept, mirror.batch(list(present)))
        assert scores(fresh, anew.batch(list(present))) == scores(kept, mirror.batch(list(present)))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(tainted(), tainted(FOO), True, id="a-taint-more"),
        pytest.param(tainted(FOO), tainted(), True, id="a-taint-less"),
        pytest.param(tainted(FOO, ARM), tainted(ARM, FOO), True, id="another-order"),
        pytest.param(tainted(FOO), tainted(PREFERRED_FOO), True, id="another-effect"),
        pytest.param(tainted(FOO), Node("n1", taints=(FOO,), unschedulable=True), False, id="cordoned"),
        pytest.param(
            tainted(FOO), Node("n1", {"zone": "a"}, {"cpu": 1}, resource_version="2", taints=(FOO,)), False, id="others"
        ),
        pytest.param(tainted(), Node("n1", images={"i": 1}, conditions={"Ready": "True"}), False, id="heartbeat"),
    ],
)
def test_an_answer_is_invalidated_by_taints_alone(before: Node, after: Node, *, expected: bool) -> None:
    (rule,) = TaintToleration().invalidated_by
    assert expected is rule.touches(before, after)
