"""Forms of pods with ResourceClaims: very many devices, hostile selectors and constraints, odd claims and classes.

A document has a pod, and the objects that are there when it is explained.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from tests.bench.cluster import node_name
from tests.cost.attack import ROOM, Object, compact, grown
from tests.cost.forms.form import NODES, Form, pod
from tests.cost.forms.watched import v1

_API: Final = "resource.k8s.io/v1"
_DRIVER: Final = "gpu.example.com"
_AREA: Final = "DynamicResources"
_NAMESPACE: Final = "ns-000"
_EXPRESSION: Final = 10 * 1024
_ALTERNATIVES: Final = 32
_OF_SLICE: Final = 128
_SMALL: Final = (4096,)


def _class(name: str = "gpu", *expressions: str) -> Object:
    return v1("DeviceClass", name, _API, spec={"selectors": _selectors(expressions)})


def _selectors(expressions: Sequence[str]) -> list[Object]:
    return [{"cel": {"expression": each}} for each in expressions]


def _device(index: int, **fields: Any) -> Object:  # noqa: ANN401 - JSON
    attributes = {"uuid": {"string": f"u-{index}"}, "index": {"int": index}}
    return {"name": f"d-{index}", "attributes": attributes, **fields}


def _slices(count: int, driver: str = _DRIVER, **spec: Any) -> list[Object]:  # noqa: ANN401 - JSON
    """Return one pool of devices, which all nodes can use."""
    starts = range(0, count, _OF_SLICE)
    pool = {"name": "pool", "generation": 1, "resourceSliceCount": len(starts)}
    return [
        v1(
            "ResourceSlice",
            f"{driver}-{start}",
            _API,
            spec={
                "driver": driver,
                "pool": pool,
                "allNodes": True,
                "devices": [_device(index) for index in range(start, min(count, start + _OF_SLICE))],
                **spec,
            },
        )
        for start in starts
    ]


def _of_each_node(nodes: int, devices: int) -> list[Object]:
    return [
        v1(
            "ResourceSlice",
            f"s-{index}",
            _API,
            spec={
                "driver": _DRIVER,
                "pool": {"name": node_name(index), "generation": 1, "resourceSliceCount": 1},
                "nodeName": node_name(index),
                "devices": [_device(devices * index + at) for at in range(devices)],
            },
        )
        for index in range(nodes)
    ]


def _exactly(name: str, expressions: Sequence[str] = (), **fields: Any) -> Object:  # noqa: ANN401 - JSON
    exactly = {"deviceClassName": "gpu", "selectors": _selectors(expressions), **fields}
    return {"name": name, "exactly": {"allocationMode": "ExactCount", "count": 1, **exactly}}


def _claim(requests: Sequence[Object], namespace: str = _NAMESPACE, **fields: Any) -> Object:  # noqa: ANN401 - JSON
    more = fields.pop("metadata", {})
    devices = {"requests": [*requests], **fields}
    return v1("ResourceClaim", "claim", _API, namespace, spec={"devices": devices}, metadata=more)


def _waiting(*objects: Object, template: bool = False) -> Object:
    """Return a pod that names the claim."""
    source = {"resourceClaimTemplateName" if template else "resourceClaimName": "claim"}
    status = {"resourceClaimStatuses": [{"name": "gpus", "resourceClaimName": "claim"}]} if template else None
    made = pod({"resourceClaims": [{"name": "gpus", **source}]}, status=status)
    return {"pod": made, "objects": [*objects]}


def _one_pool(size: int) -> Object:
    """16,000 devices in a pool, of which all are unlike, and a request that none of them meets."""
    del size
    claim = _claim([_exactly("r", [f'device.attributes["{_DRIVER}"].uuid == "none"'], count=8)])
    return _waiting(_class(), claim, *_slices(16_000))


def _one_pool_alike(size: int) -> Object:
    """Return the same with a constraint, so that all devices are searched."""
    del size
    claim = _claim([_exactly("r", count=2)], constraints=[{"matchAttribute": f"{_DRIVER}/uuid"}])
    return _waiting(_class(), claim, *_slices(16_000))


def _exponential(size: int) -> Object:
    """32 requests of 32 alternatives for 8 devices that could be exchanged, with a constraint that nothing meets."""
    del size
    alternatives = [
        {"name": f"s{at}", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
        for at in range(_ALTERNATIVES)
    ]
    requests = [{"name": f"r{at}", "firstAvailable": alternatives} for at in range(_ALTERNATIVES)]
    constraint = {"matchAttribute": f"{_DRIVER}/uuid", "requests": ["r30", "r31"]}
    return _waiting(_class(), _claim(requests, constraints=[constraint]), *_of_each_node(NODES, 8))


def _long_selector(size: int) -> Object:
    """Selectors of 10 KB, each of another text, for devices that are all unlike."""
    attribute = f'device.attributes["{_DRIVER}"].index'

    def expression(number: int) -> str:
        terms = [f"{attribute} != {number}"]
        while sum(map(len, terms)) + 4 * len(terms) < _EXPRESSION - 60:
            terms.append(f"{attribute} != {-len(terms)}")
        return " && ".join(terms)

    requests = grown(size - ROOM, lambda at: _exactly(f"r{at}", [expression(at)]))
    return _waiting(_class(), _claim(requests[:32]), *_slices(1000))


def _dear_selector(size: int) -> Object:
    """Selectors whose evaluation would take long."""
    del size
    numbers = "[1,2,3,4,5,6,7,8,9,10]"
    nested = "true"
    for variable in "abcdef":
        nested = f"{numbers}.all({variable}, {nested})"
    return _waiting(_class(), _claim([_exactly("r", [nested])]), *_slices(1000))


def _unlike_selectors(size: int) -> Object:
    """32 requests with selectors of their own, which read what no two of 40,000 devices have in common."""
    del size
    uuid = f'device.attributes["{_DRIVER}"].uuid'
    requests = [_exactly(f"r{at}", [f'{uuid} != "x-{at}-{of}"' for of in range(8)]) for at in range(32)]
    return _waiting(_class(), _claim(requests), *_of_each_node(NODES, 8))


def _two_drivers(size: int) -> Object:
    """Pools of one name and generation of two drivers, with the same devices."""
    claim = _claim([_exactly("r", count=32)], constraints=[{"matchAttribute": f"{_DRIVER}/index"}])
    del size
    return _waiting(_class(), claim, *_slices(1000), *_slices(1000, "other.example.com"))


def _selectors_of_a_class(size: int) -> Object:
    uuid = f'device.attributes["{_DRIVER}"].uuid'
    expressions = grown(size - ROOM, lambda at: f'{uuid} != "x-{at}"')
    return _waiting(_class("gpu", *expressions[:32]), _claim([_exactly("r")]), *_slices(1000))


def _form(name: str, make: Callable[[int], Object], sizes: tuple[int, ...] = ()) -> Form:
    size = len(compact(make(4096))) if not sizes else 0
    return Form(name, _AREA, "waiting", make, sizes=sizes or (size,))


def _small(name: str, *objects: Object, template: bool = False) -> Form:
    return Form(name, _AREA, "waiting", lambda _: _waiting(*objects, template=template), sizes=_SMALL)


FORMS: Final = [
    _form("devices-one-pool", _one_pool),
    _form("devices-one-pool-alike", _one_pool_alike),
    _form("devices-exponential", _exponential),
    _form("devices-long-selectors", _long_selector, (16 * 1024, 64 * 1024, 384 * 1024)),
    _form("devices-dear-selector", _dear_selector),
    _form("devices-unlike-selectors", _unlike_selectors),
    _form("devices-two-drivers", _two_drivers),
    _form("devices-class-selectors", _selectors_of_a_class, (4096,)),
    _small("devices-claim-missing", _class()),
    _small("devices-claim-of-a-namespace", _class(), _claim([_exactly("r")], "ns-001")),
    _small("devices-claim-of-a-pod", _class(), _claim([_exactly("r")]), template=True),
    _small(
        "devices-claim-deleted",
        _class(),
        _claim([_exactly("r")], metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
    ),
    _small("devices-class-missing", _class("other"), _claim([_exactly("r")]), *_slices(100)),
]
