"""What a kubelet rejects, judged over the API server's own objects: there is no kubelet here, so no pod ends as Failed.

A kubelet checks again what a scheduler has decided: resources, node affinity, host ports and taints (k8s.io/kubernetes
pkg/kubelet/lifecycle/predicate.go, `generalFilter` and the taints behind it). Of resources it leaves out extended ones
that the node does not list, and those of a claim that kube-scheduler has made for the pod (the same file,
`removeMissingExtendedResources`). Nothing of Kindred is used.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

Manifest = Mapping[str, Any]

_SUFFIXES: Final = {"m": Fraction(1, 1000), "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30)}
_REFUSED: Final = frozenset({"NoSchedule", "NoExecute"})
"""A kubelet checks NoExecute alone. NoSchedule is the scheduler's own rule."""


def rejections(nodes: Sequence[Manifest], pods: Sequence[Manifest]) -> list[str]:
    """Return `REASON: ...` for each thing that the kubelets of the nodes reject; the reason is that of the Failed pod.

    Raises ValueError for a field that is more than the tests use.
    """
    by_name = {node["metadata"]["name"]: node for node in nodes}
    by_node: defaultdict[str, list[Manifest]] = defaultdict(list)
    found = []
    for pod in pods:
        name = pod["spec"].get("nodeName")
        if pod.get("status", {}).get("phase") == "Failed":
            found.append(f"Failed: {_name(pod)}")
        if not name:
            continue
        if name in by_name:
            by_node[name].append(pod)
        else:
            found.append(f"NodeName: {_name(pod)} on {name}, which is not there")
    for name, placed in by_node.items():
        found += [*_out_of(by_name[name], placed), *_port_conflicts(name, placed)]
        for pod in placed:
            found += _unwanted(by_name[name], pod)
    return found


def _out_of(node: Manifest, pods: Sequence[Manifest]) -> Iterator[str]:
    allocatable = node["status"]["allocatable"]
    requested: defaultdict[str, Fraction] = defaultdict(Fraction, pods=Fraction(len(pods)))
    for pod in pods:
        if pod["spec"].get("initContainers") or pod["spec"].get("overhead"):
            raise ValueError(f"requests that this judge cannot read: {_name(pod)}")
        by_claim = _requests_by_claim(pod)
        for container in pod["spec"]["containers"]:
            for resource, amount in container.get("resources", {}).get("requests", {}).items():
                left_out = _is_extended(resource) and resource not in allocatable
                if not left_out and (container["name"], resource) not in by_claim:
                    requested[resource] += _amount(amount)
    for resource, amount in requested.items():
        limit = _amount(allocatable.get(resource, "0"))
        if amount > limit:
            yield f"OutOf{resource}: {node['metadata']['name']} has {float(limit)}, its pods request {float(amount)}"


def _requests_by_claim(pod: Manifest) -> set[tuple[str, str]]:
    """Return the containers of a pod and their resources that a claim has devices for."""
    made_for = pod.get("status", {}).get("extendedResourceClaimStatus", {})
    return {(each["containerName"], each["resourceName"]) for each in made_for.get("requestMappings", ())}


def _is_extended(resource: str) -> bool:
    return "/" in resource and "kubernetes.io/" not in resource


def _port_conflicts(node: str, pods: Sequence[Manifest]) -> Iterator[str]:
    ports: Counter[tuple[str, int]] = Counter()
    for pod in pods:
        for container in pod["spec"]["containers"]:
            for port in container.get("ports", ()):
                if port.get("hostIP"):
                    raise ValueError(f"a host IP, which this judge cannot read: {_name(pod)}")
                if port.get("hostPort"):
                    ports[port.get("protocol", "TCP"), port["hostPort"]] += 1
    for (protocol, number), users in ports.items():
        if users > 1:
            yield f"NodePorts: {users} pods have {protocol} {number} on {node}"


def _unwanted(node: Manifest, pod: Manifest) -> Iterator[str]:
    name, spec = node["metadata"]["name"], pod["spec"]
    labels = node["metadata"].get("labels", {})
    selected = set(spec.get("nodeSelector", {}).items()) <= set(labels.items())
    if not (selected and _has_affinity(node, spec)):
        yield f"NodeAffinity: {_name(pod)} does not select {name}"
    for taint in node.get("spec", {}).get("taints", ()):
        if taint["effect"] in _REFUSED and not any(_tolerates(each, taint) for each in spec.get("tolerations", ())):
            yield f"Taint: {_name(pod)} does not tolerate {taint['key']}:{taint['effect']} of {name}"


def _has_affinity(node: Manifest, spec: Manifest) -> bool:
    """Whether required node affinity, of `In` alone, selects a node."""
    required = (spec.get("affinity", {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if required is None:
        return True
    sources = {
        "matchExpressions": node["metadata"].get("labels", {}),
        "matchFields": {"metadata.name": node["metadata"]["name"]},
    }
    return any(_selects(term, sources) for term in required["nodeSelectorTerms"])


def _selects(term: Manifest, sources: Mapping[str, Mapping[str, str]]) -> bool:
    rules = [(source, rule) for source in sources for rule in term.get(source, ())]
    if not rules or any(rule["operator"] != "In" for _, rule in rules):
        raise ValueError(f"node affinity that this judge cannot read: {term}")
    return all(sources[source].get(rule["key"]) in rule["values"] for source, rule in rules)


def _tolerates(toleration: Manifest, taint: Manifest) -> bool:
    if toleration.get("effect") not in {None, "", taint["effect"]}:
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in {None, "", taint["key"]}
    wanted = (taint["key"], taint.get("value", ""))
    return (toleration.get("key"), toleration.get("value", "")) == wanted


def _amount(quantity: str) -> Fraction:
    for suffix, factor in _SUFFIXES.items():
        if quantity.endswith(suffix):
            return Fraction(quantity.removesuffix(suffix)) * factor
    return Fraction(quantity)


def _name(pod: Manifest) -> str:
    name: str = pod["metadata"]["name"]
    return name
