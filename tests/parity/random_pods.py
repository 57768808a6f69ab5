"""Random pods, running, pending and to be scheduled, over the vocabulary of `random_nodes`."""

from random import Random
from typing import Final

from tests.parity.random_nodes import EXTENDED, GPU, HOST, IMAGES, NAMESPACES, RACK, TAINT_KEYS, V1, ZONE

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
TOPOLOGY_KEYS: Final = (ZONE, ZONE, ZONE, HOST, HOST, RACK)
PRIORITIES: Final = (-5, 0, 0, 5, 5, 100, 2_000_000_000)


def pod(random: Random, name: str, *, terms: float = 0.5) -> V1:
    """Return a pod. `terms` is the probability of each field that makes it hard to place."""
    labels = {"app": random.choice(("x", "x", "y", "z"))}
    if random.random() < 0.4:
        labels["tier"] = random.choice("12")
    made: V1 = {
        "metadata": {"name": name, "namespace": random.choice(NAMESPACES), "uid": f"uid-{name}", "labels": labels},
        "spec": {"containers": [container(random, f"c{index}") for index in range(random.choice((1, 1, 1, 2, 3)))]},
        "status": {},
    }
    spec = made["spec"]
    _resources_of_pod(random, spec)
    if found := affinity(random, terms):
        spec["affinity"] = found
    if random.random() < terms * 0.3:
        spec["nodeSelector"] = random.choice(({"disk": "ssd"}, {ZONE: "a"}, {"disk": "hdd", ZONE: "b"}))
    if random.random() < terms:
        spec["topologySpreadConstraints"] = spread_constraints(random)
    if random.random() < 0.4:
        spec["tolerations"] = [toleration(random) for _ in range(random.randint(1, 2))]
    if random.random() < 0.15:
        spec["volumes"] = [_image_volume(random)]
    if random.random() < 0.5:
        spec["priority"] = random.choice(PRIORITIES)
    return made


def running(random: Random, name: str, node: str, *, terms: float = 0.15) -> V1:
    """Return a pod on a node. A few pods are terminating."""
    made = pod(random, name, terms=terms)
    made["spec"]["nodeName"] = node
    made["status"] = {"phase": "Running", "startTime": f"2026-01-01T00:{random.randint(0, 20):02}:00Z"}
    if random.random() < 0.07:
        made["metadata"]["deletionTimestamp"] = "2026-01-01T01:00:00Z"
    return made


def pods_on(random: Random, nodes: list[V1], most: int = 3, *, terms: float = 0.15) -> list[V1]:
    """Return the running pods of a cluster."""
    names = [node["metadata"]["name"] for node in nodes for _ in range(random.randint(0, most))]
    random.shuffle(names)  # so that the order of a node's pods is not the order of their names
    return [running(random, f"p{index}", node, terms=terms) for index, node in enumerate(names)]


def container(random: Random, name: str) -> V1:
    """Return a container."""
    made: V1 = {"name": name, "image": random.choice((*IMAGES, "registry.example/a", "unknown")), "resources": {}}
    if requests := amounts(random):
        made["resources"]["requests"] = requests
    if random.random() < 0.2:
        made["ports"] = [port(random) for _ in range(random.randint(1, 2))]
    if random.random() < 0.06:
        exits = {"operator": "In", "values": [42]}
        made["restartPolicy"] = "Never"
        made["restartPolicyRules"] = [{"action": "RestartAllContainers", "exitCodes": exits}]
    return made


def amounts(random: Random) -> dict[str, str]:
    """Return requests of a container; zeros and odd spellings among them."""
    found = {}
    if random.random() < 0.7:
        found["cpu"] = random.choice(("100m", "250m", "500m", "1", "1500m", "0.3", "0"))
    if random.random() < 0.6:
        found["memory"] = random.choice(("64Mi", "256Mi", "512Mi", "1Gi", "700M", "1e9", "0"))
    if random.random() < 0.15:
        found["ephemeral-storage"] = random.choice(("512Mi", "1Gi", "6Gi"))
    if random.random() < 0.12:
        found[random.choice((GPU, GPU, *EXTENDED))] = random.choice(("1", "1", "2", "0"))
    if random.random() < 0.04:
        found["hugepages-2Mi"] = random.choice(("32Mi", "128Mi"))
    return found


def port(random: Random) -> V1:
    """Return a port of a container, mostly of its host."""
    made: V1 = {"containerPort": 80}
    if random.random() < 0.9:
        made["hostPort"] = random.choice((80, 80, 443))
    if random.random() < 0.5:
        made["protocol"] = random.choice(("TCP", "TCP", "UDP"))
    if random.random() < 0.3:
        made["hostIP"] = random.choice(("0.0.0.0", "127.0.0.1", "10.0.0.1", ""))  # noqa: S104  # of a made-up pod
    return made


def affinity(random: Random, terms: float) -> V1:
    """Return `spec.affinity`."""
    found: V1 = {}
    for member in ("podAffinity", "podAntiAffinity"):
        lists: V1 = {}
        if random.random() < terms * 0.5:
            lists[REQUIRED] = [term(random) for _ in range(random.choice((1, 1, 2)))]
        if random.random() < terms * 0.5:
            lists[PREFERRED] = [
                {"weight": random.randint(1, 100), "podAffinityTerm": term(random)}
                for _ in range(random.choice((1, 1, 2)))
            ]
        if lists:
            found[member] = lists
    if random.random() < terms * 0.4:
        found["nodeAffinity"] = node_affinity(random)
    return found


