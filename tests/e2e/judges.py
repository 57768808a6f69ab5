"""Required inter-pod (anti-)affinity and topology spread, judged over the API server's own objects by plain means.

Nothing of Kindred is used: this is the judge. What holds of a state is what must hold of placements that only ever
added pods: no two pods stand in one domain where a term of either forbids the other; a pod with required affinity
stands with another that it wants, or is the first of its own kind; pods that all want each other stand in one domain;
and no domain has more pods than the least one and the skew that its constraint allows.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple

Manifest = Mapping[str, Any]

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_READ: Final = {"labelSelector", "topologyKey"}


def violations(nodes: Sequence[Manifest], pods: Sequence[Manifest]) -> list[str]:
    """Return a line for each rule that is broken among the pods that have a node."""
    labels = {node["metadata"]["name"]: node["metadata"].get("labels", {}) for node in nodes}
    placed = [pod for pod in pods if pod["spec"].get("nodeName")]
    found = []
    for pod in placed:
        for term in _terms(pod, "podAntiAffinity"):
            found += [
                f"{_name(pod)} and {_name(other)} on {_domain(labels, term, pod)}"
                for other in _selected(term, pod, placed)
                if _are_together(labels, term, pod, other)
            ]
        for term in _terms(pod, "podAffinity"):
            required = _selected(term, pod, placed)
            near = any(_are_together(labels, term, pod, other) for other in required)
            if not near and (required or not _selects(term, pod, pod)):
                found.append(f"{_name(pod)} alone on {_domain(labels, term, pod)}")
    return [*found, *_parted(labels, placed), *_skewed(labels, placed)]


def _parted(labels: Mapping[str, Mapping[str, str]], placed: Sequence[Manifest]) -> Iterator[str]:
    """Yield a line for each group of pods that all want each other, and stand in several domains."""
    wanting: defaultdict[str, list[Manifest]] = defaultdict(list)
    terms = {}
    for pod in placed:
        for term in _terms(pod, "podAffinity"):
            key = repr((pod["metadata"]["namespace"], term))
            terms[key] = term
            wanting[key].append(pod)
    for key, group in wanting.items():
        selected = [pod for pod in placed if _selects(terms[key], group[0], pod)]
        if [*map(id, selected)] == [*map(id, group)]:
            domains = {_domain(labels, terms[key], pod) for pod in group}
            if len(domains) > 1:
                yield f"{_name(group[0])} and {len(group) - 1} like it parted: {sorted(map(str, domains))}"


def _skewed(labels: Mapping[str, Mapping[str, str]], placed: Sequence[Manifest]) -> Iterator[str]:
    """Yield a line for each DoNotSchedule constraint whose skew is too great, over all nodes.

    The least domain can only have grown since the last pod came to another one, so this holds in the end, too.
    """
    constraints = {}
    for pod in placed:
        for constraint in pod["spec"].get("topologySpreadConstraints", ()):
            if constraint["whenUnsatisfiable"] == "DoNotSchedule":
                constraints[repr((pod["metadata"]["namespace"], constraint))] = (pod, constraint)
    for pod, constraint in constraints.values():
        more = set(constraint) - {"maxSkew", "topologyKey", "whenUnsatisfiable", "labelSelector"}
        if more or pod["spec"].get("nodeSelector"):
            raise ValueError(f"a constraint that this judge cannot read: {constraint}")
        term = {"topologyKey": constraint["topologyKey"], "labelSelector": constraint["labelSelector"]}
        domains = {each[term["topologyKey"]] for each in labels.values() if term["topologyKey"] in each}
        counts = Counter(dict.fromkeys(domains, 0))
        counts.update(
            domain for other in placed if _selects(term, pod, other) and (domain := _domain(labels, term, other))
        )
        skew = max(counts.values()) - min(counts.values())
        if skew > constraint["maxSkew"]:
            yield f"pods like {_name(pod)} skewed by {skew} over {term['topologyKey']}"


def _terms(pod: Manifest, kind: str) -> Sequence[Manifest]:
    affinity = (pod["spec"].get("affinity") or {}).get(kind) or {}
    terms: Sequence[Manifest] = affinity.get(_REQUIRED) or ()
    return terms


def _domain(labels: Mapping[str, Mapping[str, str]], term: Manifest, pod: Manifest) -> str | None:
    return labels[pod["spec"]["nodeName"]].get(term["topologyKey"])


def _are_together(labels: Mapping[str, Mapping[str, str]], term: Manifest, pod: Manifest, other: Manifest) -> bool:
    domain = _domain(labels, term, pod)
    return domain is not None and _domain(labels, term, other) == domain


def _selected(term: Manifest, pod: Manifest, placed: Sequence[Manifest]) -> list[Manifest]:
    return [other for other in placed if other is not pod and _selects(term, pod, other)]


def _selects(term: Manifest, of: Manifest, other: Manifest) -> bool:
    """Whether a term with `matchLabels` alone, and no namespaces but its pod's own, selects a pod."""
    selector = term["labelSelector"]
    if not (term.keys() <= _READ and selector.keys() == {"matchLabels"}):
        raise ValueError(f"a term that this judge cannot read: {term}")
    if of["metadata"]["namespace"] != other["metadata"]["namespace"]:
        return False
    labels: Mapping[str, str] = other["metadata"].get("labels") or {}
    required: Mapping[str, str] = selector["matchLabels"]
    return required.items() <= labels.items()


