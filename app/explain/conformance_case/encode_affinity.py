"""Inter-pod affinity, node affinity and topology spread constraints of a pod as members of its spec."""

from collections.abc import Sequence
from typing import Final

import msgspec

from app.explain.conformance_case.encode import (
    V1,
    NotExpressibleError,
    label_selector,
    node_selector_term,
    present,
)
from core.objects.affinity import AffinityTerm, PodAffinity, WeightedAffinityTerm
from core.objects.node_affinity import NodeAffinity
from core.objects.node_selector import NodeSelectorTerm
from core.objects.pod import Pod
from core.objects.topology_spread import SpreadConstraint

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def without_broken_parts(pod: Pod) -> Pod:
    """Return an existing pod without the invalid parts of its affinity and spreading, which affect no result.

    No term of an invalid list of inter-pod affinity counts. Node affinity and spreading count only for incoming pods.
    """
    replaced: dict[str, object] = {}
    if pod.affinity.errors:
        replaced["affinity"] = msgspec.structs.replace(pod.affinity, errors=())
    if _is_broken(pod.node_affinity):
        whole = msgspec.structs.replace(pod.node_affinity, required=None, preferred=(), node_names=None)
        replaced["node_affinity"] = whole
    if any(constraint.selector_error for constraint in pod.spread):
        replaced["spread"] = tuple(constraint for constraint in pod.spread if not constraint.selector_error)
    return msgspec.structs.replace(pod, **replaced) if replaced else pod


def affinity_of(pod: Pod) -> V1:
    """Return spec.affinity. Raises NotExpressibleError for invalid terms."""
    for error in pod.affinity.errors:
        raise NotExpressibleError(
            f"pod {pod.full_name}: spec.affinity.{error.field}: a broken term cannot be written again: {error.message}"
        )
    return present({**_pod_affinity(pod.affinity), "nodeAffinity": _node_affinity(pod.node_affinity, pod.full_name)})


def spread_of(pod: Pod) -> Sequence[V1]:
    """Return spec.topologySpreadConstraints. Raises NotExpressibleError for an invalid selector."""
    return [_constraint(constraint, pod.full_name) for constraint in pod.spread]


def _pod_affinity(affinity: PodAffinity) -> V1:
    lists = {
        "podAffinity": (affinity.required_affinity, affinity.preferred_affinity),
        "podAntiAffinity": (affinity.required_anti_affinity, affinity.preferred_anti_affinity),
    }
    return {
        member: present({_REQUIRED: [*map(_term, required)], _PREFERRED: [*map(_weighted, preferred)]})
        for member, (required, preferred) in lists.items()
    }


def _term(term: AffinityTerm) -> V1:
    """Return a PodAffinityTerm. An absent selector is null, which differs from an empty one."""
    matcher = term.matcher
    said: V1 = present({"topologyKey": term.topology_key, "namespaces": sorted(matcher.namespaces)})
    for member, selector in (("labelSelector", matcher.selector), ("namespaceSelector", matcher.namespace_selector)):
        if not selector.nothing:
            said[member] = label_selector(selector)
    return said


def _weighted(weighted: WeightedAffinityTerm) -> V1:
    return {"weight": weighted.weight, "podAffinityTerm": _term(weighted.term)}


def _node_affinity(affinity: NodeAffinity, whose: str) -> V1:
    said: V1 = {}
    if affinity.required is not None:
        terms = [node_selector_term(term, f"pod {whose}") for term in affinity.required.terms]
        if affinity.node_names is None and terms and all(map(_names_a_node, affinity.required.terms)):
            terms.append({})  # an empty term matches no node, but its presence means that no name limits the nodes
        said[_REQUIRED] = {"nodeSelectorTerms": terms}
    if affinity.empty_preferences:
        said[_PREFERRED] = [{"weight": 1, "preference": {}}]
    if affinity.preferred:
        said[_PREFERRED] = [
            {"weight": each.weight, "preference": node_selector_term(each.term, f"pod {whose}")}
            for each in affinity.preferred
        ]
    return said


def _names_a_node(term: NodeSelectorTerm) -> bool:
    return any(field.key == "metadata.name" and not field.negated for field in term.fields)


def _is_broken(affinity: NodeAffinity) -> bool:
    required = affinity.required.terms if affinity.required is not None else ()
    return any(term.errors for term in (*required, *(each.term for each in affinity.preferred)))


def _constraint(constraint: SpreadConstraint, whose: str) -> V1:
    if constraint.selector_error:
        raise NotExpressibleError(
            f"pod {whose}: a topology spread constraint with a broken selector cannot be written again: "
            f"{constraint.selector_error}"
        )
    selector = label_selector(constraint.selector)
    return {
        "maxSkew": constraint.max_skew,
        "topologyKey": constraint.topology_key,
        "whenUnsatisfiable": constraint.when_unsatisfiable,
        **({} if selector is None else {"labelSelector": selector}),
        "minDomains": constraint.min_domains,
        "nodeAffinityPolicy": constraint.node_affinity_policy,
        "nodeTaintsPolicy": constraint.node_taints_policy,
        **present({"matchLabelKeys": list(constraint.match_label_keys)}),
    }
