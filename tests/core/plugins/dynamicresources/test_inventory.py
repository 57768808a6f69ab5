"""What events change of the devices, one kind after the other."""

from typing import Any, Final

import msgspec
import pytest

from app.objects.resources import RESOURCES
from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import ClusterEvent, Kind
from core.mirror.cluster import ClusterMirror
from core.objects.devices import DeviceID, DeviceTaintRule, ResourceClaim, ResourceSlice
from core.objects.kinds import DeviceClass
from core.objects.node import Node
from core.plugins.dynamicresources.inventory import Inventory
from core.plugins.dynamicresources.plugin import DynamicResources
from core.releases.differences import rules_of
from core.releases.release import RELEASES
from tests.conformance.engine import decoded_pod
from tests.core.plugins.dynamicresources.world import (
    DRIVER,
    V1,
    claim,
    device,
    in_use,
    request,
    slice_of,
    world,
)

IN_Z1: Final = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]}]}
OTHER: Final = {"cel": {"expression": 'device.driver == "other"'}}


class Life:
    """A mirror of a world that changes, and how many nodes have devices for the pod."""

    def __init__(self, case: V1, release: str = "1.37") -> None:
        self.mirror = ClusterMirror(rules=rules_of(next(each for each in RELEASES if str(each) == release)))
        self.mirror.derived(DynamicResources.states[0])
        self._pod = decoded_pod(case["pod"])
        self._plugin = DynamicResources()
        self._cache = EquivalenceCache(self.mirror, [self._plugin], CacheOptions(mode="spec"))
        for member, kind in (("nodes", Node), ("deviceclasses", DeviceClass), ("resourceslices", ResourceSlice)):
            for each in case[member]:
                self.tell(kind, each)
        for each in case["resourceclaims"]:
            self.tell(ResourceClaim, each)

    def tell(self, kind: Kind, v1_object: Any, action: str = "Update") -> int:  # noqa: ANN401 - of any kind
        """Apply an event, and return how many nodes have devices."""
        decoded = RESOURCES[kind].decode(msgspec.json.encode(v1_object))
        self.mirror.apply(ClusterEvent("Delete" if action == "Delete" else "Update", decoded))
        return self.fitting()

    def cached(self) -> int:
        """Return how many nodes have devices by the cache of verdicts."""
        batch = self.mirror.all_nodes()
        verdicts = self._cache.evaluation(self._pod).verdicts(self._plugin, batch)
        return len(batch) if verdicts is None else verdicts.codes.tolist().count(0)

    def fitting(self) -> int:
        """Return how many nodes have devices."""
        plugin, batch = DynamicResources(), self.mirror.all_nodes()
        _, state = plugin.pre_filter(self.mirror, self._pod)
        return 0 if state is None else plugin.filter(state, batch).codes.tolist().count(0)


def test_a_node_that_is_labelled_otherwise_sees_other_slices() -> None:
    life = Life(world([slice_of("s", [device("g")], nodeSelector=IN_Z1)], [claim([request()])]))
    assert life.fitting() == 0
    assert life.tell(Node, {"metadata": {"name": "n0", "labels": {"zone": "z1"}}}) == 1
    assert life.tell(Node, {"metadata": {"name": "n0", "labels": {"zone": "z2"}}}) == 0


def test_a_class_that_selects_otherwise_selects_other_devices() -> None:
    life = Life(world([slice_of("s", [device("g")])], [claim([request()])]))
    assert life.fitting() == 1
    assert life.tell(DeviceClass, {"metadata": {"name": "gpu"}, "spec": {"selectors": [OTHER]}}) == 0
    assert life.tell(DeviceClass, {"metadata": {"name": "gpu"}}) == 1


def test_a_device_is_in_use_as_long_as_any_claim_has_it() -> None:
    life = Life(world([slice_of("s", [device("g")])], [claim([request()])]))
    for name, fit in (("x", 0), ("y", 0)):
        assert life.tell(ResourceClaim, claim([request()], name, in_use("g"))) == fit
    assert life.tell(ResourceClaim, claim([request()], "x")) == 0
    assert life.tell(ResourceClaim, claim([request()], "y"), "Delete") == 1


def test_a_cached_verdict_knows_that_a_device_was_taken_and_given_back() -> None:
    life = Life(world([slice_of("s", [device("g")])], [claim([request()])]))
    assert life.cached() == 1
    life.tell(ResourceClaim, claim([request()], "x", in_use("g")))
    assert life.cached() == 0
    life.tell(ResourceClaim, claim([request()], "x"), "Delete")
    assert life.cached() == 1


def test_a_slice_of_another_node_completes_a_pool() -> None:
    one, other = (slice_of(name, [device(name)], count=2, nodeName=node) for name, node in (("a", "n0"), ("b", "n1")))
    life = Life(world([one], [claim([request()])], nodes=2))
    assert life.fitting() == 0
    assert life.tell(ResourceSlice, other) == 2
    assert life.tell(ResourceSlice, other, "Delete") == 0


