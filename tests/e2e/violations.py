"""Required inter-pod (anti-)affinity and topology spread, judged over the API server's own objects by plain means.

Nothing of Kindred is used: this is the judge. What holds of a state is what must hold of placements that only ever
added pods: no two pods stand in one domain where a term of either forbids the other; a pod with required affinity
stands with another that it wants, or is the first of its own kind; pods that all want each other stand in one domain;
and no domain has more pods than the least one and the skew that its constraint allows.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

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
            wanted = _selected(term, pod, placed)
            near = any(_are_together(labels, term, pod, other) for other in wanted)
            if not near and (wanted or not _selects(term, pod, pod)):
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
    wanted: Mapping[str, str] = selector["matchLabels"]
    return wanted.items() <= labels.items()


def _name(pod: Manifest) -> str:
    name: str = pod["metadata"]["name"]
    return name
