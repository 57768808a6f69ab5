"""Forms of containers: ports, resources, images, and how many there are."""

from collections.abc import Callable
from typing import Any, Final

from tests.cost.attack import ROOM, Object, grown, grown_map, longest
from tests.cost.forms.form import Form, of_spec, pod

_FIT: Final = "NodeResourcesFit"


def _container(index: int, **more: Any) -> Object:  # noqa: ANN401 - JSON
    return {"name": f"c-{index}", "image": "img", **more}


def _of_containers(name: str, area: str, container: Callable[[int], Object], member: str = "containers") -> Form:
    return of_spec(name, area, lambda size: {member: grown(size, container)})


def _of_one(name: str, area: str, member: str, make: Callable[[int], Any]) -> Form:
    return of_spec(name, area, lambda size: {"containers": [_container(0, **{member: make(size)})]})


def _requests(index: int) -> Object:
    return {"requests": {f"example.com/r-{index}": "1"}}


def _statuses(size: int) -> Object:
    third = (size - ROOM) // 3
    containers = grown(third, lambda index: _container(index, resources={"requests": {"cpu": "1"}}))
    reported = grown(
        2 * third,
        lambda index: {
            "name": f"c-{index}",
            "allocatedResources": {"cpu": "1"},
            "resources": {"requests": {"cpu": "2"}},
        },
    )
    return pod({"containers": containers}, status={"containerStatuses": reported})


FORMS: Final = [
    _of_containers("containers", _FIT, lambda index: _container(index, resources={"requests": {"cpu": "1m"}})),
    _of_containers("init-containers", _FIT, lambda index: _container(index, resources=_requests(0)), "initContainers"),
    _of_containers(
        "sidecars",
        _FIT,
        lambda index: _container(index, restartPolicy="Always", resources=_requests(index)),
        "initContainers",
    ),
    _of_containers(
        "init-resources", _FIT, lambda index: _container(index, resources=_requests(index)), "initContainers"
    ),
    _of_containers("container-resources", _FIT, lambda index: _container(index, resources=_requests(index))),
    _of_one(
        "extended-resources",
        _FIT,
        "resources",
        lambda size: {"requests": grown_map(size, lambda index: (f"example.com/r-{index}", "1"))},
    ),
    _of_one(
        "limits",
        _FIT,
        "resources",
        lambda size: {"limits": grown_map(size, lambda index: (f"hugepages-{index}Mi", "1"))},
    ),
    _of_one("long-quantity", _FIT, "resources", lambda size: {"requests": {"cpu": "9" * size}}),
    _of_one("long-fraction", _FIT, "resources", lambda size: {"requests": {"memory": "1." + "3" * size}}),
    _of_one(
        "exponents",
        _FIT,
        "resources",
        lambda size: {
            "requests": grown_map(size, lambda index: (f"example.com/r-{index}", f"1e{999_999_999 - index}"))
        },
    ),
    of_spec(
        "overhead", _FIT, lambda size: {"overhead": grown_map(size, lambda index: (f"example.com/r-{index}", "1"))}
    ),
    of_spec(
        "pod-resources",
        _FIT,
        lambda size: {"resources": {"requests": grown_map(size, lambda index: (f"hugepages-{index}Mi", "1"))}},
    ),
    of_spec(
        "resource-claims",
        "DynamicResources",
        lambda size: {"resourceClaims": grown(size, lambda index: {"name": f"r-{index}", "resourceClaimName": "x"})},
    ),
    Form("container-statuses", _FIT, "pod", _statuses),
    _of_one(
        "host-ports", "NodePorts", "ports", lambda size: grown(size, lambda index: {"hostPort": index % 65535 + 1})
    ),
    _of_one(
        "host-port-addresses",
        "NodePorts",
        "ports",
        lambda size: grown(
            size, lambda index: {"hostPort": 80, "hostIP": f"10.{index >> 16}.{index >> 8 & 255}.{index & 255}"}
        ),
    ),
    _of_one(
        "host-port-protocols",
        "NodePorts",
        "ports",
        lambda size: grown(size, lambda index: {"hostPort": 1 + index % 99, "protocol": f"P{index}"}),
    ),
    _of_containers("images", "ImageLocality", lambda index: {"image": f"registry.example.com/app-{index}:v1"}),
    _of_containers(
        "images-known", "ImageLocality", lambda index: {"image": f"registry.example.com/app-{index % 20}:v1"}
    ),
    of_spec("image-long", "ImageLocality", lambda size: {"containers": [{"image": longest(size)}]}),
]
