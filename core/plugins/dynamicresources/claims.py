"""The claims of a pod: which objects they are, what prevents the pod from using them, and what is to be allocated.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go (PreFilter).
"""

from collections.abc import Mapping

from core.framework.claims import ClaimError
from core.framework.interface import Code
from core.mirror.cluster import ClusterMirror
from core.objects.devices import ALL, ClaimRequest, Constraint, DeviceRequest, ResourceClaim
from core.objects.kinds import DeviceClass
from core.objects.pod import Pod, PodResourceClaim
from core.objects.quantity import quoted
from core.plugins.dynamicresources.alike import Aspect, aspects_of
from core.plugins.dynamicresources.allocator import UndecidedError
from core.plugins.dynamicresources.constraints import ClaimNeeds, Need
from core.plugins.dynamicresources.matching import Matcher, union
from core.plugins.dynamicresources.outcomes import CompileBudget
from core.releases.release import Release


def claims_of(mirror: ClusterMirror, pod: Pod) -> list[ResourceClaim]:
    """Return the claims that the pod names, without those that it does not need. Raises ClaimError."""
    stored = mirror.objects(ResourceClaim)
    found = []
    for each in pod.resource_claims:
        if each.claim is None:
            if each.of_template and each.created:
                continue
            raise ClaimError(_without_name(pod, each))
        claim = stored.get(f"{pod.namespace}/{each.claim}")
        if claim is None:
            raise ClaimError(f"could not find ResourceClaim {quoted(f'{pod.namespace}/{each.claim}')}")
        if claim.deleting:
            raise ClaimError(f"resourceclaim {quoted(claim.name)} is being deleted")
        if each.of_template and (claim.controller is None or claim.controller.uid != pod.uid):
            kind = "Pod" if mirror.rules.release >= Release(1, 36) else "pod"
            raise ClaimError(
                f"ResourceClaim {claim.full_name} was not created for {kind} {pod.full_name} ({kind} is not owner)"
            )
        found.append(claim)
    return found


def _without_name(pod: Pod, each: PodResourceClaim) -> str:
    place = f'pod "{pod.full_name}"'
    if each.of_template:
        return f"{place}: ResourceClaim not created yet"
    return f"{place}, spec.resourceClaim {quoted(each.name)}: none of the supported fields are set"


def refuse_unknown_classes(mirror: ClusterMirror, claim: ResourceClaim) -> None:
    """Raise ClaimError for a request of an unknown kind, or of a class that does not exist."""
    classes = mirror.objects(DeviceClass)
    for request in claim.requests:
        if request.exactly is None and not request.first_available:
            raise ClaimError(f"resource claim {claim.full_name}, request {request.name}: unknown request type")
        for name, each in named(request):
            if not each.device_class:
                raise ClaimError(f"request {name}: unsupported request type", Code.ERROR)
            if each.device_class not in classes:
                raise ClaimError(f"request {name}: device class {each.device_class} does not exist")


def named(request: ClaimRequest) -> list[tuple[str, DeviceRequest]]:
    """Return what a request asks for, or each of its alternatives, with its full name."""
    exactly = [] if request.exactly is None else [(request.name, request.exactly)]  # no API server stores both
    return [*exactly, *[(f"{request.name}/{each.name}", each) for each in request.first_available]]


class Selection:
    """The selectors of classes and claims, compiled once, with their outcomes."""

    def __init__(self, classes: Mapping[str, DeviceClass], release: Release) -> None:
        self._classes = classes
        self._release = release
        self._matchers: dict[str, Matcher] = {}
        self._characters = 0

    def needs_of(
        self, name: str, requests: tuple[ClaimRequest, ...], constraints: tuple[Constraint, ...], budget: CompileBudget
    ) -> ClaimNeeds:
        """Return what a claim asks for. Raises UndecidedError for an unknown kind of selector, and for too many."""
        return ClaimNeeds(name, tuple([self._alternatives(each, budget) for each in requests]), constraints)

    def _alternatives(self, request: ClaimRequest, budget: CompileBudget) -> tuple[Need, ...]:
        if request.exactly is not None and not request.first_available:
            return (Need(request.exactly, self._matchers_of(request.exactly, budget), request.name),)
        return tuple(
            [
                Need(each, self._matchers_of(each, budget), request.name, number)
                for number, each in enumerate(request.first_available)
            ]
        )

    def _matchers_of(self, request: DeviceRequest, budget: CompileBudget) -> tuple[tuple[str, int, Matcher], ...]:
        of_class = self._classes[request.device_class]
        if None in of_class.selectors:
            raise UndecidedError(f"class {of_class.name}: a selector of an unknown kind")
        listed = [(of_class.name, number, each) for number, each in enumerate(of_class.selectors)]
        listed += [("", number, each) for number, each in enumerate(request.selectors)]
        return tuple(
            [(owner, number, self.matcher(each, budget)) for owner, number, each in listed if each is not None]
        )

    def matcher(self, expression: str, budget: CompileBudget) -> Matcher:
        """Return the selector of an expression. Raises UndecidedError if it would have to be compiled and is too long.

        Every caller has a budget, because 32 selectors of the length that upstream allows take seconds.
        """
        found = self._matchers.get(expression)
        if found is None:
            budget.spend(expression)
            self._characters += len(expression)
            if len(self._matchers) >= _MAX_MATCHERS or self._characters > _MAX_CHARACTERS:
                self._matchers.clear()
                self._characters = len(expression)
            found = self._matchers[expression] = Matcher(expression, self._release)
        return found


_MAX_MATCHERS = 1024
_MAX_CHARACTERS = 128 * 1024
"""Characters of expressions that are kept compiled, in 200 bytes each."""


def aspects_of_claims(claims: list[ClaimNeeds]) -> tuple[tuple[Aspect, ...], tuple[Aspect, ...]]:
    """Return what of the devices of a node decides about claims, and what does if those in use are explained, too.

    A request for all devices, or with admin access, looks at those in use.
    """
    every = [need for claim in claims for alternatives in claim.requests for need in alternatives]
    reads = union(matcher.reads for need in every for _, _, matcher in need.matchers)
    compared = {each.match or each.distinct or "" for claim in claims for each in claim.constraints}
    free = not any(need.request.admin_access or need.request.mode == ALL for need in every)
    return aspects_of(reads, compared, free=free), aspects_of(reads, compared, free=False)
