"""Forms of a pod's volumes."""

from collections.abc import Callable
from typing import Final

from tests.cost.attack import Object, grown, longest
from tests.cost.forms.form import Form, of_spec

_LIMITS: Final = "NodeVolumeLimits"
_RESTRICTIONS: Final = "VolumeRestrictions"


def _of_volumes(name: str, area: str, source: Callable[[int], Object]) -> Form:
    def spec(size: int) -> Object:
        return {"volumes": grown(size, lambda index: {"name": f"v-{index}", **source(index)})}

    return of_spec(f"volumes-{name}", area, spec)


def _template(index: int) -> Object:
    return {"spec": {"storageClassName": f"class-{index}", "accessModes": ["ReadWriteOnce"]}}


def _claims_and_ports(size: int) -> Object:
    """Make a pod that fits nowhere for several reasons, so that an explanation tries remedies for all of them."""
    ports = grown(size // 2, lambda index: {"hostPort": 1 + index % 65535, "containerPort": 1})
    containers = [{"name": "c", "ports": ports, "resources": {"requests": {"cpu": "1000"}}}]
    claims = grown(size // 2, lambda i: {"name": f"v-{i}", "persistentVolumeClaim": {"claimName": f"claim-{i}"}})
    return {"containers": containers, "volumes": claims}


FORMS: Final = [
    _of_volumes("claims", "VolumeBinding", lambda index: {"persistentVolumeClaim": {"claimName": f"claim-{index}"}}),
    _of_volumes("one-claim", "VolumeBinding", lambda _: {"persistentVolumeClaim": {"claimName": "claim"}}),
    _of_volumes("ephemeral", "VolumeBinding", lambda index: {"ephemeral": {"volumeClaimTemplate": _template(index)}}),
    _of_volumes("gce", _RESTRICTIONS, lambda index: {"gcePersistentDisk": {"pdName": f"d-{index}"}}),
    _of_volumes("ebs", _LIMITS, lambda index: {"awsElasticBlockStore": {"volumeID": f"d-{index}"}}),
    _of_volumes("azure", _LIMITS, lambda index: {"azureDisk": {"diskURI": f"d-{index}", "kind": "Managed"}}),
    _of_volumes("cinder", _LIMITS, lambda index: {"cinder": {"volumeID": f"d-{index}"}}),
    _of_volumes("portworx", _LIMITS, lambda index: {"portworxVolume": {"volumeID": f"d-{index}"}}),
    _of_volumes("iscsi", _RESTRICTIONS, lambda index: {"iscsi": {"iqn": f"d-{index}", "targetPortal": "p"}}),
    _of_volumes("rbd", _RESTRICTIONS, lambda index: {"rbd": {"monitors": [f"m-{index}"], "image": "i", "pool": "p"}}),
    _of_volumes("others", "decoding", lambda index: {"configMap": {"name": f"c-{index}"}}),
    of_spec("volumes-claims-and-ports", "remedies", _claims_and_ports),
    of_spec(
        "volumes-rbd-monitors",
        _RESTRICTIONS,
        lambda size: {
            "volumes": [
                {
                    "name": f"v-{number}",
                    "rbd": {"image": f"i-{number}", "monitors": grown(size // 20, lambda i: f"m-{i}")},
                }
                for number in range(20)
            ]
        },
    ),
    of_spec(
        "volumes-long-claim",
        "VolumeBinding",
        lambda size: {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": longest(size)}}]},
    ),
]
