"""Pending pods, each kept waiting by another rule of devices, with what a person needs to be told."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from app.objects.decode_pod import decode_pod
from app.objects.resources import RESOURCES
from core.diagnosis.diagnosis import Diagnosis
from core.events import ClusterEvent, Kind
from core.objects.devices import DeviceTaintRule, ResourceClaim, ResourceSlice
from core.objects.kinds import DeviceClass
from core.plugins.dynamicresources.plugin import DynamicResources
from core.plugins.nodeunschedulable import NodeUnschedulable
from core.profile import Profile
from core.releases.differences import rules_of
from core.releases.release import nearest
from tests.conformance.engine import load
from tests.core.plugins.dynamicresources.world import (
    DRIVER,
    OF_DRIVER,
    V1,
    alternative,
    claim,
    device,
    in_use,
    request,
    slice_of,
    world,
)

_KINDS: Final[dict[str, Kind]] = {
    "deviceclasses": DeviceClass,
    "resourceslices": ResourceSlice,
    "resourceclaims": ResourceClaim,
    "devicetaintrules": DeviceTaintRule,
}
GPU: Final = {"metadata": {"name": "gpu"}, "spec": {"selectors": [OF_DRIVER]}}
HOT: Final = {"key": "hot", "value": "yes", "effect": "NoSchedule"}
BIG: Final = {"cel": {"expression": f'device.attributes["{DRIVER}"].model == "h100"'}}
COUNTERS: Final = [{"name": "gpu0", "counters": {"memory": {"value": "40Gi"}}}]
NUMA: Final = f"{DRIVER}/numa"


class Waiting(NamedTuple):
    """A pending pod in its cluster, the sentences, and the changes that help, the first two of each kind."""

    case: V1
    measured: list[str]
    helps: list[str]


def decided(case: V1) -> Diagnosis:
    """Decide about the pod of a case by devices, and by the nodes that are `cordoned`."""
    rules = rules_of(nearest(case["kubernetes"]).release)
    names = [each["metadata"]["name"] for each in case["nodes"]]
    specs = [{"unschedulable": name in case.get("cordoned", ())} for name in names]
    nodes = [{**each, "spec": spec} for each, spec in zip(case["nodes"], specs, strict=True)]
    mirror = load(case["namespaces"], nodes, case["pods"], rules=rules)
    for member, kind in _KINDS.items():
        for each in case.get(member, ()):
            mirror.apply(ClusterEvent("Add", RESOURCES[kind].decode(msgspec.json.encode(each))))
    pod = decode_pod(msgspec.json.encode(case["pod"]))
    profile = Profile((NodeUnschedulable(), DynamicResources()), ())
    return Diagnosis(profile, mirror, pod, mirror.batch(names))


def user(name: str, node: str, *claims: str, **metadata: Any) -> V1:  # noqa: ANN401 - of any kind
    """Return a pod on a node that uses claims."""
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name, **metadata},
        "spec": {"nodeName": node, "resourceClaims": [{"name": each, "resourceClaimName": each} for each in claims]},
    }


def used(name: str, *devices: str, by: Sequence[str], pool: str = "pool", **fields: Any) -> V1:  # noqa: ANN401
    """Return a claim with devices that pods use."""
    status = in_use(*devices, pool=pool, **fields)
    status["reservedFor"] = [{"resource": "pods", "name": each, "uid": each} for each in by]
    return claim([request()], name, status)


def local(node: int, *devices: V1, **fields: Any) -> V1:  # noqa: ANN401 - of any kind
    """Return the slice of a node, a pool of its own."""
    return slice_of(f"s{node}", devices, f"p{node}", nodeName=f"n{node}", **fields)


def _models(*models: str) -> list[V1]:
    return [device(f"g{at}", {"model": {"string": each}}) for at, each in enumerate(models)]


def _numa(*nodes: int) -> list[V1]:
    return [device(f"g{at}", {"numa": {"int": each}}) for at, each in enumerate(nodes)]


def _parts(number: int, size: str) -> list[V1]:
    uses = [{"counterSet": "gpu0", "counters": {"memory": {"value": size}}}]
    return [device(f"part{at}", consumesCounters=uses) for at in range(number)]


ON_N1: Final = claim(
    [request()],
    "c",
    {
        "allocation": {
            **in_use("g0", pool="p1")["allocation"],
            "nodeSelector": {
                "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
            },
        },
        "reservedFor": [{"resource": "pods", "name": "first", "uid": "first"}],
    },
)
TWO: Final = [device("g0"), device("g1")]
SHARED: Final = device("g0", capacity={"memory": {"value": "40Gi"}}, allowMultipleAllocations=True)

WAITING: Final = {
    "all devices of the class are held": Waiting(
        world(
            [local(0, *TWO), local(1, *TWO)],
            [
                claim([request()]),
                used("t0", "g0", "g1", by=["train-0"], pool="p0"),
                used("t1", "g0", "g1", by=["train-1"], pool="p1"),
            ],
            nodes=2,
            pods=[user("train-0", "n0", "t0"), user("train-1", "n1", "t1")],
        ),
        [
            (
                "claim default/c, request r: needs 1 device of DeviceClass gpu; 4 devices of 2 nodes match: 4 held by "
                "default/train-0 (2), default/train-1 (2), none free"
            ),
            "n0: request r needs 1, 2 match: 2 held by default/train-0, none free",
        ],
        [
            "remove pod default/train-0, which no owner makes again, from n0 (then it fits on n0)",
            "remove pod default/train-1, which no owner makes again, from n1 (then it fits on n1)",
            "add a node like n0",
        ],
    ),
    "a selector matches no device": Waiting(
        world(
            [local(0, *_models("a100", "a100")), local(1, *_models("l40"))],
            [claim([request(selectors=[BIG])])],
            nodes=2,
        ),
        [
            (
                "claim default/c, request r: needs 1 device of DeviceClass gpu; the selector "
                f'device.attributes["{DRIVER}"].model == "h100" matches none of 3 devices; they have model a100 (2), '
                "l40 (1)"
            ),
        ],
        [
            (
                f'make claim default/c again without the selector device.attributes["{DRIVER}"].model == "h100" in '
                "request r (then it fits on n0)"
            )
        ],
    ),
    "a taint of the devices is not tolerated": Waiting(
        world([local(0, device("g0", taints=[HOT]), device("g1", taints=[HOT]))], [claim([request()])]),
        [
            (
                "claim default/c, request r: needs 1 device of DeviceClass gpu; 2 devices of 1 node match: 2 tainted "
                "(hot=yes:NoSchedule), none free"
            ),
        ],
        [
            (
                "make claim default/c again with a toleration of the device taint hot=yes:NoSchedule in request r "
                "(then it fits on n0)"
            )
        ],
    ),
    "no node has devices with one value of an attribute": Waiting(
        world(
            [local(0, *_numa(0, 0, 1)), local(1, *_numa(0, 1, 2))],
            [claim([request(count=3)], constraints=[{"matchAttribute": NUMA}])],
            nodes=2,
        ),
        [
            "claim default/c, request r: needs 3 devices of DeviceClass gpu; 6 devices of 2 nodes match: 6 free",
            f"n0: matchAttribute {NUMA}: needs 3 devices with the same value; free are 0 (2), 1 (1)",
        ],
        [
            "make claim default/c again with count 2 instead of 3 in request r (then it fits on n0)",
            f"make claim default/c again without the constraint on {NUMA} (then it fits on n0)",
        ],
    ),
    "more devices than any node has": Waiting(
        world([local(0, *TWO), local(1, TWO[0])], [claim([request(count=8)])], nodes=2),
        [
            "claim default/c, request r: needs 8 devices of DeviceClass gpu; 3 devices of 2 nodes match: 3 free",
            "n0: request r needs 8, 2 match: 2 free",
        ],
        ["make claim default/c again with count 2 instead of 8 in request r (then it fits on n0)"],
    ),
    "the counters of a partitionable device are used up": Waiting(
        world(
            [
                slice_of("s", _parts(3, "20Gi"), count=2),
                slice_of("t", [], count=2, sharedCounters=COUNTERS),
            ],
            [
                claim([request()]),
                used("x", "part0", by=["one"]),
                used("y", "part1", by=["two"]),
            ],
            pods=[user("one", "n0", "x"), user("two", "n0", "y")],
        ),
        [
            (
                "claim default/c, request r: needs 1 device of DeviceClass gpu; 3 devices of 1 node match: 2 held by "
                "default/one (1), default/two (1), 1 short of counters (gpu0/memory: needs 20Gi, 0 left of 40Gi), "
                "none free"
            )
        ],
        [
            "remove pod default/one, which no owner makes again, from n0 (then it fits on n0)",
            "add a node like n0",
        ],
    ),
    "the capacity of a shareable device is used up": Waiting(
        world(
            [slice_of("s", [SHARED])],
            [
                claim([request(capacity={"requests": {"memory": "30Gi"}})]),
                used("x", "g0", by=["one"], shareID="a", consumedCapacity={"memory": "20Gi"}),
            ],
            pods=[user("one", "n0", "x")],
        ),
        [
            (
                "claim default/c, request r: needs 1 device of DeviceClass gpu; 1 device of 1 node matches: 1 full "
                "(memory: needs 30Gi, most left 20Gi; in use by default/one), none free"
            ),
        ],
        [
            "make claim default/c again with memory 20Gi instead of 30Gi in request r (then it fits on n0)",
            "remove pod default/one, which no owner makes again, from n0 (then it fits on n0)",
            "add a node like n0",
        ],
    ),
    "the class does not exist": Waiting(
        world([local(0, *TWO)], [claim([request(deviceClassName="gpus")])]),
        ["claim default/c, request r: DeviceClass gpus does not exist; DeviceClasses: gpu"],
        [
            "make claim default/c again with deviceClassName gpu instead of gpus in request r (then it fits on n0)",
        ],
    ),
    "the claim does not exist": Waiting(
        world(
            [local(0, *TWO)],
            [claim([request()], "data-gpu")],
            pod={
                "metadata": {"name": "p", "namespace": "default", "uid": "u"},
                "spec": {"resourceClaims": [{"name": "c", "resourceClaimName": "datagpu"}]},
            },
        ),
        ["claim default/datagpu does not exist; claims of the namespace: default/data-gpu"],
        [],
    ),
    "the claim has devices on another node": Waiting(
        world(
            [local(0, *TWO), local(1, *TWO)],
            [ON_N1],
            nodes=2,
            pods=[user("first", "n1", "c")],
            cordoned=["n1"],
        ),
        [f"claim default/c has {DRIVER}/p1/g0 already, for 1 node, n1; in use by default/first"],
        [
            "uncordon n1",
            "remove pod default/first, which no owner makes again, from n1 (then it fits on n0)",
        ],
    ),
    "the pool is incomplete": Waiting(
        world([slice_of("s", TWO, count=2)], [claim([request()])]),
        [
            "claim default/c, request r: needs 1 device of DeviceClass gpu; no pool that can be used has a device",
            f"n0: pool {DRIVER}/pool is incomplete: its driver has not published all ResourceSlices yet",
        ],
        [],
    ),
    "no alternative has enough capacity": Waiting(
        world(
            [local(0, device("g0", capacity={"memory": {"value": "24Gi"}}))],
            [
                claim(
                    [
                        {
                            "name": "r",
                            "firstAvailable": [
                                alternative("big", capacity={"requests": {"memory": "80Gi"}}),
                                alternative("two", count=2),
                            ],
                        }
                    ]
                )
            ],
        ),
        [
            (
                "claim default/c, request r/big: needs 1 device of DeviceClass gpu; 1 device of 1 node matches: 1 "
                "too small (memory: needs 80Gi, most is 24Gi), none free"
            ),
            "claim default/c, request r/two: needs 2 devices of DeviceClass gpu; 1 device of 1 node matches: 1 free",
        ],
        ["make claim default/c again with count 1 instead of 2 in request r/two (then it fits on n0)"],
    ),
}
