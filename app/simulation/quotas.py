"""What the ResourceQuotas of a namespace leave for more replicas.

Source: k8s.io/kubernetes pkg/quota/v1/evaluator/core/pods.go (podComputeUsageHelper): requests by their names with and
without `requests.`, and the number of pods. Limits, storage and quotas with scopes are not judged.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from app.explain.stored_pod import Json, amount_of, elements, member
from app.simulation.assumptions import Lack
from app.simulation.raw_objects import RawObjects
from core.simulation.capacity import Template

KIND: Final = "ResourceQuota"
_COUNTS: Final = ("pods", "count/pods")
_STORAGE: Final = ("requests.storage", "persistentvolumeclaims")  # of all classes, or of CLASS in CLASS/...
_PER_UNIT: Final = 10**9  # of `amount_of`
_PER_MILLI: Final = 10**6


class Allowed(NamedTuple):
    """Templates with what quotas allow of each, and what of the quotas is not judged."""

    templates: Sequence[Template]
    lacks: Sequence[Lack]


def within_quotas(templates: Sequence[Template], raw: RawObjects) -> Allowed:
    """Return the templates with the number that quotas allow, each in its share."""
    found, lacks = [*templates], list[Lack]()
    for namespace in dict.fromkeys(each.pod.namespace for each in templates):
        for quota in raw.in_namespace(KIND, namespace):
            name = f"{KIND} {namespace}/{member(quota, 'metadata').get('name')}"
            spec = member(quota, "spec")
            if elements(member(spec, "scopeSelector"), "matchExpressions") or spec.get("scopes"):
                lacks.append(Lack(f"{name} has scopes"))
                continue
            turn = [each for each in found if each.pod.namespace == namespace]
            for resource, left in _left(quota):
                per_turn = sum(each.share * _used(each, resource) for each in turn)
                if resource.startswith("limits.") or resource.endswith(_STORAGE):
                    lacks.append(Lack(f"{name}: {resource}"))
                elif per_turn:
                    text = f"{name} leaves {_amount(quota, resource)}"
                    found = [_bounded(each, namespace, left // per_turn, text) for each in found]
    return Allowed(found, [*dict.fromkeys(lacks)])


def _bounded(template: Template, namespace: str, turns: int, text: str) -> Template:
    most = max(0, turns) * template.share
    if template.pod.namespace != namespace or (template.most is not None and template.most <= most):
        return template
    return template._replace(most=most, quota=text)


def _left(quota: Json) -> Iterator[tuple[str, int]]:
    """Yield resource -> what is left, in nano units."""
    hard = member(quota, "status", "hard") or member(quota, "spec", "hard")
    used = member(quota, "status", "used")
    for resource, limit in hard.items():
        amount = amount_of(limit)
        if amount is not None:
            yield resource, amount - (amount_of(used.get(resource, "0")) or 0)


def _amount(quota: Json, resource: str) -> str:
    hard = member(quota, "status", "hard") or member(quota, "spec", "hard")
    used: Mapping[str, object] = member(quota, "status", "used")
    return f"{resource}: {hard.get(resource)}, of which {used.get(resource, 0)} are used"


def _used(template: Template, resource: str) -> int:
    """Return what a replica uses of a resource of a quota, in nano units."""
    if resource in _COUNTS:
        return _PER_UNIT
    name = resource.removeprefix("requests.")
    amount = template.pod.requests.get(name, 0)
    return amount * (_PER_MILLI if name == "cpu" else _PER_UNIT)
