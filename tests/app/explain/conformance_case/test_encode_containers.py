"""Containers are found that come to what any pod asks for, however it came about."""

from random import Random

import pytest

from app.explain.conformance_case.encode import NotExpressibleError
from app.explain.conformance_case.encode_pod import encode_pod
from core.objects.pod import Pod
from tests.app.explain.conformance_case.encoded import again, pod_of
from tests.builders import Object

CPU = ("0", "50m", "100m", "1", "1500m", "0.0001")
MEMORY = ("0", "100Mi", "200Mi", "1Gi", "0.5")


def requests(random: Random) -> Object:
    found: Object = {}
    for name, amounts, share in (
        ("cpu", CPU, 0.6),
        ("memory", MEMORY, 0.5),
        ("example.com/gpu", ("1",), 0.1),
        ("ephemeral-storage", ("1Gi",), 0.1),
        ("hugepages-2Mi", ("2Mi",), 0.05),
        ("not-accounted", ("1",), 0.05),
    ):
        if random.random() < share:
            found[name] = random.choice(amounts)
    return found


def container(random: Random, name: str, *, starts: bool = False) -> Object:
    made: Object = {"name": name, "image": random.choice(("a", "b:1", "host:5000/c", ""))}
    if random.random() < 0.8:
        made["resources"] = {"requests": requests(random)}
    if random.random() < 0.1:
        made.setdefault("resources", {})["limits"] = requests(random)
    if starts and random.random() < 0.3:
        made["restartPolicy"] = "Always"
    if random.random() < 0.3:
        port = {"hostPort": random.choice((0, 80, 81)), "protocol": random.choice(("TCP", "UDP", ""))}
        made["ports"] = [{**port, "hostIP": random.choice(("", "127.0.0.1"))}]
    return made


def spec(random: Random) -> Object:
    made: Object = {"containers": [container(random, f"c{n}") for n in range(random.choice((0, 1, 1, 1, 2, 3, 4)))]}
    if random.random() < 0.4:
        made["initContainers"] = [container(random, f"i{n}", starts=True) for n in range(random.randint(1, 3))]
    if random.random() < 0.1:
        made["overhead"] = requests(random)
    if random.random() < 0.15:
        made["resources"] = {"requests": requests(random)}
    return made


def claim(random: Random) -> Object:
    """Return the status of a claim, in the forms of all releases."""
    mapping = [{"name": name, "quantity": quantity} for name, quantity in requests(random).items()]
    overhead = [{"name": name, "perContainer": quantity} for name, quantity in requests(random).items()]
    return {"containers": ["a", "b"], "resources": requests(random), "mapping": mapping, "overhead": overhead}


def random_pod(random: Random, *, resized: bool = False) -> Pod:
    asked = spec(random)
    status: Object = {"qosClass": random.choice(("", "", "", "BestEffort", "Burstable", "Guaranteed"))}
    if resized:
        asked["nodeName"] = "n"  # else its status does not count
        status["containerStatuses"] = [
            {
                "name": each["name"],
                "resources": {"requests": requests(random)},
                "allocatedResources": requests(random),
            }
            for each in asked["containers"]
        ]
        if random.random() < 0.3:
            status["conditions"] = [{"type": "PodResizePending", "reason": "Infeasible"}]
        if random.random() < 0.3:
            status["nodeAllocatableResourceClaimStatuses"] = [claim(random) for _ in range(random.randint(1, 2))]
    return pod_of({"metadata": {"name": "p"}, "spec": asked, "status": status})


def test_any_pod_that_is_not_resized_comes_back() -> None:
    random = Random(1)  # noqa: S311 - no secret; the same in every run
    for _ in range(3000):
        pod = random_pod(random)
        assert again(pod) == pod


def test_any_pod_that_is_resized_comes_back_too() -> None:
    random = Random(2)  # noqa: S311 - no secret; the same in every run
    resized = 0
    for _ in range(1000):
        pod = random_pod(random, resized=True)
        assert again(pod) == pod
        resized += pod.resources is not None
    assert resized > 250


def test_ordinary_containers_ask_as_people_write_it() -> None:
    asked = {"requests": {"cpu": "1500m", "memory": "1Gi", "example.com/gpu": "1"}}
    pod = pod_of({"metadata": {"name": "p"}, "spec": {"containers": [{"image": "a:1", "resources": asked}]}})
    written = {"cpu": "1500m", "memory": "1073741824", "example.com/gpu": "1"}
    spec = encode_pod(pod)["spec"]
    assert spec == {"containers": [{"name": "c0", "image": "a:1", "resources": {"requests": written}}]}


def test_a_demand_of_no_containers_is_refused_with_what_it_is() -> None:
    with pytest.raises(NotExpressibleError, match=r"^pod a/p: found no 0 containers that reserve {'cpu': 3} and are "):
        encode_pod(Pod("u", "a", "p", requests={"cpu": 3}))
