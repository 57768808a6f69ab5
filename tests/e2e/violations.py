"""Required inter-pod (anti-)affinity, judged over the API server's own objects by the plainest of means.

Nothing of Kindred is used: this is the judge. What holds of a state is what must hold of placements that only ever
added pods: no two pods stand in one domain where a term of either forbids the other; and a pod with required affinity
stands with another that it wants, or is the first of its own kind.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

Manifest = Mapping[str, Any]

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def violations(nodes: Sequence[Manifest], pods: Sequence[Manifest]) -> list[str]:
    """Return a line for each rule that is broken among the pods that have a node."""
    labels = {node["metadata"]["name"]: node["metadata"].get("labels", {}) for node in nodes}
    placed = [pod for pod in pods if pod["spec"].get("nodeName")]
    found = []
    for pod in placed:
        for term in _terms(pod, "podAntiAffinity"):
            found += [
                f"{_name(pod)} and {_name(other)} on {_domain(labels, term, pod)}"
                for other in _together(labels, placed, pod, term)
                if _selects(term, pod, other)
            ]
        for term in _terms(pod, "podAffinity"):
            wanted = [other for other in placed if other is not pod and _selects(term, pod, other)]
            near = [other for other in _together(labels, placed, pod, term) if _selects(term, pod, other)]
            if not near and (wanted or not _selects(term, pod, pod)):
                found.append(f"{_name(pod)} alone on {_domain(labels, term, pod)}")
    return found


def _terms(pod: Manifest, kind: str) -> Sequence[Manifest]:
    affinity = (pod["spec"].get("affinity") or {}).get(kind) or {}
    terms: Sequence[Manifest] = affinity.get(_REQUIRED) or ()
    return terms


def _domain(labels: Mapping[str, Mapping[str, str]], term: Manifest, pod: Manifest) -> str | None:
    return labels[pod["spec"]["nodeName"]].get(term["topologyKey"])


def _together(
    labels: Mapping[str, Mapping[str, str]], placed: Sequence[Manifest], pod: Manifest, term: Manifest
) -> Iterator[Manifest]:
    domain = _domain(labels, term, pod)
    if domain is not None:
        yield from (other for other in placed if other is not pod and _domain(labels, term, other) == domain)


def _selects(term: Manifest, of: Manifest, other: Manifest) -> bool:
    """Whether a term with `matchLabels` alone, and no namespaces but its pod's own, selects a pod."""
    selector = term["labelSelector"]
    known = set(term) <= {"labelSelector", "topologyKey"} and set(selector) == {"matchLabels"}
    if not known:
        raise ValueError(f"a term that this judge cannot read: {term}")
    same_namespace = of["metadata"]["namespace"] == other["metadata"]["namespace"]
    labels: Mapping[str, str] = other["metadata"].get("labels") or {}
    return same_namespace and set(selector["matchLabels"].items()) <= set(labels.items())


def _name(pod: Manifest) -> str:
    name: str = pod["metadata"]["name"]
    return name
