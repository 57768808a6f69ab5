"""Forms of a pod's metadata, status, and fields that no plugin reads."""

from typing import Any, Final

from tests.cost.attack import ROOM, Object, grown, grown_map, longest
from tests.cost.forms.form import Form, of_spec, pod

_AREA: Final = "decoding"
_DEEP: Final = 900
"""Levels that Python's own JSON encoder supports."""


def _of_metadata(name: str, make: Any, area: str = _AREA) -> Form:  # noqa: ANN401 - a function of the size
    return Form(name, area, "pod", lambda size: pod({}, make(size - ROOM)))


def _owner(index: int) -> Object:
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"o-{index}", "uid": f"o-{index}"}


def _deep(size: int) -> Object:
    nested: Any = longest(max(0, size - 2 * _DEEP))
    for _ in range(_DEEP):
        nested = [nested]
    return {"dnsConfig": nested}


def _conditions(size: int) -> Object:
    reported = grown(size - ROOM, lambda index: {"type": f"PodResizePending{index}", "reason": "Infeasible"})
    return pod({}, status={"conditions": reported})


FORMS: Final = [
    _of_metadata("labels", lambda size: {"labels": grown_map(size, lambda i: (f"k-{i}", "v"))}, "InterPodAffinity"),
    _of_metadata(
        "labels-null", lambda size: {"labels": grown_map(size, lambda i: (f"k-{i}", None))}, "InterPodAffinity"
    ),
    _of_metadata(
        "label-of-another-type",
        lambda size: {"labels": {**grown_map(size - ROOM, lambda i: (f"k-{i}", "v")), "last": 1}},
    ),
    _of_metadata("label-long", lambda size: {"labels": {"app": longest(size)}}, "InterPodAffinity"),
    _of_metadata("owners", lambda size: {"ownerReferences": grown(size, _owner)}),
    _of_metadata(
        "owner-long", lambda size: {"ownerReferences": [{**_owner(0), "controller": True, "uid": longest(size)}]}
    ),
    _of_metadata("annotations", lambda size: {"annotations": grown_map(size, lambda index: (f"k-{index}", "v"))}),
    _of_metadata("finalizers", lambda size: {"finalizers": grown(size, lambda index: f"example.com/{index}")}),
    _of_metadata("name-long", lambda size: {"name": longest(size)}),
    _of_metadata("namespace-long", lambda size: {"namespace": longest(size)}),
    _of_metadata("escapes", lambda size: {"name": "\x01" * (size // 6)}),
    of_spec("gates", _AREA, lambda size: {"schedulingGates": grown(size, lambda index: {"name": f"g-{index}"})}),
    of_spec("scheduler-name-long", _AREA, lambda size: {"schedulerName": longest(size)}),
    of_spec("nested", _AREA, _deep),
    of_spec(
        "environment",
        _AREA,
        lambda size: {"containers": [{"env": grown(size, lambda index: {"name": f"E{index}", "value": "v"})}]},
    ),
    Form("conditions", _AREA, "pod", _conditions),
    Form("ordinary", "ordinary", "pod", lambda _: pod({}), sizes=(1024,)),
]