def _name(manifest: Manifest) -> str:
    name: str = manifest["metadata"]["name"]
    return name


# What a kubelet rejects, judged over the API server's own objects: there is no kubelet here, so no pod ends as
# Failed.
#
# A kubelet checks again what a scheduler has decided: resources, node affinity, host ports and taints
# (k8s.io/kubernetes pkg/kubelet/lifecycle/predicate.go, `generalFilter` and the taints behind it). Of resources it
# leaves out extended ones that the node does not list, and those of a claim that kube-scheduler has made for the pod
# (the same file, `removeMissingExtendedResources`). Nothing of Kindred is used.

_SUFFIXES: Final = {"m": Fraction(1, 1000), "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30)}
_REJECTED: Final = frozenset({"NoSchedule", "NoExecute"})
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
        if taint["effect"] in _REJECTED and not any(_tolerates(each, taint) for each in spec.get("tolerations", ())):
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
    return any(_selects_node(term, sources) for term in required["nodeSelectorTerms"])


def _selects_node(term: Manifest, sources: Mapping[str, Mapping[str, str]]) -> bool:
    rules = [(source, rule) for source in sources for rule in term.get(source, ())]
    if not rules or any(rule["operator"] != "In" for _, rule in rules):
        raise ValueError(f"node affinity that this judge cannot read: {term}")
    return all(sources[source].get(rule["key"]) in rule["values"] for source, rule in rules)


def _tolerates(toleration: Manifest, taint: Manifest) -> bool:
    if toleration.get("effect") not in {None, "", taint["effect"]}:
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in {None, "", taint["key"]}
    required = (taint["key"], taint.get("value", ""))
    return (toleration.get("key"), toleration.get("value", "")) == required


def _amount(quantity: str) -> Fraction:
    for suffix, factor in _SUFFIXES.items():
        if quantity.endswith(suffix):
            return Fraction(quantity.removesuffix(suffix)) * factor
    return Fraction(quantity)


# Devices that pods have by DRA, judged over the API server's own objects. Nothing of Kindred is used.
#
# A pod has devices by the claims that it names. It also has them by the claim that kube-scheduler makes for a
# resource of a DeviceClass, if its node has no such resource in `status.allocatable`. Whether a node with a device
# plugin has enough is for tests.e2e.judges to judge.


_READ_REQUESTS: Final = frozenset({"name", "exactly"})
_READ_RESULTS: Final = frozenset({"request", "driver", "pool", "device"})


class State(NamedTuple):
    """What the API server has. Pods and claims are of one namespace."""

    nodes: Sequence[Manifest]
    pods: Sequence[Manifest]
    slices: Sequence[Manifest]
    claims: Sequence[Manifest]
    classes: Sequence[Manifest]


class _Device(NamedTuple):
    driver: str
    pool: str
    name: str


def misallocations(state: State) -> list[str]:
    """Return `FAULT: ...` for each thing that is wrong with the devices of the pods that have a node.

    Raises ValueError for a field that is more than the tests use.
    """
    claims = {_name(claim): claim for claim in state.claims}
    nodes = {
        _Device(each["spec"]["driver"], each["spec"]["pool"]["name"], device["name"]): each["spec"]["nodeName"]
        for each in state.slices
        for device in each["spec"]["devices"]
    }
    found = [*_taken_twice(state.claims), *_left_over(state)]
    for pod in state.pods:
        if not pod["spec"].get("nodeName"):
            continue
        for named in pod["spec"].get("resourceClaims", ()):
            found += _faults(pod, claims.get(named["resourceClaimName"]), nodes)
        required = _required_of_classes(pod, state)
        made_for = pod.get("status", {}).get("extendedResourceClaimStatus", {})
        if required or made_for:
            claim = claims.get(made_for.get("resourceClaimName", ""))
            found += [*_faults(pod, claim, nodes), *_unlike(pod, required, made_for, claim)]
    return found


def _taken_twice(claims: Sequence[Manifest]) -> Iterator[str]:
    """Yield a line for each device that several claims have, or one claim several times."""
    users: defaultdict[_Device, list[str]] = defaultdict(list)
    for claim in claims:
        for device in _devices(claim):
            users[device].append(_name(claim))
    for device, names in users.items():
        if len(names) > 1:
            yield f"Twice: {device.name} of {device.pool} is allocated to {', '.join(names)}"


def _left_over(state: State) -> Iterator[str]:
    """Yield a line for each claim that keeps devices without a pod that has a node."""
    bound = {pod["metadata"]["uid"] for pod in state.pods if pod["spec"].get("nodeName")}
    for claim in state.claims:
        reserved = _reserved_for(claim)
        if reserved - bound or (_devices(claim) and not reserved):
            yield f"LeftOver: {_name(claim)} is kept for {sorted(reserved - bound) or 'no pod'}"


def _faults(pod: Manifest, claim: Manifest | None, nodes: Mapping[_Device, str]) -> Iterator[str]:
    """Yield a line for each thing that is wrong with one claim of a pod. `nodes`: where the devices are."""
    if claim is None:
        yield f"NoClaim: {_name(pod)} needs a claim that is not there"
        return
    if pod["metadata"]["uid"] not in _reserved_for(claim):
        yield f"NotReserved: {_name(claim)} is not reserved for {_name(pod)}"
    node = pod["spec"]["nodeName"]
    for device in _devices(claim):
        if nodes.get(device) != node:
            where = nodes.get(device, "no node")
            yield f"Elsewhere: {_name(pod)} is on {node}, its {device.name} of {device.pool} is on {where}"
    allocated = Counter(result["request"] for result in _results(claim))
    requested = _requested(claim)
    if allocated != requested:
        yield f"Count: {_name(claim)} asks for {dict(requested)} devices, and has {dict(allocated)}"


def _required_of_classes(pod: Manifest, state: State) -> Counter[str]:
    """Return the resources that a pod can have on its node only by a DeviceClass, with their amounts."""
    of_classes = {each["spec"].get("extendedResourceName") for each in state.classes}
    for node in state.nodes:
        if _name(node) == pod["spec"]["nodeName"]:
            of_classes -= {name for name, amount in node["status"]["allocatable"].items() if amount != "0"}
    required: Counter[str] = Counter()
    for container in pod["spec"]["containers"]:
        for resource, amount in container.get("resources", {}).get("requests", {}).items():
            if resource in of_classes:
                required[resource] += int(amount)
    return required


def _unlike(pod: Manifest, required: Counter[str], made_for: Manifest, claim: Manifest | None) -> Iterator[str]:
    """Yield a line if the claim that was made for a pod is for other resources than the pod wants."""
    if claim is None:
        return
    mapped = {each["resourceName"] for each in made_for["requestMappings"]}
    made = _requested(claim).total()
    if mapped != required.keys() or made != required.total():
        yield f"Unlike: {_name(pod)} wants {dict(required)}, its claim is for {made} of {sorted(mapped)}"


def _requested(claim: Manifest) -> Counter[str]:
    """Return the requests of a claim, with the number of devices of each."""
    requested: Counter[str] = Counter()
    for request in claim["spec"]["devices"]["requests"]:
        if request.keys() - _READ_REQUESTS or request["exactly"].get("allocationMode", "ExactCount") != "ExactCount":
            raise ValueError(f"a request that this judge cannot read: {request}")
        requested[request["name"]] = request["exactly"].get("count", 1)
    return requested


def _devices(claim: Manifest) -> list[_Device]:
    return [_Device(each["driver"], each["pool"], each["device"]) for each in _results(claim)]


def _results(claim: Manifest) -> list[Manifest]:
    """Return the allocated devices of a claim. None are, before a scheduler has allocated it."""
    allocation = claim.get("status", {}).get("allocation") or {}
    results: list[Manifest] = allocation.get("devices", {}).get("results", [])
    for result in results:
        if result.keys() - _READ_RESULTS:
            raise ValueError(f"an allocation that this judge cannot read: {result}")
    return results


def _reserved_for(claim: Manifest) -> set[str]:
    """Return the uids of the pods that a claim is reserved for."""
    return {each["uid"] for each in claim.get("status", {}).get("reservedFor", ()) if each["resource"] == "pods"}
