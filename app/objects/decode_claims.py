"""JSON of ResourceClaims of resource.k8s.io/v1 to the core's values. The limits are those of decode_devices.py."""

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from sys import intern
from typing import Annotated, Final

import msgspec

from app.objects.decode import (
    MAX_LABEL_KEY_BYTES,
    MAX_NAME_BYTES,
    NULL,
    AnnotatedMetadata,
    AnnotatedObject,
    Unread,
    Wire,
    controller_of,
    decoding,
    decoding_field,
    memoised,
    names_in_namespace,
    nullable,
    quantity_of,
    refuse_longer,
    texts,
    under,
)
from app.objects.decode_devices import MAX_LIST, MAX_VALUES, Int64, WireSelector, refuse_more, selectors_of
from app.objects.decode_groups import Condition
from app.objects.decode_placement import WireNodeSelector, WireToleration, node_selector_of, toleration_of
from core.objects import devices
from core.objects.affinity import NodeSelector

_MAX_CONSUMERS: Final = 256
_FOR_EXTENDED: Final = "resource.kubernetes.io/extended-resource-claim"
_BINDING_TIMEOUT: Final = 600.0
"""Seconds after which an allocation whose binding conditions are not true is given up: the default of the argument
bindingTimeout."""


class _Capacities(Wire):
    requests: dict[str, msgspec.Raw] | None = None


class _Request(Wire):
    """A v1.ExactDeviceRequest, or a v1.DeviceSubRequest, which has a name."""

    name: str | None = None
    device_class_name: str | None = None
    selectors: list[WireSelector] | None = None
    allocation_mode: str | None = None
    count: Int64 | None = None
    admin_access: bool | None = None
    tolerations: list[WireToleration] | None = None
    capacity: _Capacities | None = None
    derived_attributes: list[msgspec.Raw] | None = None


class _ClaimRequest(Wire):
    name: str | None = None
    exactly: _Request | None = None
    first_available: list[_Request] | None = None


class _Constraint(Wire):
    requests: list[str] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class _Claimed(Wire):
    requests: list[_ClaimRequest] | None = None
    constraints: list[_Constraint] | None = None


class _ClaimSpec(Wire):
    devices: Annotated[msgspec.Raw, Unread(_Claimed)] = NULL


class _Result(Wire):
    request: str | None = None
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    admin_access: bool | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, msgspec.Raw] | None = None
    skip_node_operations: list[str] | None = None


class _Results(Wire):
    results: list[_Result] | None = None


class _Allocation(Wire):
    devices: _Results | None = None
    node_selector: Annotated[msgspec.Raw, Unread(WireNodeSelector)] = NULL
    allocation_timestamp: str | None = None


class _Consumer(Wire):
    uid: str | None = None


class _DeviceStatus(Wire):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    conditions: list[Condition] | None = None


class _ClaimStatus(Wire):
    allocation: _Allocation | None = None
    reserved_for: list[_Consumer] | None = None
    devices: list[_DeviceStatus] | None = None


class _ResourceClaim(AnnotatedObject):
    spec: _ClaimSpec | None = None
    status: _ClaimStatus | None = None


_claim_decoder: Final = msgspec.json.Decoder(_ResourceClaim)
_claimed_decoder: Final = nullable(_Claimed)
_selector_decoder: Final = nullable(WireNodeSelector)


def decode_resource_claim(raw: bytes | msgspec.Raw) -> devices.ResourceClaim:
    """Decode a resource.k8s.io/v1 ResourceClaim. Raises DecodeError."""
    wire = decoding(_claim_decoder.decode, raw)
    metadata = wire.metadata or AnnotatedMetadata()
    requests, constraints = _claimed_of((wire.spec or _ClaimSpec()).devices)
    status = wire.status or _ClaimStatus()
    refuse_more(status.reserved_for, _MAX_CONSUMERS, "status.reservedFor")
    return devices.ResourceClaim(
        **names_in_namespace("ResourceClaim", wire),
        requests=requests,
        constraints=constraints,
        allocation=None if status.allocation is None else _allocation(status.allocation, status.devices or ()),
        reserved_for=tuple([each.uid or "" for each in status.reserved_for or ()]),
        deleting=metadata.deletion_timestamp is not None,
        controller=controller_of(metadata.owner_references),
        for_extended=texts(metadata.annotations).get(_FOR_EXTENDED) == "true",
    )


def _parse_claimed(raw: bytes) -> tuple[tuple[devices.ClaimRequest, ...], tuple[devices.Constraint, ...]]:
    field = "spec.devices"
    wire = decoding_field(_claimed_decoder.decode, raw, field) or _Claimed()
    refuse_more(wire.requests, MAX_LIST, f"{field}.requests")
    refuse_more(wire.constraints, MAX_LIST, f"{field}.constraints")
    requests = [_claim_request(each, f"{field}.requests[{at}]") for at, each in enumerate(wire.requests or ())]
    return tuple(requests), tuple([_constraint(each) for each in wire.constraints or ()])


