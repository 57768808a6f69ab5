"""Random golden cases without their `expected`. Seed, kind and number determine each case."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Final

from core.releases.release import GATES
from tests.parity import random_volumes
from tests.parity.mutation import without_shared_ports
from tests.parity.odd_cases import make_odd
from tests.parity.odd_values import NUMBERS
from tests.parity.random_arguments import owners, plugin_config
from tests.parity.random_devices import device_case
from tests.parity.random_nodes import NAMESPACES, V1, device_classes, namespaces, nodes
from tests.parity.random_pods import PRIORITIES, pod, pods_on, resize
from tests.parity.random_sequences import sequence_case

_PREEMPTED: Final = "PreemptionByScheduler"
_ODD: Final = ("plugins", "plugins", "resize", "preemption", "nominated", "volumes", "volumes")
"""Kinds that have odd values. They have all fields of which `odd_values` has some."""
_GATES: Final = sorted(set(GATES) - {"GenericWorkload", "DRANodeAllocatableResources"})


def plugin_case(random: Random, least: int = 2, most: int = 7) -> V1:
    """Return a case for all plugins without volumes, alone and together. It has `least` to `most` nodes."""
    args: V1 = {}
    if random.random() < 0.3:
        args = {
            "hardPodAffinityWeight": random.choice((0, 1, 7, 100)),
            "ignorePreferredTermsOfExistingPods": random.random() < 0.5,
        }
    cluster = nodes(random, least, most)
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


def large_case(random: Random) -> V1:
    """Return a plugin case of more nodes, because the engine has other ways for many."""
    return plugin_case(random, 30, 120)


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
    for each in running:
        if random.random() < 0.06:
            each["metadata"]["deletionTimestamp"] = "2026-01-01T01:00:00Z"
            each["status"]["conditions"] = [
                {"type": "DisruptionTarget", "status": random.choice(("True", "True", "False")), "reason": _PREEMPTED}
            ]
    made = {
        "namespaces": namespaces(random),
        "nodes": cluster,
        "pods": running,
        "pod": incoming,
        "pdbs": [_budget(random, f"pdb{index}", running) for index in range(random.choice((0, 1, 1, 2, 3)))],
    }
    if random.random() < 0.25:
        made["nominated"] = _pending(random, [node["metadata"]["name"] for node in cluster])
    if random.random() < 0.2:
        _add_volumes(random, made)
        _share_claims(made)
    return made


def nominated_case(random: Random) -> V1:
    """Return a case of filters with nominated pods, with volumes at times."""
    cluster = nodes(random)
    names = [node["metadata"]["name"] for node in cluster]
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
        "nominated": _pending(random, names),
    }
    if random.random() < 0.3:
        _add_volumes(random, made)
    return made


def arguments_case(random: Random) -> V1:
    """Return a plugin case with arguments of plugins, Services and controllers."""
    made = plugin_case(random)
    del made["args"]
    if random.random() < 0.5:
        made["pod"]["spec"].pop("topologySpreadConstraints", None)
    return {**made, **owners(random, [*made["pods"], made["pod"]]), "pluginConfig": plugin_config(random)}


def gates_case(random: Random) -> V1:
    """Return a case with feature gates that are not the default ones of every release."""
    made = random.choice((plugin_case, resize_case, volume_case))(random)
    gates = {name: random.random() < 0.5 for name in random.sample(_GATES, random.randint(1, 3))}
    if random.random() < 0.3:
        gates = {"TaintTolerationComparisonOperators": random.random() < 0.8}
        _compare_taints(random, made)
    return {**made, "featureGates": gates}


def _compare_taints(random: Random, case: V1) -> None:
    """Give nodes taints with numbers, and the pod a toleration that compares them."""
    effects = ("NoSchedule", "PreferNoSchedule", "NoExecute")
    for each in case["nodes"]:
        if random.random() < 0.6:
            taint = {"key": "level", "value": random.choice(NUMBERS), "effect": random.choice(effects)}
            each["spec"]["taints"] = [*each["spec"].get("taints", ()), taint]
    spec = case["pod"]["spec"]
    toleration = {"key": "level", "operator": random.choice(("Gt", "Lt")), "value": random.choice(NUMBERS)}
    spec["tolerations"] = [*spec.get("tolerations", ()), toleration]


def odd_case(random: Random) -> V1:
    """Return a case with odd values of some fields."""
    return make_odd(random, KINDS[random.choice(_ODD)](random))


def _share_claims(case: V1) -> None:
    """Let no ReadWriteOncePod claim have several users: upstream takes them for one, so that it is free without one."""
    names = Counter(
        each["persistentVolumeClaim"]["claimName"]
        for user in case["pods"]
        for each in user["spec"].get("volumes", ())
        if "persistentVolumeClaim" in each
    )
    for claim in case["pvcs"]:
        if names[claim["metadata"]["name"]] > 1 and "ReadWriteOncePod" in claim["spec"]["accessModes"]:
            claim["spec"]["accessModes"] = ["ReadWriteOnce"]


def _pending(random: Random, names: Sequence[str]) -> list[V1]:
    """Return pods that wait for one of these nodes."""
    pending = [pod(random, f"w{index}") for index in range(random.randint(2, 8))]
    for each in pending:
        each["status"]["nominatedNodeName"] = random.choice(names) if random.random() < 0.95 else "none"
        each["spec"]["priority"] = random.choice(PRIORITIES)
        if random.random() < 0.07:
            each["metadata"]["deletionTimestamp"] = "2026-01-01T01:00:00Z"
    return pending


def _add_volumes(random: Random, case: V1) -> None:
    users = [*case["pods"], *case.get("nominated", ()), case["pod"]]
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
    "large": large_case,
    "resize": resize_case,
    "volumes": volume_case,
    "preemption": preemption_case,
    "nominated": nominated_case,
    "devices": device_case,
    "simulation": sequence_case,
    "arguments": arguments_case,
    "gates": gates_case,
    "odd": odd_case,
}
"""Kind -> the function that makes a case. `Mutator` makes the cases of `mutated` from golden ones."""


def case_of(seed: int, kind: str, number: int) -> V1:
    """Return a case. It is the same for the same arguments."""
    name = f"parity/{kind}/{seed}/{number}"
    return {"name": name, **KINDS[kind](Random(name))}  # noqa: S311  # no secret; the same in every run
