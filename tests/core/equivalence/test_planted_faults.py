"""A rule that is left out makes the cache wrong, which the property test and the shadow check both find."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test as run_machine
from msgspec.structs import replace

from core.equivalence.cache import CacheOptions, EquivalenceCache, Mismatch
from core.events import ClusterEvent, Object
from core.framework.evaluation import Evaluation, FreshEvaluation
from core.framework.interface import AnyFilter, AnyScore, FilterPlugin, Plugin, ScorePlugin
from core.framework.invalidation import InvalidationRule, Scope
from core.mirror.cluster import ClusterMirror
from core.objects.affinity import NodeSelector, NodeSelectorTerm, selector_from_set
from core.objects.kinds import DeviceClass, Service
from core.objects.labels import Operator, Requirement
from core.objects.node import NodeMetrics, Usage
from core.objects.pod import InlineDisk, Pod, PodClaim
from core.objects.volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
    VolumeSource,
)
from core.plugins import PLUGINS
from core.plugins.nodename import NodeName
from core.plugins.serviceaffinity import ServiceAffinity
from core.profile import Profile
from core.releases.differences import rules_of
from core.releases.release import RELEASES
from tests.builders import labelled, make_node, make_pod, term
from tests.core.decoded import demanding, node_of, pod_of
from tests.core.equivalence.said_plugin import whole
from tests.properties.equivalence_machine import EquivalenceMachine, Rendered, rendered

Row: TypeAlias = tuple[str, str]
"""Plugin and rule: KIND SCOPE, with the operations where there are two of that kind and scope; or COUNTERS."""

COUNTERS: Final = "COUNTERS"


@dataclass(frozen=True)
class Fault:
    """A rule that is left out: what there is, who asks about all nodes, what happens then, and who asks again.

    `too` is left out as well, where it would find the change by itself.
    """

    before: Sequence[Object]
    asks: Pod
    then: Sequence[ClusterEvent]
    too: str = ""


def plugin_of(name: str) -> Plugin:
    """Make a plugin, with arguments without which it says nothing."""
    return ServiceAffinity(affinity_labels=("zone",)) if name == "ServiceAffinity" else PLUGINS[name]()


def rule_names(plugin: Plugin) -> dict[str, list[InvalidationRule]]:
    """Return the rules by name: those by counters together, the others one by one."""
    found: dict[str, list[InvalidationRule]] = {}
    for rule in plugin.invalidated_by:
        name = COUNTERS
        if rule.scope is not Scope.COUNTERS:
            name = f"{rule.kind.__name__} {rule.scope.name}"
            if sum((each.kind, each.scope) == (rule.kind, rule.scope) for each in plugin.invalidated_by) > 1:
                name += " " + "/".join(operation.value for operation in rule.operations)
        found.setdefault(name, []).append(rule)
    return found


def without(plugin: Plugin, *names: str) -> Any:  # noqa: ANN401 - the same plugin, which may filter and score
    """Copy a plugin without some of its rules."""
    left_out = [rule for name in names if name for rule in rule_names(plugin)[name]]
    faulty = copy.copy(plugin)
    retained = tuple(rule for rule in plugin.invalidated_by if not any(rule is each for each in left_out))
    vars(faulty)["invalidated_by"] = retained
    return faulty


def tell(mirror: ClusterMirror, events: Iterable[ClusterEvent]) -> None:
    """Tell a mirror of events."""
    for event in events:
        mirror.apply(event)


def _added(*objects: Object) -> list[ClusterEvent]:
    return [ClusterEvent("Add", each) for each in objects]


def _reached_from(key: str, value: str) -> NodeSelector:
    return NodeSelector((NodeSelectorTerm((Requirement(key, Operator.IN, (value,)),)),))


EBS: Final = "ebs.csi.aws.com"
IN_TREE_EBS: Final = "kubernetes.io/aws-ebs"
_A, _B = make_node("a"), make_node("b")
_ZONES: Final = (node_of(_A.label("zone", "x")), node_of(_B.label("zone", "y")))
_WEB: Final = make_pod("q").label("app", "web")
_ASKS: Final = pod_of(_WEB)
_ROOMY: Final = _A.allocatable(cpu="1", memory="1Gi", pods=9)
_SMALL: Final = pod_of(_WEB.requests(cpu="600m", memory="100Mi"))
_FEATURE: Final = frozenset({"UserNamespacesHostNetworkSupport"})
_SMALL_ON_A: Final = replace(_SMALL, uid="p", name="p", node_name="a")
_ON_A: Final = pod_of(make_pod("p").label("app", "web").on("a"))
_REPELLED: Final = pod_of(_WEB.required_anti_affinity(term("zone", labelled(app="web"))))
_SERVICE: Final = Service("default", "web", selector_from_set({"app": "web"}))
_SPREAD: Final = pod_of(_WEB.spread("zone", labelled(app="web")))
_CLAIMING: Final = replace(_ASKS, volumes=(PodClaim("c"),))
_DISK: Final = InlineDisk("v", VolumeSource(IN_TREE_EBS, "vol-1", in_tree=True))
_CLAIM: Final = PersistentVolumeClaim(namespace="default", name="c", uid="c", volume="pv", bind_completed=True)
_UNBOUND: Final = PersistentVolumeClaim(namespace="default", name="c", uid="c", storage_class="s", requested=5)
_VOLUME: Final = PersistentVolume(
    name="pv", source=VolumeSource(EBS, "vol-2"), node_affinity=_reached_from("zone", "x")
)
_CLASS: Final = StorageClass(name="s", provisioner=EBS, volume_binding_mode="WaitForFirstConsumer")
_ROOM: Final = CSIStorageCapacity(namespace="kube-system", name="room", storage_class="s", limit=9)
_ONE_VOLUME: Final = CSINode(name="a", volume_limits={EBS: 1})
_OTHER_CLAIM: Final = replace(_CLAIM, name="d", uid="d", volume="pw")
_OTHER_VOLUME: Final = PersistentVolume(name="pw", source=VolumeSource(EBS, "vol-1"))
_TAKES_ONE: Final = replace(_ON_A, volumes=(PodClaim("d"),))
_FULL_OF_VOLUMES: Final = (node_of(_A), _ONE_VOLUME, _CLAIM, _VOLUME, _OTHER_CLAIM, _OTHER_VOLUME, _TAKES_ONE)
_ZONAL: Final = PersistentVolume(name="pv", labels={"topology.kubernetes.io/zone": "x"})
_ZONAL_NODE: Final = node_of(_A.label("topology.kubernetes.io/zone", "x"))
_MIGRATABLE: Final = PersistentVolume(
    name="pv",
    source=VolumeSource(IN_TREE_EBS, "vol-1", in_tree=True),
    node_affinity=_reached_from("topology.kubernetes.io/zone", "x"),
)


def _measured(cpu: int) -> NodeMetrics:
    return NodeMetrics(name="a", measured_at=0, covers_pods_until="", cpu=Usage(cpu), memory=Usage(0))


def _of_load(plugin: str) -> dict[Row, Fault]:
    """Return the faults of a plugin that follows the usage of nodes."""
    there: Sequence[Object] = [node_of(_ROOMY), _measured(300)]
    return {
        (plugin, "NodeMetrics NODE"): Fault(there, _ASKS, _added(_measured(100))),
        (plugin, "Node NODE"): Fault(there, _ASKS, _added(node_of(_ROOMY.allocatable(cpu="4")))),
        (plugin, "Pod NODE"): Fault(there, _ASKS, _added(_SMALL_ON_A)),
    }


def _condition(kind: str, status: str) -> Fault:
    return Fault([node_of(_A)], _ASKS, _added(node_of(_A.condition(kind, status))))


FAULTS: Final[Mapping[Row, Fault]] = {
    **_of_load("TargetLoadPacking"),
    **_of_load("LoadVariationRiskBalancing"),
    **_of_load("LoadAware"),
    ("NodeUnschedulable", "Node NODE"): Fault([node_of(_A)], _ASKS, _added(node_of(_A.unschedulable()))),
    ("TaintToleration", "Node NODE"): Fault([node_of(_A)], _ASKS, _added(node_of(_A.taint("k", "v", "NoSchedule")))),
    ("NodeAffinity", "Node NODE"): Fault(
        [node_of(_A)], pod_of(_WEB.node_selector({"disk": "ssd"})), _added(node_of(_A.label("disk", "ssd")))
    ),
    ("NodePorts", "Pod NODE"): Fault(
        [node_of(_A)], pod_of(_WEB.host_port(80)), _added(pod_of(make_pod("p").host_port(80).on("a")))
    ),
    ("NodeResourcesFit", "Node NODE"): Fault([node_of(_A)], _ASKS, _added(node_of(_ROOMY))),
    ("NodeResourcesFit", "Pod NODE"): Fault([node_of(_ROOMY)], _SMALL, _added(_SMALL_ON_A)),
    ("NodeResourcesFit", "DeviceClass ALL"): Fault(
        [node_of(_ROOMY)],
        pod_of(_WEB.requests(**{"example.com/gpu": "1"})),
        _added(DeviceClass(name="gpu", extended_resource="example.com/gpu")),
    ),
    ("NodeDeclaredFeatures", "Node NODE"): Fault(
        [node_of(_A)],
        demanding(_ASKS, needed_features=_FEATURE),
        _added(replace(node_of(_A), declared_features=_FEATURE)),
    ),
    ("NodeResourcesBalancedAllocation", "Node NODE"): Fault(
        [node_of(_ROOMY)], _SMALL, _added(node_of(_ROOMY.allocatable(cpu="4")))
    ),
    ("NodeResourcesBalancedAllocation", "Pod NODE"): Fault(
        [node_of(_ROOMY)], _SMALL, _added(replace(_SMALL_ON_A, requests={"memory": 2**29}))
    ),
    ("InterPodAffinity", "Node NODE"): Fault(
        [_ZONES[0], node_of(_B), _ON_A], _REPELLED, _added(node_of(_B.label("zone", "x")))
    ),
    ("InterPodAffinity", COUNTERS): Fault(_ZONES, _REPELLED, _added(_ON_A)),
    ("CheckNodeCondition", "Node NODE"): _condition("Ready", "False"),
    ("CheckNodeMemoryPressure", "Node NODE"): _condition("MemoryPressure", "True"),
    ("CheckNodeDiskPressure", "Node NODE"): _condition("DiskPressure", "True"),
    ("CheckNodePIDPressure", "Node NODE"): _condition("PIDPressure", "True"),
    ("ImageLocality", "Node ALL ADD/DELETE"): Fault(
        [node_of(_A.image(500_000_000, "web:latest"))], pod_of(_WEB.image("web")), _added(node_of(_B))
    ),
    ("ImageLocality", "Node ALL UPDATE"): Fault(
        [node_of(_A.image(500_000_000, "web:latest")), node_of(_B)],
        pod_of(_WEB.image("web")),
        _added(node_of(_B.image(500_000_000, "web:latest"))),
    ),
    ("ServiceAffinity", "Node NODE"): Fault(
        [node_of(_A)], pod_of(_WEB.node_selector({"zone": "x"})), _added(node_of(_A.label("zone", "x")))
    ),
    ("ServiceAffinity", COUNTERS): Fault([*_ZONES, _SERVICE], _ASKS, _added(_ON_A)),
    ("VolumeZone", "Node NODE"): Fault(
        [_CLAIM, _ZONAL, _ZONAL_NODE], _CLAIMING, _added(node_of(_A.label("topology.kubernetes.io/zone", "y")))
    ),
    ("VolumeZone", "PersistentVolume ALL"): Fault(
        [_CLAIM, _ZONAL, _ZONAL_NODE], _CLAIMING, _added(replace(_ZONAL, labels={"topology.kubernetes.io/zone": "y"}))
    ),
    ("VolumeZone", "PersistentVolumeClaim ALL"): Fault(
        [_CLAIM, _ZONAL, _ZONAL_NODE], _CLAIMING, _added(replace(_CLAIM, volume="gone"))
    ),
    ("VolumeZone", "StorageClass ALL"): Fault(
        [_UNBOUND, _CLASS, _ZONAL_NODE], _CLAIMING, _added(replace(_CLASS, volume_binding_mode="Immediate"))
    ),
    ("VolumeRestrictions", "Pod NODE"): Fault(
        [node_of(_A)], replace(_ASKS, volumes=(_DISK,)), _added(replace(_ON_A, volumes=(_DISK,)))
    ),
    ("VolumeRestrictions", COUNTERS): Fault(
        [node_of(_A), replace(_CLAIM, access_modes=frozenset({"ReadWriteOncePod"}))],
        _CLAIMING,
        _added(replace(_ON_A, volumes=_CLAIMING.volumes)),
    ),
    ("VolumeRestrictions", "PersistentVolumeClaim ALL"): Fault(
        [node_of(_A), _CLAIM, replace(_ON_A, volumes=_CLAIMING.volumes)],
        _CLAIMING,
        _added(replace(_CLAIM, access_modes=frozenset({"ReadWriteOncePod"}))),
        too=COUNTERS,
    ),
    ("NodeVolumeLimits", "CSINode NODE"): Fault(
        [node_of(_A), _ONE_VOLUME, _CLAIM, _VOLUME], _CLAIMING, _added(replace(_ONE_VOLUME, volume_limits={EBS: 0}))
    ),
    ("NodeVolumeLimits", "CSIDriver ALL"): Fault(
        [node_of(_A), _CLAIM, _VOLUME], _CLAIMING, _added(CSIDriver(name=EBS, prevents_scheduling_if_missing=True))
    ),
    ("NodeVolumeLimits", "Pod NODE"): Fault(_FULL_OF_VOLUMES[:-1], _CLAIMING, _added(_TAKES_ONE)),
    ("NodeVolumeLimits", "PersistentVolumeClaim ALL"): Fault(
        _FULL_OF_VOLUMES, _CLAIMING, _added(replace(_CLAIM, volume="pw"))
    ),
    ("NodeVolumeLimits", "PersistentVolume ALL"): Fault(
        _FULL_OF_VOLUMES, _CLAIMING, _added(replace(_VOLUME, source=_OTHER_VOLUME.source))
    ),
    ("NodeVolumeLimits", "StorageClass ALL"): Fault(
        [*_FULL_OF_VOLUMES, _UNBOUND, _CLASS], _CLAIMING, _added(replace(_CLASS, provisioner="other"))
    ),
    ("NodeVolumeLimits", "VolumeAttachment ALL"): Fault(
        [node_of(_A), _ONE_VOLUME, _CLAIM, _VOLUME, _OTHER_VOLUME],
        _CLAIMING,
        _added(VolumeAttachment(name="at", attacher=EBS, node="a", volume="pw")),
    ),
    ("VolumeBinding", "Node NODE"): Fault([_ZONES[0], _CLAIM, _VOLUME], _CLAIMING, _added(node_of(_A))),
    ("VolumeBinding", "CSINode NODE"): Fault(
        [_ZONAL_NODE, _CLAIM, _MIGRATABLE],
        _CLAIMING,
        _added(CSINode(name="a", migrated_plugins=frozenset({IN_TREE_EBS}))),
    ),
    ("VolumeBinding", "PersistentVolumeClaim ALL"): Fault(
        [*_ZONES, _CLAIM, _VOLUME], _CLAIMING, _added(replace(_CLAIM, phase="Lost"))
    ),
    ("VolumeBinding", "PersistentVolume ALL"): Fault(
        [*_ZONES, _CLAIM, _VOLUME], _CLAIMING, _added(replace(_VOLUME, node_affinity=_reached_from("zone", "y")))
    ),
    ("VolumeBinding", "StorageClass ALL"): Fault(
        [*_ZONES, _UNBOUND, _CLASS], _CLAIMING, _added(replace(_CLASS, allowed_topologies=_reached_from("zone", "y")))
    ),
    ("VolumeBinding", "CSIDriver ALL"): Fault(
        [*_ZONES, _UNBOUND, _CLASS], _CLAIMING, _added(CSIDriver(name=EBS, storage_capacity=True))
    ),
    ("VolumeBinding", "CSIStorageCapacity ALL"): Fault(
        [*_ZONES, _UNBOUND, _CLASS, CSIDriver(name=EBS, storage_capacity=True)],
        _CLAIMING,
        _added(replace(_ROOM, topology=replace(_ROOM.topology, nothing=False))),
    ),
    ("PodTopologySpread", "Node ALL ADD/DELETE"): Fault([_ZONES[0], _ON_A], _SPREAD, _added(_ZONES[1])),
    ("PodTopologySpread", "Node ALL UPDATE"): Fault(
        [_ZONES[0], node_of(_B.label("zone", "x")), _ON_A], _SPREAD, _added(_ZONES[1])
    ),
    ("PodTopologySpread", COUNTERS): Fault(_ZONES, _SPREAD, _added(_ON_A)),
}
"""Rule -> the life that shows it."""


NEWEST = rules_of(RELEASES[-1])
"""Every rule has a part in its answers."""
ROWS = [pytest.param(row, id=f"{row[0]}-{row[1].replace(' ', '-')}") for row in FAULTS]


def profile_of(plugin: AnyFilter | AnyScore) -> Profile:
    """Enable every side that a plugin has, and another filter, so that there is a chain of them."""
    filters = (NodeName(), plugin) if isinstance(plugin, FilterPlugin) else (NodeName(),)
    scores = ((plugin, 1),) if isinstance(plugin, ScorePlugin) else ()
    return Profile(filters=filters, scores=scores)


class Life:
    """The life of a cluster that shows a fault, told to a cache that has the fault, or not."""

    def __init__(self, row: Row, *, faulty: bool, shadow_share: float = 0.0) -> None:
        self.fault = FAULTS[row]
        plugin = plugin_of(row[0])
        self.profile = profile_of(without(plugin, row[1], self.fault.too) if faulty else without(plugin))
        self.mirror = ClusterMirror(rules=NEWEST)
        self.reported: list[Mismatch] = []
        options = CacheOptions(mode="spec", shadow_share=shadow_share)
        self.cache = EquivalenceCache(self.mirror, self.profile.plugins, options, self.reported.append)
        tell(self.mirror, [ClusterEvent("Add", each) for each in self.fault.before])

    def goes_on(self) -> None:
        tell(self.mirror, self.fault.then)

    def cached(self) -> Rendered:
        return self._rendered(self.cache.evaluation(self.fault.asks))

    def fresh(self) -> Rendered:
        return self._rendered(FreshEvaluation(self.mirror, self.fault.asks))

    def _rendered(self, evaluation: Evaluation) -> Rendered:
        return rendered(self.profile, evaluation, whole(self.mirror))


def test_every_rule_of_every_plugin_is_left_out_once() -> None:
    rules = {(name, rule) for name in PLUGINS for rule in rule_names(plugin_of(name))}

    assert set(FAULTS) == rules


@pytest.mark.parametrize("row", ROWS)
def test_with_all_rules_the_cache_is_right(row: Row) -> None:
    life = Life(row, faulty=False)
    before = life.cached()
    assert before == life.fresh()

    life.goes_on()
    assert life.cached() == life.fresh() != before
    assert life.cached() == life.fresh()


@pytest.mark.parametrize("row", ROWS)
def test_without_the_rule_the_cache_is_wrong(row: Row) -> None:
    life = Life(row, faulty=True)
    assert life.cached() == life.fresh()

    life.goes_on()
    assert life.cached() != life.fresh()


@pytest.mark.parametrize("row", ROWS)
def test_the_shadow_check_finds_that_the_rule_is_left_out(row: Row) -> None:
    life = Life(row, faulty=True, shadow_share=1.0)
    life.cached()
    assert life.cache.statistics.checks
    assert life.reported == []

    life.goes_on()
    assert life.cached() == life.fresh(), "the answer is the fresh one"
    assert life.reported
    found = [difference for mismatch in life.reported for difference in mismatch.differences]
    assert {difference.plugin for difference in found} in ({row[0]}, {row[0], "first failing filter"})
    assert len(life.cache) == 0, "nothing is trusted any more"

    mismatches = life.cache.statistics.mismatches
    assert mismatches == len(found)
    life.cached()
    assert life.cache.statistics.mismatches == mismatches, "told once"


# The machine of the property test, on a few plugins with a fault each.

FOUND_BY_MACHINE = [
    ("InterPodAffinity", COUNTERS),
    ("InterPodAffinity", "Node NODE"),
    ("NodeResourcesFit", "Pod NODE"),
    ("TaintToleration", "Node NODE"),
    ("ImageLocality", "Node ALL UPDATE"),
]
QUICKLY = settings(
    max_examples=100,
    stateful_step_count=100,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    print_blob=False,
    report_multiple_bugs=False,
)


@pytest.mark.parametrize("row", FOUND_BY_MACHINE, ids=lambda row: f"{row[0]}-{row[1].replace(' ', '-')}")
def test_the_property_test_finds_that_the_rule_is_left_out(row: Row) -> None:
    class Faulty(EquivalenceMachine):
        profile = profile_of(without(plugin_of(row[0]), row[1]))

    with pytest.raises(AssertionError, match=row[0]):
        run_machine(seed(1)(Faulty), settings=QUICKLY)
