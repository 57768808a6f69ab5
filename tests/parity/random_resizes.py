"""Running pods with a resize in place: the statuses from which requests are counted."""

from random import Random

from tests.parity.random_nodes import V1
from tests.parity.random_pods import amounts


def resize(random: Random, pod: V1) -> None:
    """Give a running pod statuses of its containers, of itself and of its resize, each of which may be missing."""
    spec, status = pod["spec"], pod["status"]
    for member, statuses in (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")):
        found = [_container_status(random, each["name"]) for each in spec.get(member, ()) if random.random() < 0.8]
        if found:
            random.shuffle(found)
            status[statuses] = found
    if random.random() < 0.4:
        reason = random.choice(("Infeasible", "Infeasible", "Deferred"))
        truth = random.choice(("True", "True", "False"))
        status["conditions"] = [{"type": "PodResizePending", "status": truth, "reason": reason}]
    if "resources" in spec or random.random() < 0.1:
        _pod_status(random, status)


def _container_status(random: Random, name: str) -> V1:
    made: V1 = {"name": name}
    if random.random() < 0.7:
        made["allocatedResources"] = amounts(random)
    if random.random() < 0.7:
        made["resources"] = {"requests": amounts(random)} if random.random() < 0.9 else {}
    return made


def _pod_status(random: Random, status: V1) -> None:
    own = ({"cpu": "500m"}, {"cpu": "2", "memory": "512Mi"}, {"memory": "1Gi"})
    if random.random() < 0.7:
        status["allocatedResources"] = random.choice(own)
    if random.random() < 0.7:
        status["resources"] = {"requests": random.choice(own)} if random.random() < 0.9 else {}
