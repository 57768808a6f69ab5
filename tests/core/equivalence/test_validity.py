"""What events make invalid, by the rules that plugins declare."""

import pytest

from core.equivalence.validity import ClusterChange, Validities, Validity
from core.events import Kind
from core.framework.invalidation import InvalidationRule, Operation, Scope
from core.mirror.changes import NamespaceChange, NodeChange, ObjectChange, PodChange
from core.mirror.node_info import NO_SLOT
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from core.objects.volumes import CSINode, PersistentVolume
from tests.core.equivalence.said_plugin import StatedPlugin, when
from tests.core.mirror.values import node, pod

CAPACITY = 4
NODE, OTHER_NODE, POD, OTHER_POD = node("n"), node("n", cpu=1), pod("p"), pod("p", cpu=1)
CSI_NODE, VOLUME = CSINode(name="n"), PersistentVolume(name="v")


def reported(rules: tuple[InvalidationRule, ...], *changes: ClusterChange) -> Validity:
    """Return the validity of a plugin with these rules, after the changes."""
    validities = Validities([StatedPlugin(invalidated_by=rules)], CAPACITY)
    for change in changes:
        validities.changed(change, CAPACITY)
    return validities.of["Said"]


def invalid(validity: Validity) -> list[int] | str:
    """Return the slots that have ever been invalid."""
    return "all" if validity.all_at else [slot for slot in range(CAPACITY) if validity.changed_at[slot]]


@pytest.mark.parametrize(
    ("kind", "scope", "change", "expected"),
    [
        pytest.param(Pod, Scope.NODE, PodChange(2, None, POD), [2], id="pod-on-a-node"),
        pytest.param(Pod, Scope.ALL, PodChange(2, None, POD), "all", id="pod-for-all-nodes"),
        pytest.param(Pod, Scope.COUNTERS, PodChange(2, None, POD), [], id="pod-by-counters"),
        pytest.param(Node, Scope.NODE, NodeChange(1, NODE, OTHER_NODE), [1], id="node-alone"),
        pytest.param(Node, Scope.ALL, NodeChange(1, NODE, OTHER_NODE), "all", id="node-for-all-nodes"),
        pytest.param(Namespace, Scope.ALL, NamespaceChange("a", None, {}), "all", id="namespace"),
        pytest.param(CSINode, Scope.NODE, ObjectChange(CSINode, 3, None, CSI_NODE), [3], id="csi-node"),
        pytest.param(CSINode, Scope.NODE, ObjectChange(CSINode, NO_SLOT, None, CSI_NODE), [], id="of-no-node"),
        pytest.param(
            PersistentVolume, Scope.ALL, ObjectChange(PersistentVolume, NO_SLOT, None, VOLUME), "all", id="pv"
        ),
    ],
)
def test_a_rule_makes_invalid_what_its_scope_says(
    kind: Kind, scope: Scope, change: ClusterChange, expected: list[int] | str
) -> None:
    assert invalid(reported((when(kind, scope),), change)) == expected


@pytest.mark.parametrize("operation", Operation)
@pytest.mark.parametrize(
    ("before", "after", "happened"),
    [
        pytest.param(None, POD, Operation.ADD, id="comes"),
        pytest.param(POD, OTHER_POD, Operation.UPDATE, id="changes"),
        pytest.param(POD, None, Operation.DELETE, id="goes"),
    ],
)
def test_a_rule_hears_of_its_own_operations_alone(
    operation: Operation, before: Pod | None, after: Pod | None, happened: Operation
) -> None:
    validity = reported((when(Pod, Scope.NODE, (operation,)),), PodChange(1, before, after))

    assert invalid(validity) == ([1] if operation is happened else [])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(NodeChange(2, None, NODE), [2], id="comes"),
        pytest.param(NodeChange(2, NODE, None), [2], id="goes"),
        pytest.param(NodeChange(2, NODE, OTHER_NODE), [], id="changes"),
    ],
)
def test_a_node_that_comes_or_goes_is_invalid_for_plugins_without_rules(
    change: ClusterChange, expected: list[int]
) -> None:
    assert invalid(reported((), change)) == expected


def test_invalidations_are_counted_by_kind_and_operation() -> None:
    validity = reported(
        (when(Pod, Scope.NODE), when(Pod, Scope.COUNTERS), when(CSINode, Scope.NODE, touches=lambda *_: False)),
        PodChange(0, None, POD),
        PodChange(0, POD, OTHER_POD),
        PodChange(1, None, POD),
        ObjectChange(CSINode, 0, None, CSI_NODE),
        NodeChange(0, NODE, None),
    )

    assert validity.counts == {("Pod", "ADD"): 2, ("Pod", "UPDATE"): 1, ("Node", "DELETE"): 1}


def test_slots_that_come_later_have_times_too_and_the_old_ones_stay() -> None:
    validities = Validities([StatedPlugin(invalidated_by=(when(Pod, Scope.NODE),))], CAPACITY)
    validities.changed(PodChange(1, None, POD), CAPACITY)
    validities.changed(NodeChange(5, None, NODE), 2 * CAPACITY)

    assert validities.capacity == 2 * CAPACITY
    assert validities.of["Said"].changed_at.tolist() == [0, 2, 0, 0, 0, 3, 0, 0]