_claimed_of: Final = memoised(_parse_claimed)  # the claims of a template are alike


def _parse_selector(raw: bytes) -> NodeSelector | None:
    field = "status.allocation.nodeSelector"
    wire = decoding_field(_selector_decoder.decode, raw, field)
    if wire is None:
        return None
    with under(field):
        return node_selector_of(wire)


_selector_of: Final = memoised(_parse_selector)


def _claim_request(wire: _ClaimRequest, field: str) -> devices.ClaimRequest:
    refuse_more(wire.first_available, MAX_LIST, f"{field}.firstAvailable")
    name = wire.name or ""
    return devices.ClaimRequest(
        name,
        None if wire.exactly is None else _request(name, wire.exactly, f"{field}.exactly"),
        tuple(
            [
                _request(each.name or "", each, f"{field}.firstAvailable[{at}]")
                for at, each in enumerate(wire.first_available or ())
            ]
        ),
    )


def _request(name: str, wire: _Request, field: str) -> devices.DeviceRequest:
    refuse_longer(name, MAX_NAME_BYTES, f"{field}.name")
    refuse_more(wire.tolerations, MAX_LIST, f"{field}.tolerations")
    capacities = None if wire.capacity is None else wire.capacity.requests or {}
    refuse_more(capacities, MAX_VALUES, f"{field}.capacity.requests")
    return devices.DeviceRequest(
        name=name,
        device_class=wire.device_class_name or "",
        mode=devices.EXACT_COUNT if wire.allocation_mode is None else intern(wire.allocation_mode),
        count=wire.count or 0,
        selectors=selectors_of(wire.selectors, f"{field}.selectors"),
        admin_access=wire.admin_access,
        tolerations=tuple(map(toleration_of, wire.tolerations or ())),
        capacities=None if capacities is None else _amounts(capacities, f"{field}.capacity.requests"),
        derives=bool(wire.derived_attributes),
    )


def _amounts(quantities: Mapping[str, msgspec.Raw], field: str) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((intern(name), quantity_of(each, f"{field}.{name}")) for name, each in quantities.items()))


def _constraint(wire: _Constraint) -> devices.Constraint:
    field = "spec.devices.constraints"
    for name in (wire.match_attribute, wire.distinct_attribute):
        refuse_longer(name, MAX_LABEL_KEY_BYTES, field)
    refuse_more(wire.requests, MAX_LIST, f"{field}.requests")
    return devices.Constraint(frozenset(wire.requests or ()), wire.match_attribute, wire.distinct_attribute)


def _allocation(wire: _Allocation, statuses: Sequence[_DeviceStatus]) -> devices.Allocation:
    field, results = "status.allocation", (wire.devices or _Results()).results or []
    refuse_more(results, devices.MAX_RESULTS, f"{field}.devices.results")
    has_failed, waits = _binding(results, statuses)
    binds_until = _binds_until(wire.allocation_timestamp or "") if waits else None
    return devices.Allocation(
        devices=tuple([_allocated(each, f"{field}.devices.results[{at}]") for at, each in enumerate(results)]),
        nodes=_selector_of(wire.node_selector),
        unbindable=has_failed or (binds_until is not None and binds_until < time.time()),
        binds_until=binds_until,
        needs_optional_operations=any(each.skip_node_operations for each in results),
    )


def _allocated(wire: _Result, field: str) -> devices.AllocatedDevice:
    consumed = wire.consumed_capacity
    return devices.AllocatedDevice(
        request=wire.request or "",
        device=devices.DeviceID(intern(wire.driver or ""), wire.pool or "", wire.device or ""),
        admin_access=wire.admin_access or False,
        share=wire.share_id,
        consumed=None if consumed is None else _amounts(consumed, f"{field}.consumedCapacity"),
    )


def _binding(results: Sequence[_Result], statuses: Iterable[_DeviceStatus]) -> tuple[bool, bool]:
    """Return whether the binding of a device has failed, and whether one is not bound yet.

    Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go
    (isClaimReadyForBinding). The first of either counts.
    """
    conditions = {
        (each.driver, each.pool, each.device): {found.type: found.status for found in reversed(each.conditions or ())}
        for each in reversed(list(statuses))  # of several entries, the first one counts
    }
    for result in results:
        if not result.binding_conditions:
            continue
        found = conditions.get((result.driver, result.pool, result.device))
        if found is not None and any(found.get(each) == "True" for each in result.binding_failure_conditions or ()):
            return True, False
        if found is None or any(found.get(each) != "True" for each in result.binding_conditions):
            return False, True
    return False, False


def _binds_until(allocated_at: str) -> float | None:
    try:
        return datetime.fromisoformat(allocated_at).timestamp() + _BINDING_TIMEOUT
    except ValueError:
        return None
