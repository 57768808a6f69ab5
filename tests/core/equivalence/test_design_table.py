"""The table of the equivalence class design (its section 3), row by row, held against the rules of the plugins."""

from dataclasses import dataclass
from typing import Any, Final

import pytest
from msgspec.structs import replace

from core.equivalence.validity import operation_of
from core.events import Kind
from core.framework.invalidation import NODE_LIFE, InvalidationRule, Operation, Scope
from core.objects.kinds import Service
from core.objects.labels import Operator, Requirement, Selector
from core.objects.node import Node
from core.objects.pod import HostPort, InlineDisk, Pod, PodClaim, RBDImage, Taint
from core.objects.volumes import PersistentVolume, PersistentVolumeClaim, VolumeSource
from core.plugins import PLUGINS
from tests.core.decoded import demanding
from tests.core.equivalence.invalidation_table import DESIGN_KEYS
from tests.core.equivalence.test_planted_faults import plugin_of


@dataclass(frozen=True)
class Change:
    """What happened to an object, as an example of what a row speaks of."""

    kind: Kind
    before: Any
    after: Any

    @property
    def operation(self) -> Operation:
        return operation_of(self.before, self.after)


@dataclass(frozen=True)
class DesignRow:
    """A row: `quote` is the document's, `keys` are its predicates, of which `plugins` are the parts that are concerned.

    `stronger` is a word of the reason for which ours goes further than the document.
    """

    quote: str
    keys: tuple[str, ...]
    plugins: tuple[str, ...]
    scope: Scope
    changes: tuple[Change, ...]
    stronger: str = ""


def _labelled(**labels: str) -> Node:
    return Node("n", {key.replace("_", "."): value for key, value in labels.items()})


def _conditions(**statuses: str) -> Change:
    return Change(Node, Node("n"), Node("n", conditions=statuses))


def _selector(value: str) -> Selector:
    return Selector((Requirement("app", Operator.IN, (value,)),))


_NODE: Final = Node("n")
_POD: Final = Pod("p", "default", "p", node_name="n")
_RESIZED: Final = replace(_POD, requests={"cpu": 100})
_RELABELLED: Final = replace(_POD, labels={"app": "web"})
_WITH_PORT: Final = demanding(_POD, host_ports=frozenset({HostPort(80)}))
_ZONE: Final = "topology.kubernetes.io/zone"
_VOLUMES: Final = tuple(
    PersistentVolume(name="pv", source=VolumeSource(plugin, "disk", in_tree=True))
    for plugin in ("kubernetes.io/aws-ebs", "kubernetes.io/gce-pd", "kubernetes.io/azure-disk")
)
_CLAIM: Final = PersistentVolumeClaim(namespace="default", name="c", volume="pv", bind_completed=True)
_SERVICE: Final = Service("default", "web", _selector("web"))
_DISKS: Final = (
    RBDImage(frozenset({"m"}), "pool", "image"),
    InlineDisk("v", VolumeSource("kubernetes.io/iscsi", "iqn")),
    InlineDisk("v", VolumeSource("kubernetes.io/gce-pd", "disk", in_tree=True)),
)
_MAX_DISKS: Final = ("MaxEBSVolumeCount", "MaxGCEPDVolumeCount", "MaxAzureDiskVolumeCount")

