"""Forms of gangs: groups of waiting pods of which a member has no node, or is hard to judge."""

from collections.abc import Callable
from typing import Final

from tests.bench.cluster import HOST, RACK, REQUIRED
from tests.cost.attack import Object, grown
from tests.cost.forms.form import Form, expression, pod

_MEMBERS: Final = 500
_SIZES: Final = (128 * 1024, 512 * 1024, 3 * 1024 * 1024)
"""Bytes of all members: up to about six gangs of 500."""
_RACKS: Final = [f"rack-{number:02d}" for number in range(5)]
"""Racks with 490 of 5,000 nodes."""


def _gangs(
    name: str,
    spec: Callable[[int, Object], Object],
    *,
    members: int = _MEMBERS,
    annotations: Object | None = None,
    of_issue: bool = False,
) -> Form:
    """Return a form of gangs. `spec` makes the spec of a member from its number and a selector of its gang."""

    def member(index: int) -> Object:
        gang, number = f"gang-{index // members}", index % members
        labels = {"kindred.dev/group": gang, "job": gang, "member": str(number)}
        stated = {"kindred.dev/group-minimum": str(members), **(annotations or {})}
        metadata = {
            "name": f"m-{index}",
            "uid": f"m-{index}",
            "namespace": f"ns-{index // members % 200:03d}",
            "labels": labels,
            "annotations": stated,
            "ownerReferences": [],
        }
        return pod(spec(number, {"labelSelector": {"matchLabels": {"job": gang}}}), metadata)

    def whole(size: int) -> list[Object]:
        made = grown(size, member)
        last = [each for each in made if each["metadata"]["labels"]["job"] == made[-1]["metadata"]["labels"]["job"]]
        for each in last:  # of fewer members, which are all there are
            each["metadata"]["annotations"]["kindred.dev/group-minimum"] = str(len(last))
        return made

    return Form(name, "gangs", "gangs", whole, of_issue=of_issue, sizes=_SIZES)


def _in_racks() -> Object:
    return {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [expression(RACK, "In", _RACKS)]}]}}


def _apart(key: str, *, everywhere: bool = False) -> Callable[[int, Object], Object]:
    def spec(_: int, gang: Object) -> Object:
        affinity: Object = {"podAntiAffinity": {REQUIRED: [{**gang, "topologyKey": key}]}}
        return {"affinity": affinity if everywhere else {**affinity, "nodeAffinity": _in_racks()}}

    return spec


def _large(number: int, _: Object) -> Object:
    requests = {"cpu": f"{40_000 + number}m", "memory": "1Gi"}
    made = {"containers": [{"name": "c", "image": "img", "resources": {"requests": requests}}]}
    return {**made, "affinity": {"nodeAffinity": _in_racks()}}


def _together(number: int, gang: Object) -> Object:
    last = {"labelSelector": {"matchLabels": {"member": str(number + 1)}}, "topologyKey": RACK}
    return {"affinity": {"podAffinity": {REQUIRED: [{**gang, "topologyKey": RACK}, last]}}}


def _spread(_: int, gang: Object) -> Object:
    constraint = {"maxSkew": 1, "topologyKey": RACK, "whenUnsatisfiable": "DoNotSchedule", **gang}
    return {"topologySpreadConstraints": [constraint], "affinity": {"nodeAffinity": _in_racks()}}


def _many_terms(key: str) -> Callable[[int, Object], Object]:
    def spec(number: int, gang: Object) -> Object:
        others = [{"labelSelector": {"matchLabels": {f"k-{at}": str(number)}}, "topologyKey": HOST} for at in range(40)]
        return {"affinity": {"podAntiAffinity": {REQUIRED: [{**gang, "topologyKey": key}, *others]}}}

    return spec


_NEAR: Final = {"kindred.dev/group-packing": "near", "kindred.dev/group-topology-key": RACK}
_PACK: Final = {"kindred.dev/group-packing": "pack"}
FORMS: Final = [
    _gangs("gangs-apart-by-host", _apart(HOST), of_issue=True),
    _gangs("gangs-apart-by-rack", _apart(RACK, everywhere=True)),
    _gangs("gangs-that-fit", _apart(HOST, everywhere=True)),
    _gangs("gangs-of-large-members", _large),
    _gangs("gangs-of-members-in-need", _together),
    _gangs("gangs-spread", _spread),
    _gangs("gangs-near", _large, annotations=_NEAR),
    _gangs("gangs-packed", _large, annotations=_PACK),
    _gangs("gangs-of-many-terms", _many_terms(RACK)),
    _gangs("gangs-of-many-terms-that-fit", _many_terms(HOST)),
    _gangs("gangs-of-two", _apart(RACK), members=2),
]