def test_a_rule_that_goes_takes_its_taint_along() -> None:
    life = Life(world([slice_of("s", [device("g")])], [claim([request()])]))
    taint = {"key": "hot", "effect": "NoExecute"}
    rule = {"metadata": {"name": "r"}, "spec": {"deviceSelector": {"driver": DRIVER}, "taint": taint}}
    assert life.tell(DeviceTaintRule, rule) == 0
    assert life.tell(DeviceTaintRule, rule, "Delete") == 1


def test_counters_that_are_changed_in_1_36_leave_the_other_slices_of_their_node() -> None:
    counters = slice_of("c", [], count=2, sharedCounters=[{"name": "set", "counters": {"slots": {"value": "4"}}}])
    life = Life(world([slice_of("s", [device("g")], count=2), counters], [claim([request()])]), "1.36")
    assert life.fitting() == 1
    assert life.tell(ResourceSlice, counters) == 1
    assert life.tell(ResourceSlice, counters, "Delete") == 0
    assert life.tell(ResourceSlice, counters) == 1


def test_the_nodes_of_a_slice_that_is_left_out_are_not_read() -> None:
    invalid = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": []}]}]}
    counters = [{"name": "set", "counters": {"slots": {"value": "4"}}}]
    left_out = slice_of("x", [], pool="other", sharedCounters=counters, nodeSelector=invalid)
    case = world([slice_of("s", [device("g")]), left_out], [claim([request()])])
    assert Life(case, "1.35").fitting() == 1
    assert Life(case, "1.37").fitting() == 0


def test_counters_without_devices_in_1_36_reach_nodes_that_were_judged_before() -> None:
    sets = [{"name": "set", "counters": {}}]
    counters = slice_of("c", [], "other", count=2, sharedCounters=sets, nodeName="gone")
    every = claim([request(allocationMode="All", count=0)])
    life = Life(world([slice_of("s", [device("g")], nodeName="n1")], [every], nodes=2), "1.36")
    assert life.fitting() == 1
    assert life.tell(ResourceSlice, counters) == 0
    assert life.tell(ResourceSlice, counters, "Delete") == 1


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"reservedFor": [{"resource": "pods", "name": "q", "uid": "q"}]}, id="reserved"),
        pytest.param({"allocation": in_use("g")["allocation"] | {"nodeSelector": IN_Z1}}, id="available-elsewhere"),
    ],
)
def test_an_update_of_a_claim_that_has_the_same_devices_changes_no_verdict(status: V1) -> None:
    """There are many: of pods that share a claim, and of whether its devices are bound."""
    life = Life(world([slice_of("s", [device("g"), device("h")])], [claim([request()])]))
    life.tell(ResourceClaim, claim([request()], "x", in_use("g")))
    inventory = life.mirror.derived(Inventory)
    before = inventory.revision, inventory.now, dict(inventory.uses)
    life.tell(ResourceClaim, claim([request()], "x", in_use("g") | status))
    assert (inventory.revision, inventory.now, inventory.uses) == before
    life.tell(ResourceClaim, claim([request()], "x", in_use("h")))
    assert inventory.revision > before[0]
    assert inventory.now > before[1]
    assert [*inventory.taken] == [DeviceID(DRIVER, "pool", "h")]


def test_a_cached_verdict_knows_that_a_claim_with_the_same_devices_is_being_deleted() -> None:
    life = Life(world([slice_of("s", [device("g")])], [claim([request()], "c", in_use("g"))]))
    assert life.cached() == 1
    deleted = claim([request()], "c", in_use("g"))
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    life.tell(ResourceClaim, deleted)
    assert life.cached() == 0


def test_the_use_of_a_pool_changes_once_by_a_claim_with_several_of_its_devices() -> None:
    life = Life(world([slice_of("s", [device("g"), device("h")])], []))
    inventory = life.mirror.derived(Inventory)
    assert inventory.uses[DRIVER, "pool"] == 0
    life.tell(ResourceClaim, claim([request()], "x", in_use("g", "h")))
    assert inventory.uses[DRIVER, "pool"] == 1


def test_a_claim_made_for_a_pod_is_known_as_it_last_was() -> None:
    """What the pod gets by it is read from there, even where its devices stay the same."""
    life = Life(world([slice_of("s", [device("g")])], []))
    inventory = life.mirror.derived(Inventory)
    made = claim([request()], "x", in_use("g"))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "u-q", "controller": True}
    made["metadata"] |= {
        "ownerReferences": [owner],
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
    }
    for version in ("1", "2"):
        made["metadata"]["resourceVersion"] = version
        life.tell(ResourceClaim, made)
        assert [each.resource_version for each in inventory.made_for["u-q"].values()] == [version]
    life.tell(ResourceClaim, made, "Delete")
    assert not inventory.made_for