DESIGN: Final = {
    "3.1-persistent-volume-add-delete": DesignRow(
        "`MaxEBSVolumeCount`, `MaxGCEPDVolumeCount`, `MaxAzureDiskVolumeCount` (only if the added/deleted PV is one of "
        "them). All nodes (we don't know which node this PV will be attached to)",
        keys=_MAX_DISKS,
        plugins=("NodeVolumeLimits",),
        scope=Scope.ALL,
        changes=(
            *(Change(PersistentVolume, None, each) for each in _VOLUMES),
            *(Change(PersistentVolume, each, None) for each in _VOLUMES),
        ),
    ),
    "3.2-persistent-volume-claim-add-delete": DesignRow(
        "`MaxPDVolumeCountPredicate` (only if the added/deleted PVC as a binded volume so it drops to the PV change "
        "case, otherwise it should not affect scheduler). All nodes",
        keys=("MaxPDVolumeCountPredicate",),
        plugins=("NodeVolumeLimits",),
        scope=Scope.ALL,
        changes=(Change(PersistentVolumeClaim, None, _CLAIM), Change(PersistentVolumeClaim, _CLAIM, None)),
    ),
    "3.3-service-add-delete": DesignRow(
        "`ServiceAffinity`. All nodes (`serviceAffinity` is a cluster scope predicate)",
        keys=("ServiceAffinity",),
        plugins=("ServiceAffinity",),
        scope=Scope.ALL,
        changes=(Change(Service, None, _SERVICE), Change(Service, _SERVICE, None)),
    ),
    "3.3-service-update": DesignRow(
        "`ServiceAffinity` (only if the `spec.Selector` filed is updated). All nodes",
        keys=("ServiceAffinity",),
        plugins=("ServiceAffinity",),
        scope=Scope.ALL,
        changes=(Change(Service, _SERVICE, replace(_SERVICE, selector=_selector("db"))),),
    ),
    "3.4-pod-add-general": DesignRow(
        "`GeneralPredicates`. This invalidate should be done during `scheduler.assume(...)`. The node which the pod "
        "was binded with",
        keys=("GeneralPredicates",),
        plugins=("NodeResourcesFit", "NodePorts"),
        scope=Scope.NODE,
        changes=(Change(Pod, None, _WITH_PORT),),
    ),
    "3.4-pod-add-affinity": DesignRow(
        "No `MatchInterPodAffinity`: the scheduler will make sure newly binded pod will not break the existing inter "
        "pod affinity",
        keys=("MatchInterPodAffinity",),
        plugins=("InterPodAffinity",),
        scope=Scope.ALL,
        changes=(Change(Pod, None, _RELABELLED),),
        stronger="67680",
    ),
    "3.4-pod-add-disk": DesignRow(
        "No `NoDiskConflict`: the newly scheduled pod fits to existing pods on this node, it will also fits to "
        "equivalence class of existing pods",
        keys=("NoDiskConflict",),
        plugins=("VolumeRestrictions",),
        scope=Scope.NODE,
        changes=tuple(Change(Pod, None, replace(_POD, volumes=(disk,))) for disk in _DISKS),
        stronger="stronger than the design",
    ),
    "3.4-pod-update-general": DesignRow(
        "`GeneralPredicates` if the pod's resource requests are updated. The node which the pod was binded with",
        keys=("GeneralPredicates",),
        plugins=("NodeResourcesFit",),
        scope=Scope.NODE,
        changes=(Change(Pod, _POD, _RESIZED),),
    ),
    "3.4-pod-update-affinity": DesignRow(
        "`MatchInterPodAffinity` if the pod's labels are updated. The node which the pod was binded with",
        keys=("MatchInterPodAffinity",),
        plugins=("InterPodAffinity",),
        scope=Scope.ALL,  # of the domain, of which the node is only a part
        changes=(Change(Pod, _POD, _RELABELLED),),
        stronger="whole topology domain",
    ),
    "3.4-pod-delete-affinity": DesignRow(
        "`MatchInterPodAffinity` if the pod's labels are updated. All nodes in the same failure domain",
        keys=("MatchInterPodAffinity",),
        plugins=("InterPodAffinity",),
        scope=Scope.ALL,
        changes=(Change(Pod, _RELABELLED, None),),
    ),
    "3.4-pod-delete-disk": DesignRow(
        "`NoDiskConflict` if the pod has special volume like `RBD`, `ISCSI`, `GCEPersistentDisk` etc. The node which "
        "the pod was binded with",
        keys=("NoDiskConflict",),
        plugins=("VolumeRestrictions",),
        scope=Scope.NODE,
        changes=tuple(Change(Pod, replace(_POD, volumes=(disk,)), None) for disk in _DISKS),
    ),
    "3.5-node-update-allocatable": DesignRow(
        "`GeneralPredicates`, if `node.Status.Allocatable` or node labels changed. The updated node",
        keys=("GeneralPredicates",),
        plugins=("NodeResourcesFit",),
        scope=Scope.NODE,
        changes=(Change(Node, _NODE, replace(_NODE, allocatable={"cpu": 1000})),),
    ),
    "3.5-node-update-labels": DesignRow(
        "`GeneralPredicates`, if `node.Status.Allocatable` or node labels changed. The updated node",
        keys=("GeneralPredicates",),
        plugins=("NodeAffinity",),
        scope=Scope.NODE,
        changes=(Change(Node, _NODE, _labelled(disk="ssd")), Change(Node, _labelled(disk="ssd"), _NODE)),
    ),
    "3.5-node-update-service-affinity": DesignRow(
        "`ServiceAffinity`, if node labels changed, since selector result may change. The updated node",
        keys=("ServiceAffinity",),
        plugins=("ServiceAffinity",),
        scope=Scope.NODE,
        changes=(Change(Node, _NODE, _labelled(zone="x")), Change(Node, _labelled(zone="x"), _NODE)),
    ),
    "3.5-node-update-affinity": DesignRow(
        "`MatchInterPodAffinity`, if value of label changed, since any node label can be topology key of pod. The "
        "updated node",
        keys=("MatchInterPodAffinity",),
        plugins=("InterPodAffinity",),
        scope=Scope.NODE,
        changes=(
            Change(Node, _labelled(rack="1"), _labelled(rack="2")),
            Change(Node, _NODE, _labelled(rack="1")),
            Change(Node, _labelled(rack="1"), _NODE),
        ),
    ),
    "3.5-node-update-zone": DesignRow(
        "`NoVolumeZoneConflict`, if zone related label change. The updated node",
        keys=("NoVolumeZoneConflict",),
        plugins=("VolumeZone",),
        scope=Scope.NODE,
        changes=(
            Change(Node, Node("n", {_ZONE: "a"}), Node("n", {_ZONE: "b"})),
            Change(Node, _NODE, Node("n", {_ZONE: "b"})),
            Change(Node, Node("n", {_ZONE: "a"}), _NODE),
        ),
    ),
    "3.5-node-update-taints": DesignRow(
        "`PodToleratesNodeTaints`, if node taints changed. The updated node",
        keys=("PodToleratesNodeTaints",),
        plugins=("TaintToleration",),
        scope=Scope.NODE,
        changes=(Change(Node, _NODE, replace(_NODE, taints=(Taint("k", "v", "NoSchedule"),))),),
    ),
    "3.5-node-update-memory-pressure": DesignRow(
        "`CheckNodeMemoryPressure`, [...] if related node condition changed. The updated node",
        keys=("CheckNodeMemoryPressure",),
        plugins=("CheckNodeMemoryPressure",),
        scope=Scope.NODE,
        changes=(_conditions(MemoryPressure="True"),),
    ),
    "3.5-node-update-disk-pressure": DesignRow(
        "`CheckNodeDiskPressure`, [...] if related node condition changed. The updated node",
        keys=("CheckNodeDiskPressure",),
        plugins=("CheckNodeDiskPressure",),
        scope=Scope.NODE,
        changes=(_conditions(DiskPressure="True"),),
    ),
    "3.5-node-update-condition": DesignRow(
        "`CheckNodeCondition`, if related node condition changed. The updated node",
        keys=("CheckNodeCondition",),
        plugins=("CheckNodeCondition",),
        scope=Scope.NODE,
        changes=(_conditions(Ready="False"), _conditions(Ready="Unknown"), _conditions(NetworkUnavailable="True")),
    ),
    "3.5-node-update-cordon": DesignRow(
        "`CheckNodeCondition`, if related node condition changed. The updated node",
        keys=("CheckNodeCondition",),
        plugins=("NodeUnschedulable",),
        scope=Scope.NODE,
        changes=(Change(Node, _NODE, replace(_NODE, unschedulable=True)),),
        stronger="changes none of its conditions",
    ),
}
"""Row of the document -> what it says."""

