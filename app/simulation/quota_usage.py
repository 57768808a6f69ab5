"""What a pod and its claims use of ResourceQuotas, and which scopes they are in.

Source: k8s.io/kubernetes pkg/quota/v1/evaluator/core/pods.go (PodUsageFunc, podComputeUsageHelper, Constraints,
podMatchesScopeFunc) and persistent_volume_claims.go (Usage, pvcMatchesScopeFunc).
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final, Protocol

from app.explain.stored_pod import PREFERRED, TERMS, Json, amount_of, elements, member, of_all_containers
from core.objects.pod import Pod
from core.objects.pod_requests import may_be_devices
from core.objects.volumes import PersistentVolumeClaim

_UNIT: Final = 10**9  # of `amount_of`
_MILLI: Final = 10**6
_REQUESTS: Final = "requests."
_LIMITS: Final = "limits."
_BOTH: Final = ("cpu", "memory", "ephemeral-storage")
"""Resources with a limit in quotas, whose request has two names there."""
_HUGE_PAGES: Final = "hugepages-"
_COMPUTE: Final = ("cpu", "memory")
_MUST_BE_SET: Final = frozenset(f"{of}{name}" for of in ("", _REQUESTS, _LIMITS) for name in _COMPUTE)
_OF_CLASS: Final = ".storageclass.storage.k8s.io/"


class Used(Protocol):
    """What one object uses."""

    amounts: Mapping[str, int]
    """Resource of a quota -> amount in nano units."""
    unknown: str
    """How the resources begin whose amounts are not known. Empty: all are known."""

    def is_in(self, scope: Json) -> bool | None:
        """Return whether the object is in a scope, a ScopedResourceSelectorRequirement. None: that is not known."""

    def lacks(self, resources: Collection[str]) -> str:
        """Return what the object must specify if these resources have a quota, in upstream's words."""


class PodUse:
    """What a new pod uses. Without its `spec` as the API server would store it, its limits are not known."""

    def __init__(self, pod: Pod, spec: Json | None) -> None:
        self._pod = pod
        self._spec = spec
        self.unknown = _LIMITS if spec is None else ""
        self.amounts: Mapping[str, int] = {
            "pods": _UNIT,
            "count/pods": _UNIT,
            **dict(self._requests()),
            **dict(self._limits()),
        }

    def _requests(self) -> Iterator[tuple[str, int]]:
        for name, amount in self._pod.requests.items():
            used = amount * (_MILLI if name == "cpu" else _UNIT)
            if name in _BOTH or name.startswith(_HUGE_PAGES):
                yield name, used
                yield f"{_REQUESTS}{name}", used
            elif may_be_devices(name):
                yield f"{_REQUESTS}{name}", used

    def _limits(self) -> Iterator[tuple[str, int]]:
        """Source: component-helpers/resource/helpers.go (PodLimits): overhead is added to limits that are not 0."""
        spec = self._spec or {}
        overhead = member(spec, "overhead")
        for name, text in of_all_containers(spec, "limits", whole=True).items():
            limit = amount_of(text) or 0
            if name in _BOTH and limit:
                yield f"{_LIMITS}{name}", limit + (amount_of(overhead.get(name, "0")) or 0)

    def is_in(self, scope: Json) -> bool | None:
        """Return whether the pod is in a scope; in one that is not of pods, it is not."""
        name, spec = scope.get("scopeName"), self._spec
        if name in ("BestEffort", "NotBestEffort"):
            return self._pod.best_effort is (name == "BestEffort")
        if name not in ("Terminating", "NotTerminating", "PriorityClass", "CrossNamespacePodAffinity"):
            return False
        if spec is None:
            return None
        if name == "PriorityClass":
            return _selects(scope, str(spec.get("priorityClassName") or ""))
        if name == "CrossNamespacePodAffinity":
            return any(each.get("namespaces") or each.get("namespaceSelector") is not None for each in _terms(spec))
        return (spec.get("activeDeadlineSeconds") is not None) is (name == "Terminating")

    def lacks(self, resources: Collection[str]) -> str:
        """Return what containers must specify. Resources of the pod as a whole make up for it (PodLevelResources)."""
        spec = self._spec or {}
        whole = member(spec, "resources")
        names = {*member(whole, "requests"), *member(whole, "limits")}
        if any(name in _COMPUTE or name.startswith(_HUGE_PAGES) for name in names):
            return ""
        missing: dict[str, set[str]] = {}
        for container in (*elements(spec, "containers"), *elements(spec, "initContainers")):
            for resource in _MUST_BE_SET.intersection(resources):
                of = "limits" if resource.startswith(_LIMITS) else "requests"
                if resource.removeprefix(f"{of}.") not in member(container, "resources", of):
                    missing.setdefault(resource, set()).add(str(container.get("name")))
        return "; ".join(f"{resource} for: {','.join(sorted(missing[resource]))}" for resource in sorted(missing))


class ClaimUse:
    """What a new claim uses."""

    unknown = ""

    def __init__(self, claim: PersistentVolumeClaim) -> None:
        self._claim = claim
        numbers = {"persistentvolumeclaims": _UNIT}
        if claim.requested is not None:
            numbers["requests.storage"] = claim.requested * _UNIT
        of_class = {f"{claim.storage_class}{_OF_CLASS}{name}": amount for name, amount in numbers.items()}
        self.amounts: Mapping[str, int] = {
            "count/persistentvolumeclaims": _UNIT,
            **numbers,
            **(of_class if claim.storage_class else {}),
        }

    def is_in(self, scope: Json) -> bool:
        """Return whether the claim is in a scope; those of pods it is not in."""
        name = scope.get("scopeName")
        return name == "VolumeAttributesClass" and _selects(scope, self._claim.volume_attributes_class)

    def lacks(self, _resources: Collection[str]) -> str:
        """Return the empty text: a claim must specify nothing."""
        return ""


def _terms(spec: Json) -> Iterator[Json]:
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity = member(spec, "affinity", kind)
        yield from elements(affinity, TERMS)
        yield from (member(each, "podAffinityTerm") for each in elements(affinity, PREFERRED))


def _selects(scope: Json, name: str) -> bool:
    """Return whether a scope selects the name of a class, empty for none."""
    match scope.get("operator"):
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
        case "In":
            return name in (scope.get("values") or ())
        case "NotIn":
            return name not in (scope.get("values") or ())
    return False
