"""Random golden cases without their `expected`. Seed, kind and number determine each case."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from tests.parity import random_volumes
from tests.parity.mutation import without_shared_ports
from tests.parity.random_devices import device_case
from tests.parity.random_nodes import NAMESPACES, V1, device_classes, namespaces, nodes
from tests.parity.random_pods import PRIORITIES, pod, pods_on, resize
from tests.parity.random_sequences import sequence_case


def plugin_case(random: Random) -> V1:
    """Return a case for all plugins without volumes, alone and together."""
    args: V1 = {}
    if random.random() < 0.3:
        args = {
            "hardPodAffinityWeight": random.choice((0, 1, 7, 100)),
            "ignorePreferredTermsOfExistingPods": random.random() < 0.5,
        }
    cluster = nodes(random)
    incoming = pod(random, "incoming", terms=random.choice((0.2, 0.5, 0.8)))
    if random.random() < 0.03:
        incoming["spec"]["nodeName"] = random.choice(("n0", "n1"))
    made = {
        "args": args,
        "namespaces": namespaces(random),
        "nodes": cluster,
        "pods": pods_on(random, cluster),
        "pod": incoming,
    }
    if random.random() < 0.15:
        made["deviceclasses"] = device_classes(random)
    return made


def resize_case(random: Random) -> V1:
    """Return a plugin case in which running pods are resized, and the incoming pod needs free capacity."""
    made = plugin_case(random)
    for each in made["pods"]:
        if random.random() < 0.7:
            resize(random, each)
    requests = made["pod"]["spec"]["containers"][0]["resources"].setdefault("requests", {})
    requests.setdefault("cpu", random.choice(("500m", "1", "2")))
    return made


def volume_case(random: Random) -> V1:
    """Return a case for the plugins that read volumes."""
    cluster = random_volumes.nodes(random)
    names = [node["metadata"]["name"] for node in cluster]
    pods = [random_volumes.pod(random, f"p{index}", random.choice(names)) for index in range(random.randint(0, 6))]
    incoming = random_volumes.pod(random, "incoming")
    return {
        "namespaces": [{"metadata": {"name": name}} for name in NAMESPACES],
        "nodes": cluster,
        "pods": pods,
        "pod": incoming,
        **random_volumes.storage(random, cluster, [*pods, incoming]),
    }


def preemption_case(random: Random) -> V1:
    """Return a case of the dry run: crowded nodes, an incoming pod of a high priority, and budgets."""
    cluster = nodes(random, 2, 5)
    incoming = pod(random, "incoming", terms=random.choice((0.1, 0.3, 0.6)))
    incoming["spec"]["priority"] = random.choice((5, 100, 100, 2_000_000_000))
    incoming["spec"]["containers"][0]["resources"] = {"requests": {"cpu": random.choice(("500m", "1", "2"))}}
    if random.random() < 0.06:
        incoming["spec"]["preemptionPolicy"] = random.choice(("Never", "PreemptLowerPriority"))
    if random.random() < 0.15:
        incoming["status"]["nominatedNodeName"] = random.choice(cluster)["metadata"]["name"]
    running = pods_on(random, cluster, 5)
    for each in running:
        if random.random() < 0.1:
            resize(random, each)
    without_shared_ports(running)
    return {
        "namespaces": namespaces(random),
        "nodes": cluster,
        "pods": running,
        "pod": incoming,
        "pdbs": [_budget(random, f"pdb{index}", running) for index in range(random.choice((0, 1, 1, 2, 3)))],
    }


def nominated_case(random: Random) -> V1:
    """Return a case of filters with nominated pods, with volumes at times."""
    cluster = nodes(random)
    names = [node["metadata"]["name"] for node in cluster]
    pending = [pod(random, f"w{index}") for index in range(random.randint(2, 8))]
    for each in pending:
        each["status"]["nominatedNodeName"] = random.choice(names) if random.random() < 0.95 else "none"
        each["spec"]["priority"] = random.choice(PRIORITIES)
        if random.random() < 0.07:
            each["metadata"]["deletionTimestamp"] = "2026-01-01T01:00:00Z"
    incoming = pod(random, "incoming", terms=random.choice((0.1, 0.3, 0.6)))
    incoming["spec"]["priority"] = random.choice((0, 0, 5))
    if random.random() < 0.1:
        incoming["status"]["nominatedNodeName"] = random.choice(names)
    made = {
        "kind": "nominated",
        "namespaces": namespaces(random),
        "nodes": cluster,
        "pods": pods_on(random, cluster, 1),
        "pod": incoming,
        "nominated": pending,
    }
    if random.random() < 0.3:
        _add_volumes(random, made)
    return made


def _add_volumes(random: Random, case: V1) -> None:
    users = [*case["pods"], *case["nominated"], case["pod"]]
    for each in users:
        if random.random() < 0.5:
            each["metadata"]["namespace"] = NAMESPACES[0]
            volumes = [random_volumes.pod_volume(random, f"v{index}") for index in range(random.randint(1, 2))]
            each["spec"]["volumes"] = [each for each in volumes if "ephemeral" not in each]
    found = random_volumes.storage(random, case["nodes"], [])
    case |= {member: found[member] for member in ("pvs", "pvcs", "storageclasses", "csinodes")}


def _budget(random: Random, name: str, pods: list[V1]) -> V1:
    selector = random.choice(({"matchLabels": {"app": random.choice("xy")}}, {"matchLabels": {"tier": "1"}}, {}))
    status: V1 = {"disruptionsAllowed": random.choice((0, 0, 1, 1, 2))}
    if pods and random.random() < 0.15:
        status["disruptedPods"] = {random.choice(pods)["metadata"]["name"]: "2026-01-01T00:00:00Z"}
    metadata = {"name": name, "namespace": random.choice(NAMESPACES)}
    return {"metadata": metadata, "spec": {"selector": selector}, "status": status}


KINDS: Final[Mapping[str, Callable[[Random], V1]]] = {
    "plugins": plugin_case,
    "resize": resize_case,
    "volumes": volume_case,
    "preemption": preemption_case,
    "nominated": nominated_case,
    "devices": device_case,
    "simulation": sequence_case,
}
"""Kind -> the function that makes a case. `Mutator` makes the cases of `mutated` from golden ones."""


def case_of(seed: int, kind: str, number: int) -> V1:
    """Return a case. It is the same for the same arguments."""
    name = f"parity/{kind}/{seed}/{number}"
    return {"name": name, **KINDS[kind](Random(name))}  # noqa: S311  # no secret; the same in every run