_COVERS: Final = {Scope.NODE: set(Scope), Scope.ALL: {Scope.ALL, Scope.COUNTERS}}
"""Scope of the document -> ours that drop all that it drops and that is not right still; counters tell exactly."""

_CASES: Final = [
    pytest.param(row, name, change, id=f"{key}-{name}-{number}")
    for key, row in DESIGN.items()
    for name in row.plugins
    for number, change in enumerate(row.changes)
]


def _covering(name: str, change: Change, scope: Scope) -> list[InvalidationRule]:
    return [
        rule
        for rule in plugin_of(name).invalidated_by
        if rule.kind is change.kind
        and change.operation in rule.operations
        and rule.scope in _COVERS[scope]
        and rule.touches(change.before, change.after)
    ]


@pytest.mark.parametrize(("row", "name", "change"), _CASES)
def test_a_row_of_the_design_is_declared_or_a_stronger_rule(row: DesignRow, name: str, change: Change) -> None:
    rules = _covering(name, change, row.scope)

    assert rules, row.quote
    assert all(rule.because for rule in rules)
    if row.stronger:
        assert any(row.stronger in rule.because for rule in rules), "where the document is wrong, the rule says why"


@pytest.mark.parametrize("row", [pytest.param(row, id=key) for key, row in DESIGN.items()])
def test_the_predicates_of_a_row_are_those_of_its_plugins(row: DesignRow) -> None:
    for key in row.keys:
        assert all(key in DESIGN_KEYS[name] for name in row.plugins)


