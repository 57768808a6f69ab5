"""One object of each kind of resource.k8s.io/v1 but DeviceClass, and what scheduling reads of it."""

from collections.abc import Mapping
from typing import Final

from core.events import Kind
from core.events import Object as Value
from core.objects.affinity import parse_node_selector
from core.objects.devices import (
    AllocatedDevice,
    Allocation,
    Attribute,
    Capacity,
    ClaimRequest,
    Constraint,
    CounterUse,
    Device,
    DeviceID,
    DeviceRequest,
    DeviceTaintRule,
    NodeChoice,
    RequestPolicy,
    ResourceClaim,
    ResourceSlice,
    ValidRange,
)
from core.objects.kinds import ControllerRef
from core.objects.pod import Taint, Toleration
from tests.builders import Object

_GI: Final = 2**30 * 10**9
_SELECTOR: Final = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}
_SELECTED: Final = parse_node_selector([([("zone", "In", ["a"])], ())])
_IDENTITY: Final = {"uid": "u", "resourceVersion": "42", "namespace": "shop"}
_GPU: Final = {"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}
_DEVICE: Final = {
    "name": "gpu-0",
    "attributes": {
        "model": {"string": "A100"},
        "dra.example.com/index": {"int": 0},
        "healthy": {"bool": True},
        "driver": {"version": "1.2.3"},
        "lanes": {"ints": [1]},
    },
    "capacity": {
        "memory": {
            "value": "40Gi",
            "requestPolicy": {
                "default": "1Gi",
                "validValues": ["1Gi"],
                "validRange": {"min": 1, "max": "2", "step": "1"},
            },
        }
    },
    "consumesCounters": [
        {"counterSet": "memory", "counters": {"bytes": {"value": "40Gi"}}, "compatibilityGroups": ["a"]}
    ],
    "nodeName": "n1",
    "allNodes": True,
    "nodeSelector": _SELECTOR,
    "taints": [{"key": "hot", "value": "yes", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}],
    "bindsToNode": True,
    "bindingConditions": ["Attached"],
    "bindingFailureConditions": ["Broken"],
    "allowMultipleAllocations": True,
}
_REQUEST: Final = {
    "deviceClassName": "gpu",
    "selectors": [{"cel": {"expression": "true"}}, {}],
    "allocationMode": "All",
    "count": 2,
    "adminAccess": True,
    "tolerations": [{"key": "hot", "operator": "Exists", "effect": "NoSchedule"}],
    "capacity": {"requests": {"memory": "1Gi"}},
    "derivedAttributes": [{"name": "a/b", "expression": "1"}],
}
_RESULT: Final = {
    **_GPU,
    "request": "r",
    "adminAccess": True,
    "shareID": "s1",
    "consumedCapacity": {"memory": "1Gi"},
    "bindingConditions": ["Attached"],
    "bindingFailureConditions": ["Broken"],
    "skipNodeOperations": ["Prepare"],
}

FULL_DEVICES: Final[Mapping[Kind, Object]] = {
    ResourceSlice: {
        "metadata": {"name": "n1-gpu", **_IDENTITY},
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "n1", "generation": 3, "resourceSliceCount": 1},
            "nodeName": "n1",
            "nodeSelector": _SELECTOR,
            "allNodes": True,
            "perDeviceNodeSelection": False,
            "sharedCounters": [{"name": "memory", "counters": {"bytes": {"value": "80Gi"}}}],
            "devices": [_DEVICE],
        },
    },
    ResourceClaim: {
        "metadata": {
            "name": "train-gpu",
            **_IDENTITY,
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u-p", "controller": True}],
        },
        "spec": {
            "devices": {
                "requests": [
                    {"name": "r", "exactly": _REQUEST},
                    {"name": "f", "firstAvailable": [{"name": "s", "deviceClassName": "nic", "count": 1}]},
                ],
                "constraints": [{"requests": ["r"], "matchAttribute": "a/b"}, {"distinctAttribute": "a/c"}],
            }
        },
        "status": {
            "allocation": {
                "devices": {"results": [_RESULT]},
                "nodeSelector": _SELECTOR,
                "allocationTimestamp": "2026-01-01T00:00:00Z",
            },
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "u-p"}],
            "devices": [{**_GPU, "conditions": [{"type": "Broken", "status": "True"}]}],
        },
    },
    DeviceTaintRule: {
        "metadata": {"name": "hot", **_IDENTITY},
        "spec": {"deviceSelector": _GPU, "taint": {"key": "hot", "value": "yes", "effect": "NoExecute"}},
    },
}
EXPECTED_DEVICES: Final[tuple[Value, ...]] = (
    ResourceSlice(
        name="n1-gpu",
        driver="gpu.example.com",
        pool="n1",
        generation=3,
        slice_count=1,
        nodes=NodeChoice("n1", all_nodes=True, selector=_SELECTED),
        per_device=False,
        devices=(
            Device(
                name="gpu-0",
                attributes={
                    "model": Attribute("string", "A100"),
                    "dra.example.com/index": Attribute("int", 0),
                    "healthy": Attribute("bool", value=True),
                    "driver": Attribute("version", "1.2.3"),
                    "lanes": Attribute("ints", (1,)),
                },
                capacity={
                    "memory": Capacity(40 * _GI, RequestPolicy(_GI, (_GI,), ValidRange(10**9, 2 * 10**9, 10**9)))
                },
                consumes=(CounterUse("memory", (("bytes", 40 * _GI),)),),
                nodes=NodeChoice("n1", all_nodes=True, selector=_SELECTED),
                taints=(Taint("hot", "yes", "NoSchedule"),),
                binds_to_node=True,
                binding_conditions=("Attached",),
                binding_failure_conditions=("Broken",),
                shareable=True,
            ),
        ),
        shared_counters=(CounterUse("memory", (("bytes", 80 * _GI),)),),
        has_groups=True,
        uid="u",
        resource_version="42",
    ),
    ResourceClaim(
        namespace="shop",
        name="train-gpu",
        requests=(
            ClaimRequest(
                "r",
                DeviceRequest(
                    "r",
                    "gpu",
                    "All",
                    2,
                    ("true", None),
                    admin_access=True,
                    tolerations=(Toleration("hot", "Exists", "", "NoSchedule"),),
                    capacities=(("memory", _GI),),
                    derives=True,
                ),
            ),
            ClaimRequest("f", first_available=(DeviceRequest("s", "nic"),)),
        ),
        constraints=(Constraint(frozenset({"r"}), match="a/b"), Constraint(distinct="a/c")),
        allocation=Allocation(
            (AllocatedDevice("r", DeviceID(**_GPU), admin_access=True, share="s1", consumed=(("memory", _GI),)),),
            _SELECTED,
            unbindable=True,
            needs_optional_operations=True,
        ),
        reserved_for=("u-p",),
        deleting=True,
        controller=ControllerRef("Pod", "p", "u-p", "v1"),
        for_extended=True,
        uid="u",
        resource_version="42",
    ),
    DeviceTaintRule(
        name="hot",
        taint=Taint("hot", "yes", "NoExecute"),
        driver="gpu.example.com",
        pool="n1",
        device="gpu-0",
        uid="u",
        resource_version="42",
    ),
)
