"""The ResourceClaims that come with a new pod: of its templates, and of its file.

Source: k8s.io/kubernetes pkg/controller/resourceclaim/controller.go (handleClaim), and for what is filled in
pkg/apis/resource/v1/defaults.go.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from app.explain.made_objects import of_namespace, owned_by
from app.explain.stored_pod import Json, Notes, Objects, absent, elements, member, rendered
from app.objects.decode import DecodeError, under
from app.objects.decode_claims import decode_resource_claim
from core.events import Object
from core.mirror.cluster import ClusterMirror
from core.objects.devices import EXACT_COUNT, ResourceClaim

_CLAIM: Final = "ResourceClaim"
_TEMPLATE: Final = "ResourceClaimTemplate"
_FOR_ADMINS: Final = "resource.kubernetes.io/admin-access"
_FLAT: Final = "resource.k8s.io/v1beta1"
"""The version in which a request has the members of `exactly` itself."""


def made_claims(
    pod: Json, companions: Sequence[Json], mirror: ClusterMirror, objects: Objects, notes: Notes
) -> Sequence[Object]:
    """Return the claims of a pod that the mirror lacks. Raises DecodeError.

    `companions` are the other objects of its file, and `objects` has the templates. The pod loses its claims of
    templates that are not at hand, before it is tried.
    """
    found: dict[str, ResourceClaim] = {}
    for field, claim in (*_of_file(pod, companions), *_of_templates(pod, objects, notes)):
        with under(field):
            decoded = decode_resource_claim(msgspec.json.encode(claim))
        if decoded.full_name not in mirror.objects(ResourceClaim) and decoded.full_name not in found:
            _refuse_admin_access(field, decoded, mirror)
            found[decoded.full_name] = decoded
            notes.done.append(f"claim {rendered(decoded.name)}")
    return [*found.values()]


def _refuse_admin_access(field: str, claim: ResourceClaim, mirror: ClusterMirror) -> None:
    """Source: k8s.io/kubernetes pkg/registry/resource/utils.go (AuthorizedForAdmin). No namespace: it is not known."""
    labels = mirror.namespaces.get(claim.namespace)
    is_requested = any(each.exactly is not None and each.exactly.admin_access for each in claim.requests)
    if is_requested and labels is not None and labels.get(_FOR_ADMINS) != "true":
        raise DecodeError(field, f"adminAccess requires the label {_FOR_ADMINS}=true of namespace {claim.namespace}")


def _of_file(pod: Json, companions: Sequence[Json]) -> Iterator[tuple[str, Json]]:
    for each in of_namespace(pod, companions, _CLAIM):
        yield (
            f"{_CLAIM} {rendered(_name_of(each))}",
            {**each, "spec": _defaulted(each, member(each, "spec")), "status": None},
        )


def _of_templates(pod: Json, objects: Objects, notes: Notes) -> Iterator[tuple[str, Json]]:
    """Yield the claims that the pod would own."""
    spec, at_hand = member(pod, "spec"), objects(_TEMPLATE)
    templates = {str(_name_of(each)): each for each in of_namespace(pod, at_hand, _TEMPLATE)}
    statuses, known = [], []
    for each in elements(spec, "resourceClaims"):
        of_template = each.get("resourceClaimTemplateName")
        template = None if of_template is None else templates.get(str(of_template))
        if of_template is not None and template is None:
            why = f"there is no {_TEMPLATE} {rendered(of_template)}" if at_hand else absent(_TEMPLATE)
            notes.unknown.append(f"claim {rendered(each.get('name'))}: {why}")
            continue
        known.append(each)
        if template is None:
            continue
        own = owned_by(pod, each)
        statuses.append({"name": each.get("name"), "resourceClaimName": own["name"]})
        of_claim = _defaulted(template, member(template, "spec", "spec"))
        yield f"{_TEMPLATE} {rendered(of_template)}.spec", {"metadata": own, "spec": of_claim}
    if statuses:
        pod["status"] = {**member(pod, "status"), "resourceClaimStatuses": statuses}
    if len(known) < len(elements(spec, "resourceClaims")):
        spec["resourceClaims"] = known


def _name_of(manifest: Mapping[str, Any]) -> object:
    return member(manifest, "metadata").get("name")


def _defaulted(whole: Mapping[str, Any], spec: Json) -> Json:
    """Return the spec of a claim with what the API server fills in."""
    is_flat = whole.get("apiVersion") == _FLAT
    devices = member(spec, "devices")
    requests = [_request(each, is_flat=is_flat) for each in elements(devices, "requests")]
    return {**spec, "devices": {**devices, "requests": requests}} if requests else spec


def _request(request: Json, *, is_flat: bool) -> Json:
    if is_flat and "deviceClassName" in request:
        request = {"name": request.get("name"), "exactly": {k: of for k, of in request.items() if k != "name"}}
    found = dict(request)
    if "exactly" in request:
        found["exactly"] = _counted(member(request, "exactly"))
    if "firstAvailable" in request:
        found["firstAvailable"] = [_counted(each) for each in elements(request, "firstAvailable")]
    return found


def _counted(request: Json) -> Json:
    mode = request.get("allocationMode") or EXACT_COUNT
    counted = {"count": request.get("count") or 1} if mode == EXACT_COUNT else {}
    return {**request, "allocationMode": mode, **counted}