def test_no_predicate_of_the_design_is_left_out() -> None:
    assert {key for row in DESIGN.values() for key in row.keys} == {
        key for keys in DESIGN_KEYS.values() for key in keys
    }


@pytest.mark.parametrize("name", PLUGINS)
def test_every_rule_says_why(name: str) -> None:
    assert all(rule.because for rule in plugin_of(name).invalidated_by)


@pytest.mark.parametrize("name", PLUGINS)
def test_all_predicates_are_invalid_on_a_node_that_is_deleted(name: str) -> None:
    """3.5, DELETE: All predicates. The deleted node."""
    rules = [rule for rule in (*NODE_LIFE, *plugin_of(name).invalidated_by) if rule.kind is Node]

    assert any(Operation.DELETE in rule.operations and rule.touches(_NODE, None) for rule in rules)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        pytest.param("NodeResourcesFit", Change(Pod, _RESIZED, None), id="requests-of-a-pod-that-goes"),
        pytest.param("NodePorts", Change(Pod, _WITH_PORT, None), id="ports-of-a-pod-that-goes"),
        pytest.param("VolumeZone", Change(PersistentVolume, None, _VOLUMES[0]), id="zones-of-volumes"),
        pytest.param("VolumeRestrictions", Change(PersistentVolumeClaim, _CLAIM, None), id="claims"),
        pytest.param(
            "NodeVolumeLimits", Change(Pod, None, replace(_POD, volumes=(PodClaim("c"),))), id="pods-in-limits"
        ),
    ],
)
def test_what_the_design_leaves_out_is_declared(name: str, change: Change) -> None:
    assert _covering(name, change, Scope.NODE)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        pytest.param("NodeResourcesFit", Change(Pod, _POD, _RELABELLED), id="labels-do-not-take-resources"),
        pytest.param("NodePorts", Change(Pod, None, _POD), id="a-pod-without-ports"),
        pytest.param("VolumeRestrictions", Change(Pod, _POD, _RELABELLED), id="labels-are-no-disk"),
        pytest.param(
            "NodeAffinity", Change(Node, _NODE, replace(_NODE, allocatable={"cpu": 1})), id="amounts-no-labels"
        ),
        pytest.param("VolumeZone", Change(Node, _NODE, _labelled(disk="ssd")), id="no-zone"),
        pytest.param("ServiceAffinity", Change(Node, _NODE, _labelled(disk="ssd")), id="no-affinity-label"),
        pytest.param("CheckNodeDiskPressure", _conditions(MemoryPressure="True"), id="another-condition"),
        pytest.param("TaintToleration", Change(Node, _NODE, _labelled(disk="ssd")), id="labels-are-no-taint"),
    ],
)
def test_what_a_predicate_does_not_read_leaves_its_results(name: str, change: Change) -> None:
    """Or the design would be less meaningful in a heavy load cluster, as it says itself."""
    rules = _covering(name, change, Scope.NODE)

    assert all(rule.scope is Scope.COUNTERS for rule in rules)
