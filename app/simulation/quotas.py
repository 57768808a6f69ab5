"""What the ResourceQuotas of a namespace leave for more replicas, as the API server admits them one by one.

Source: k8s.io/apiserver pkg/admission/plugin/resourcequota/controller.go (CheckRequest). What its configuration limits
without a quota (limitedResources) is not known.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from app.explain.stored_pod import Json, amount_of, elements, member, rendered
from app.simulation.assumptions import Lack
from app.simulation.quota_usage import ClaimUse, PodUse, Used
from app.simulation.raw_objects import RawObjects
from app.simulation.replicas import Replica
from core.simulation.capacity import Allowance, Template

KIND: Final = "ResourceQuota"
_Uses: TypeAlias = dict[Allowance, int]


class Allowed(NamedTuple):
    """Templates with what quotas allow of each, and what of the quotas is not judged."""

    templates: Sequence[Template]
    lacks: Sequence[Lack]


def within_quotas(replicas: Sequence[Replica], raw: RawObjects) -> Allowed:
    """Return the templates with what each replica uses of the quotas of its namespace."""
    templates, lacks = list[Template](), list[Lack]()
    quotas: dict[str, Sequence[_Quota]] = {}
    for each in replicas:
        template, uses = each.template, _Uses()
        namespace = template.pod.namespace
        if namespace not in quotas:
            quotas[namespace] = [_Quota(stored, namespace) for stored in raw.in_namespace(KIND, namespace)]
        used: list[Used] = [PodUse(template.pod, each.spec), *map(ClaimUse, template.claims)]
        for quota in quotas[namespace]:
            lacks += [Lack(f"{why} of {each.of}, without its owner's object") for why in quota.charge(used, uses)]
        templates.append(template._replace(uses=[*uses.items()]))
    return Allowed(templates, [*dict.fromkeys(lacks)])


class _Quota:
    def __init__(self, stored: Json, namespace: str) -> None:
        self._name = f"{KIND} {namespace}/{member(stored, 'metadata').get('name')}"
        spec = member(stored, "spec")
        self._hard = member(stored, "status", "hard") or member(spec, "hard")
        self._used = member(stored, "status", "used")
        scopes = spec.get("scopes") if isinstance(spec.get("scopes"), list) else []
        self._scopes: list[Json] = [{"scopeName": each, "operator": "Exists"} for each in scopes or ()]
        self._scopes += elements(member(spec, "scopeSelector"), "matchExpressions")

    def charge(self, used: Sequence[Used], uses: _Uses) -> Iterator[str]:
        """Add what a replica with some objects uses of this quota. Yield what of it is not known."""
        for each in used:
            in_scopes = [each.is_in(scope) for scope in self._scopes]
            if False in in_scopes:
                continue
            if None in in_scopes:
                yield f"the scopes of {self._name}"
                continue
            lacks = each.lacks(self._hard)
            if lacks:
                uses[Allowance(f"{self._name}: must specify {lacks}", 0)] = 1
            for resource in self._hard:
                if each.unknown and resource.startswith(each.unknown):
                    yield f"{self._name}: {resource}"
                amount = each.amounts.get(resource, 0)
                allowance = self._allowance(resource)
                if amount and allowance is not None:
                    uses[allowance] = uses.get(allowance, 0) + amount

    def _allowance(self, resource: str) -> Allowance | None:
        """Return what is left of a resource, in nano units. None: the quota cannot be read."""
        hard, used = self._hard.get(resource), self._used.get(resource, 0)
        limit = amount_of(hard)
        if limit is None:
            return None
        text = f"{self._name} leaves {resource}: {rendered(hard)}, of which {rendered(used)} are used"
        return Allowance(text, limit - (amount_of(used) or 0))
