"""The ResourceClaims that come with the pod of a manifest: of templates, and of its file."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from app.explain.explain_request import Manifest, decode_manifest
from app.objects.decode import DecodeError
from core.events import ClusterEvent
from core.objects.devices import ResourceClaim
from core.objects.kinds import DeviceClass, Namespace
from core.objects.pod import PodResourceClaim
from tests.app.explain.test_stored_pod import Objects, at_hand
from tests.builders import make_pod

V1 = "resource.k8s.io/v1"
ADMIN = "resource.kubernetes.io/admin-access"
V1BETA1 = "resource.k8s.io/v1beta1"


def exactly(**fields: Any) -> dict[str, Any]:  # noqa: ANN401  # of any kind
    return {"name": "r", "exactly": {"deviceClassName": "gpu", **fields}}


def template(*requests: Any, version: str = V1, namespace: str = "ml") -> dict[str, Any]:  # noqa: ANN401  # also no request
    metadata = {"name": "one", "namespace": namespace}
    spec = {"spec": {"devices": {"requests": [*requests]}}}
    return {"apiVersion": version, "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": spec}


def claim(*requests: Any, namespace: str = "ml") -> dict[str, Any]:  # noqa: ANN401  # also no request
    metadata = {"name": "mine", "namespace": namespace}
    spec = {"devices": {"requests": [*requests]}}
    return {"apiVersion": V1, "kind": "ResourceClaim", "metadata": metadata, "spec": spec, "status": {"allocation": {}}}


def manifest(*companions: Any, objects: Objects | None = None, **reference: str) -> Manifest:  # noqa: ANN401  # any object
    pod = {"kind": "Pod", **make_pod("p").in_namespace("ml").obj()}
    del pod["metadata"]["uid"]  # of a stored pod
    pod["spec"]["resourceClaims"] = [{"name": "gpu", **reference}]
    raw = msgspec.json.encode({"kind": "List", "items": [pod, *companions]})
    return decode_manifest(raw, at_hand(objects or {}))


def claims_of(found: Manifest) -> Sequence[ResourceClaim]:
    return [each for each in found.made if isinstance(each, ResourceClaim)]


@pytest.mark.parametrize("is_in_file", [True, False], ids=["of-its-file", "of-a-dump"])
def test_a_claim_of_a_template_is_made_for_the_pod_alone(is_in_file: bool) -> None:  # noqa: FBT001  # a parameter
    of = template(exactly(count=2))
    others, objects = ([of], None) if is_in_file else ([], {"ResourceClaimTemplate": [of]})
    found = manifest(*others, objects=objects, resourceClaimTemplateName="one")
    (made,) = claims_of(found)
    assert (made.full_name, made.requests[0].exactly and made.requests[0].exactly.count) == ("ml/p-gpu", 2)
    assert found.pod.resource_claims == (PodResourceClaim("gpu", "p-gpu", of_template=True, created=True),)
    assert made.controller is not None
    assert (made.controller.kind, made.controller.uid) == ("Pod", found.pod.uid)
    assert found.notes.done[-1] == "claim p-gpu"


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        pytest.param(
            {},
            "no ResourceClaimTemplate is at hand (`kubectl get -o json resourceclaimtemplates` prints them)",
            id="unknown",
        ),
        pytest.param(
            {"ResourceClaimTemplate": [template(exactly(), namespace="other")]},
            "there is no ResourceClaimTemplate one",
            id="of-another-namespace",
        ),
    ],
)
def test_a_claim_of_a_template_that_is_not_at_hand_is_unknown(objects: Objects, why: str) -> None:
    found = manifest(objects=objects, resourceClaimTemplateName="one")
    assert (found.made, found.pod.resource_claims) == ([], ())
    assert found.notes.unknown == [f"claim gpu: {why}"]


def test_a_claim_and_a_class_of_the_file_count_as_they_would_be_stored() -> None:
    gpu = {"apiVersion": V1, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
    found = manifest(claim(exactly()), claim(exactly(), namespace="other"), gpu, resourceClaimName="mine")
    (mine,) = claims_of(found)
    assert (mine.full_name, mine.allocation) == ("ml/mine", None)
    assert [each.name for each in found.made if isinstance(each, DeviceClass)] == ["gpu"]


@pytest.mark.parametrize(
    ("given", "version", "counts"),
    [
        pytest.param(exactly(), V1, [1], id="one"),
        pytest.param(exactly(count=0), V1, [1], id="zero"),
        pytest.param(exactly(count=None, allocationMode=""), V1, [1], id="null"),
        pytest.param(exactly(allocationMode="All"), V1, [0], id="all"),
        pytest.param({"name": "r", "deviceClassName": "gpu"}, V1BETA1, [1], id="v1beta1"),
        pytest.param(
            {"name": "r", "firstAvailable": [{"name": "a", "count": 4}, {"name": "b"}]}, V1, [4, 1], id="alternatives"
        ),
    ],
)
def test_a_request_has_what_the_api_server_fills_in(given: Any, version: str, counts: list[int]) -> None:  # noqa: ANN401  # any request
    (made,) = claims_of(manifest(template(given, version=version), resourceClaimTemplateName="one"))
    (found,) = made.requests
    every = found.first_available if found.exactly is None else (found.exactly,)
    assert [each.count for each in every] == counts


@pytest.mark.parametrize(
    ("fields", "field"), [({"count": "many"}, "count"), ({"allocationMode": ["All"]}, "allocationMode")]
)
def test_what_is_wrong_in_a_template_is_named_by_its_field(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(DecodeError) as error:
        manifest(template(exactly(**fields)), resourceClaimTemplateName="one")
    where = "ResourceClaimTemplate one.spec.spec.devices"
    assert error.value.field == (f"{where}.requests[0].exactly.{field}")


@pytest.mark.parametrize(
    ("labels", "is_rejected"),
    [({}, True), ({ADMIN: "false"}, True), ({ADMIN: "true"}, False), (None, False)],
    ids=["no-label", "another-value", "allowed", "unknown-namespace"],
)
@pytest.mark.parametrize("of_template", [True, False])
def test_admin_access_requires_a_label_of_the_namespace(
    labels: dict[str, str] | None, *, is_rejected: bool, of_template: bool
) -> None:
    hand = at_hand({})
    if labels is not None:
        hand.mirror.apply(ClusterEvent("Add", Namespace("ml", labels=labels)))
    of = template if of_template else claim
    reference = {"resourceClaimTemplateName": "one"} if of_template else {"resourceClaimName": "mine"}
    pod = {"kind": "Pod", **make_pod("p").in_namespace("ml").obj()}
    del pod["metadata"]["uid"]  # of a stored pod
    pod["spec"]["resourceClaims"] = [{"name": "gpu", **reference}]
    raw = msgspec.json.encode({"kind": "List", "items": [pod, of(exactly(adminAccess=True))]})
    if not is_rejected:
        assert len(claims_of(decode_manifest(raw, hand))) == 1
        return
    with pytest.raises(DecodeError, match=f"adminAccess requires the label {ADMIN}=true of namespace ml"):
        decode_manifest(raw, hand)