def term(random: Random) -> V1:
    """Return a PodAffinityTerm."""
    made: V1 = {"topologyKey": random.choice(TOPOLOGY_KEYS), "labelSelector": label_selector(random)}
    if random.random() < 0.2:
        made["namespaces"] = random.sample(NAMESPACES, random.randint(1, 2))
    if random.random() < 0.2:
        # Never only negative requirements: with them, releases before v1.37 match every namespace (kubernetes#141526).
        made["namespaceSelector"] = random.choice(({}, {"matchLabels": {"team": "red"}}))
    return made


def label_selector(random: Random) -> V1:
    """Return a selector over the labels of pods, valid."""
    if random.random() < 0.6:
        return {"matchLabels": {"app": random.choice("xy")}}
    key, values = random.choice((("app", "xyz"), ("tier", "12")))
    operator = random.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    expression: V1 = {"key": key, "operator": operator}
    if operator in ("In", "NotIn"):
        expression["values"] = random.sample(values, random.randint(1, 2))
    return {"matchExpressions": [expression]} if random.random() < 0.95 else {}


def node_affinity(random: Random) -> V1:
    """Return node affinity."""
    found: V1 = {}
    if random.random() < 0.7:
        found[REQUIRED] = {"nodeSelectorTerms": [_node_term(random) for _ in range(random.choice((1, 1, 2)))]}
    if random.random() < 0.5:
        found[PREFERRED] = [
            {"weight": random.randint(1, 100), "preference": _node_term(random)} for _ in range(random.randint(1, 2))
        ]
    return found


def _node_term(random: Random) -> V1:
    if random.random() < 0.15:
        name = random.choice(("n0", "n1", "n2", "none"))
        return {"matchFields": [{"key": "metadata.name", "operator": random.choice(("In", "NotIn")), "values": [name]}]}
    expressions = (
        {"key": "disk", "operator": "In", "values": ["ssd", ""]},
        {"key": "disk", "operator": "NotIn", "values": ["ssd"]},
        {"key": "disk", "operator": "Exists"},
        {"key": RACK, "operator": "DoesNotExist"},
        {"key": ZONE, "operator": "In", "values": random.sample("abc", 2)},
        {"key": "cores", "operator": random.choice(("Gt", "Lt")), "values": [random.choice(("4", "8"))]},
    )
    return {"matchExpressions": random.sample(expressions, random.choice((1, 1, 2)))}


def spread_constraints(random: Random) -> list[V1]:
    """Return constraints; a pair of key and action is there once, as the API server has it."""
    found: dict[tuple[str, str], V1] = {}
    for _ in range(random.choice((1, 1, 2, 3))):
        made = _spread_constraint(random)
        found[made["topologyKey"], made["whenUnsatisfiable"]] = made
    return list(found.values())


def _spread_constraint(random: Random) -> V1:
    made: V1 = {
        "maxSkew": random.choice((1, 1, 2)),
        "topologyKey": random.choice(TOPOLOGY_KEYS),
        "whenUnsatisfiable": random.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": label_selector(random),
    }
    if made["whenUnsatisfiable"] == "DoNotSchedule" and random.random() < 0.2:
        made["minDomains"] = random.randint(1, 5)
    for member in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if random.random() < 0.25:
            made[member] = random.choice(("Honor", "Ignore"))
    if random.random() < 0.2:
        made["matchLabelKeys"] = ["tier"]
    return made


def toleration(random: Random) -> V1:
    """Return a toleration, seldom of everything."""
    if random.random() < 0.1:
        return {"operator": "Exists"}
    made: V1 = {"key": random.choice((*TAINT_KEYS, "node.kubernetes.io/unschedulable"))}
    if random.random() < 0.5:
        made["operator"] = "Exists"
    else:
        made |= {"operator": "Equal", "value": random.choice(("x", "y"))}
    if random.random() < 0.6:
        made["effect"] = random.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
    return made


def _resources_of_pod(random: Random, spec: V1) -> None:
    if random.random() < 0.2:
        spec["initContainers"] = [
            {**container(random, f"i{index}"), **({"restartPolicy": "Always"} if random.random() < 0.5 else {})}
            for index in range(random.randint(1, 2))
        ]
        for each in spec["initContainers"]:
            each.pop("ports", None)
            each.pop("restartPolicyRules", None)
    if random.random() < 0.08:
        spec["overhead"] = {"cpu": random.choice(("100m", "1")), "memory": "64Mi"}
    if random.random() < 0.12:
        spec["resources"] = {
            "requests": random.choice(({"cpu": "1"}, {"cpu": "2", "memory": "1Gi"}, {"memory": "2Gi"}))
        }
    if random.random() < 0.05:
        spec["hostNetwork"] = True
        spec["hostUsers"] = random.random() < 0.5


def _image_volume(random: Random) -> V1:
    reference = {"reference": random.choice(IMAGES)} if random.random() < 0.9 else {}
    return {"name": "image", "image": reference}


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
