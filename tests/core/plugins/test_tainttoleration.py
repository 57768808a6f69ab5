"""TaintToleration: taints that keep a pod off a node, and those that count against it."""

from core.framework.evaluation import Evaluation, FreshEvaluation
from core.framework.interface import Code, Status
from core.mirror.node_info import NodeBatch
from core.objects.node import Node
from core.objects.pod import Pod, Taint, Toleration
from core.plugins.tainttoleration import TaintToleration
from tests.core.plugins.values import mirror_of


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


def test_each_of_many_different_taints_is_told_of_its_own_node() -> None:
    values = [str(number) for number in range(300)]
    mirror = mirror_of(*(tainted(Taint("for", value, "NoSchedule"), name=value) for value in values))
    expected = [untolerated("for", value) for value in values]
    assert expected == statuses(FreshEvaluation(mirror, tolerating()), mirror.batch(values))
