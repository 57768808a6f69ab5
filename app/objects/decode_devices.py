"""JSON of the kinds of resource.k8s.io/v1 to the core's values.

The limits are those of an API server (k8s.io/api resource/v1 types.go), but for the numbers of alternatives and of
selectors, which only bound the work.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from sys import intern
from typing import Annotated, Final

import msgspec

from app.objects.decode import (
    MAX_LABEL_KEY_BYTES,
    MAX_LABEL_VALUE_BYTES,
    MAX_NAME_BYTES,
    NULL,
    AnnotatedMetadata,
    AnnotatedObject,
    DecodeError,
    Metadata,
    Unread,
    Wire,
    WireObject,
    controller_of,
    decoding,
    decoding_field,
    memoised,
    names_in_namespace,
    names_of,
    nullable,
    quantity_of,
    refuse_longer,
    texts,
    under,
)
from app.objects.decode_placement import WireNodeSelector, WireToleration, node_selector_of, toleration_of
from core.objects.affinity import NodeSelector
from core.objects.devices import (
    EXACT_COUNT,
    MAX_RESULTS,
    NO_ATTRIBUTES,
    AllocatedDevice,
    Allocation,
    Attribute,
    Attributes,
    Capacity,
    ClaimRequest,
    Constraint,
    CounterUse,
    Device,
    DeviceID,
    DeviceRequest,
    DeviceTaintRule,
    NodeChoice,
    RequestPolicy,
    ResourceClaim,
    ResourceSlice,
    ValidRange,
)
from core.objects.kinds import DeviceClass
from core.objects.pod import Taint

_MAX_DEVICES: Final = 128
_MAX_VALUES: Final = 64  # attributes and capacities of a device, counters of a set
_MAX_EXPRESSION: Final = 10 * 1024
_MAX_LIST: Final = 32  # requests, subrequests, constraints, selectors, taints, tolerations
_MAX_CONSUMERS: Final = 256
_FOR_EXTENDED: Final = "resource.kubernetes.io/extended-resource-claim"
_BINDING_TIMEOUT: Final = 600.0
"""Seconds after which an allocation whose binding conditions are not true is given up: the default of the argument
bindingTimeout. It is compared when the claim is decoded."""

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class _CEL(Wire):
    expression: str | None = None


class _Selector(Wire):
    cel: _CEL | None = None


class _ClassSpec(Wire):
    extended_resource_name: str | None = None
    selectors: list[_Selector] | None = None


class _ClassMetadata(Metadata):
    creation_timestamp: str | None = None


class _DeviceClass(WireObject):
    metadata: _ClassMetadata | None = None
    spec: _ClassSpec | None = None


class _Attribute(Wire):
    number: Int64 | None = msgspec.field(default=None, name="int")
    flag: bool | None = msgspec.field(default=None, name="bool")
    string: str | None = None
    version: str | None = None
    ints: list[Int64] | None = None
    bools: list[bool] | None = None
    strings: list[str] | None = None
    versions: list[str] | None = None


class _Range(Wire):
    min: msgspec.Raw = NULL
    max: msgspec.Raw = NULL
    step: msgspec.Raw = NULL


class _Policy(Wire):
    default: msgspec.Raw = NULL
    valid_values: list[msgspec.Raw] | None = None
    valid_range: _Range | None = None


class _Amount(Wire):
    value: msgspec.Raw = NULL
    request_policy: _Policy | None = None


class _Counters(Wire):
    """A v1.CounterSet, or a v1.DeviceCounterConsumption."""

    name: str | None = None
    counter_set: str | None = None
    counters: dict[str, _Amount | None] | None = None
    compatibility_groups: list[str] | None = None


class _Taint(Wire):
    key: str | None = None
    value: str | None = None
    effect: str | None = None


class _OnNodes(Wire):
    node_name: str | None = None
    node_selector: WireNodeSelector | None = None
    all_nodes: bool | None = None


class _Device(_OnNodes):
    """A v1.Device. What most devices of a model have in common stays bytes."""

    name: str | None = None
    attributes: dict[str, _Attribute | None] | None = None
    capacity: Annotated[msgspec.Raw, Unread(dict[str, _Amount])] = NULL
    consumes_counters: list[_Counters] | None = None
    taints: list[_Taint] | None = None
    binds_to_node: bool | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    allow_multiple_allocations: bool | None = None


class _Pool(Wire):
    name: str | None = None
    generation: Int64 | None = None
    resource_slice_count: Int64 | None = None


class _SliceSpec(_OnNodes):
    driver: str | None = None
    pool: _Pool | None = None
    per_device_node_selection: bool | None = None
    devices: list[_Device] | None = None
    shared_counters: list[_Counters] | None = None


class _ResourceSlice(WireObject):
    spec: _SliceSpec | None = None


class _Capacities(Wire):
    requests: dict[str, msgspec.Raw] | None = None


class _Request(Wire):
    """A v1.ExactDeviceRequest, or a v1.DeviceSubRequest, which has a name."""

    name: str | None = None
    device_class_name: str | None = None
    selectors: list[_Selector] | None = None
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


class _Condition(Wire):
    type: str | None = None
    status: str | None = None


class _DeviceStatus(Wire):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    conditions: list[_Condition] | None = None


class _ClaimStatus(Wire):
    allocation: _Allocation | None = None
    reserved_for: list[_Consumer] | None = None
    devices: list[_DeviceStatus] | None = None


class _ResourceClaim(AnnotatedObject):
    spec: _ClaimSpec | None = None
    status: _ClaimStatus | None = None


class _RuleSelector(Wire):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class _RuleSpec(Wire):
    device_selector: _RuleSelector | None = None
    taint: _Taint | None = None


class _DeviceTaintRule(WireObject):
    spec: _RuleSpec | None = None


_class_decoder: Final = msgspec.json.Decoder(_DeviceClass)
_slice_decoder: Final = msgspec.json.Decoder(_ResourceSlice)
_claim_decoder: Final = msgspec.json.Decoder(_ResourceClaim)
_claimed_decoder: Final = nullable(_Claimed)
_selector_decoder: Final = nullable(WireNodeSelector)
_capacity_decoder: Final = nullable(dict[str, _Amount | None])
_rule_decoder: Final = msgspec.json.Decoder(_DeviceTaintRule)


def decode_device_class(raw: bytes | msgspec.Raw) -> DeviceClass:
    """Decode a resource.k8s.io/v1 DeviceClass. Raises DecodeError."""
    wire = decoding(_class_decoder.decode, raw)
    spec = wire.spec or _ClassSpec()
    return DeviceClass(
        **names_of("DeviceClass", wire),
        extended_resource=spec.extended_resource_name or "",
        selectors=_selectors(spec.selectors, "spec.selectors"),
        created=(wire.metadata or _ClassMetadata()).creation_timestamp or "",
    )


def decode_device_taint_rule(raw: bytes | msgspec.Raw) -> DeviceTaintRule:
    """Decode a resource.k8s.io/v1 DeviceTaintRule. Raises DecodeError."""
    wire = decoding(_rule_decoder.decode, raw)
    spec = wire.spec or _RuleSpec()
    selector = spec.device_selector or _RuleSelector()
    return DeviceTaintRule(
        **names_of("DeviceTaintRule", wire),
        taint=_taints([spec.taint or _Taint()], "spec.taint")[0],
        selects=spec.device_selector is not None,
        driver=selector.driver,
        pool=selector.pool,
        device=selector.device,
    )


def decode_resource_slice(raw: bytes | msgspec.Raw) -> ResourceSlice:
    """Decode a resource.k8s.io/v1 ResourceSlice. Raises DecodeError."""
    wire = decoding(_slice_decoder.decode, raw)
    spec = wire.spec or _SliceSpec()
    pool = spec.pool or _Pool()
    _refuse_more(spec.devices, _MAX_DEVICES, "spec.devices")
    _refuse_more(spec.shared_counters, _MAX_DEVICES, "spec.sharedCounters")
    for name, field in ((spec.driver, "spec.driver"), (pool.name, "spec.pool.name")):
        refuse_longer(name, MAX_NAME_BYTES, field)
    consumed = [counters for each in spec.devices or () for counters in each.consumes_counters or ()]
    return ResourceSlice(
        **names_of("ResourceSlice", wire),
        driver=intern(spec.driver or ""),
        pool=pool.name or "",
        generation=pool.generation or 0,
        slice_count=pool.resource_slice_count or 0,
        nodes=_nodes(spec, "spec"),
        per_device=spec.per_device_node_selection,
        devices=tuple([_device(each, f"spec.devices[{at}]") for at, each in enumerate(spec.devices or ())]),
        shared_counters=tuple(
            [
                _counters(each.name, each, f"spec.sharedCounters[{at}]")
                for at, each in enumerate(spec.shared_counters or ())
            ]
        ),
        has_groups=any(each.compatibility_groups for each in consumed),
    )


def _device(wire: _Device, field: str) -> Device:
    refuse_longer(wire.name, MAX_NAME_BYTES, f"{field}.name")
    _refuse_more(wire.attributes, _MAX_VALUES, f"{field}.attributes")
    with under(f"{field}.capacity"):
        capacity = _capacities_of(wire.capacity)
    _refuse_more(wire.consumes_counters, _MAX_LIST, f"{field}.consumesCounters")
    conditions = wire.binding_conditions
    return Device(
        name=intern(wire.name or ""),
        attributes=_attributes(wire.attributes, f"{field}.attributes"),
        capacity=capacity,
        consumes=tuple(
            [
                _counters(each.counter_set, each, f"{field}.consumesCounters[{at}]")
                for at, each in enumerate(wire.consumes_counters or ())
            ]
        ),
        nodes=_nodes(wire, field),
        taints=_taints(wire.taints or (), f"{field}.taints"),
        binds_to_node=wire.binds_to_node or False,
        binding_conditions=None if conditions is None else tuple(conditions),
        binding_failure_conditions=tuple(wire.binding_failure_conditions or ()),
        shareable=wire.allow_multiple_allocations or False,
    )


def _attributes(wires: Mapping[str, _Attribute | None] | None, field: str) -> Attributes:
    if not wires:
        return NO_ATTRIBUTES
    found = {
        _named(name, field): _shared(_attribute(each, f"{field}.{name}"))
        for name, each in wires.items()
        if each is not None
    }
    return Attributes(found)


@lru_cache(maxsize=8192)
def _shared(attribute: Attribute) -> Attribute:
    """Return the attribute. Devices of one model share it."""
    return attribute


def _attribute(wire: _Attribute, field: str) -> Attribute:
    """Source: k8s.io/dynamic-resource-allocation cel/compile.go (getAttributeValue), for the order."""
    if wire.number is not None:
        return Attribute("int", wire.number)
    if wire.flag is not None:
        return Attribute("bool", wire.flag)
    for kind, text in (("string", wire.string), ("version", wire.version)):
        if text is not None:
            refuse_longer(text, MAX_NAME_BYTES, f"{field}.{kind}")
            return Attribute(kind, intern(text))
    lists = (("ints", wire.ints), ("bools", wire.bools), ("strings", wire.strings), ("versions", wire.versions))
    for kind, values in lists:
        if values is not None:
            _refuse_more(values, _MAX_VALUES, f"{field}.{kind}")
            return Attribute(kind, tuple(values))
    return Attribute("", "")


def _parse_capacities(raw: bytes) -> Mapping[str, Capacity]:
    wires = decoding(_capacity_decoder.decode, raw) or {}
    _refuse_more(wires, _MAX_VALUES, "")
    return {_named(name, ""): _capacity(each, name) for name, each in wires.items() if each is not None}


_capacities_of: Final = memoised(_parse_capacities)


def _capacity(wire: _Amount, field: str) -> Capacity:
    policy = wire.request_policy
    value = quantity_of(wire.value, f"{field}.value")
    return Capacity(value, None if policy is None else _policy(policy, f"{field}.requestPolicy"))


def _policy(wire: _Policy, field: str) -> RequestPolicy:
    _refuse_more(wire.valid_values, _MAX_LIST, f"{field}.validValues")
    found = wire.valid_range
    return RequestPolicy(
        default=_optional(wire.default, f"{field}.default"),
        valid_values=tuple(
            [quantity_of(each, f"{field}.validValues[{at}]") for at, each in enumerate(wire.valid_values or ())]
        ),
        valid_range=None
        if found is None
        else ValidRange(
            min=_optional(found.min, f"{field}.validRange.min"),
            max=_optional(found.max, f"{field}.validRange.max"),
            step=_optional(found.step, f"{field}.validRange.step"),
        ),
    )


def _optional(raw: msgspec.Raw, field: str) -> int | None:
    return None if bytes(raw) == b"null" else quantity_of(raw, field)


def _counters(name: str | None, wire: _Counters, field: str) -> CounterUse:
    refuse_longer(name, MAX_NAME_BYTES, f"{field}.name")
    _refuse_more(wire.counters, _MAX_VALUES, f"{field}.counters")
    return CounterUse(
        name or "",
        {
            _named(counter, f"{field}.counters"): quantity_of(each.value, f"{field}.counters.{counter}.value")
            for counter, each in (wire.counters or {}).items()
            if each is not None
        },
    )


def _nodes(wire: _OnNodes, field: str) -> NodeChoice:
    refuse_longer(wire.node_name, MAX_NAME_BYTES, f"{field}.nodeName")
    if wire.node_selector is None:
        return NodeChoice(wire.node_name or "", wire.all_nodes or False)
    with under(f"{field}.nodeSelector"):
        return NodeChoice(wire.node_name or "", wire.all_nodes or False, node_selector_of(wire.node_selector))


def _taints(wires: Sequence[_Taint], field: str) -> tuple[Taint, ...]:
    _refuse_more(wires, _MAX_LIST, field)
    for each in wires:
        refuse_longer(each.key, MAX_LABEL_KEY_BYTES, f"{field}.key")
        refuse_longer(each.value, MAX_LABEL_VALUE_BYTES, f"{field}.value")
    return tuple([Taint(each.key or "", each.value or "", each.effect or "") for each in wires])


def _named(name: str, field: str) -> str:
    refuse_longer(name, MAX_LABEL_KEY_BYTES, field)
    return intern(name)


def _refuse_more(found: Sequence[object] | Mapping[str, object] | None, most: int, field: str) -> None:
    if found is not None and len(found) > most:
        raise DecodeError(field, f"more than {most}")


def _selectors(wires: list[_Selector] | None, field: str) -> tuple[str | None, ...]:
    _refuse_more(wires, _MAX_LIST, field)
    for each in wires or ():
        refuse_longer(None if each.cel is None else each.cel.expression, _MAX_EXPRESSION, field)
    return tuple([None if each.cel is None else each.cel.expression or "" for each in wires or ()])


def decode_resource_claim(raw: bytes | msgspec.Raw) -> ResourceClaim:
    """Decode a resource.k8s.io/v1 ResourceClaim. Raises DecodeError."""
    wire = decoding(_claim_decoder.decode, raw)
    metadata = wire.metadata or AnnotatedMetadata()
    requests, constraints = _claimed_of((wire.spec or _ClaimSpec()).devices)
    status = wire.status or _ClaimStatus()
    _refuse_more(status.reserved_for, _MAX_CONSUMERS, "status.reservedFor")
    return ResourceClaim(
        **names_in_namespace("ResourceClaim", wire),
        requests=requests,
        constraints=constraints,
        allocation=None if status.allocation is None else _allocation(status.allocation, status.devices or ()),
        reserved_for=tuple([each.uid or "" for each in status.reserved_for or ()]),
        deleting=metadata.deletion_timestamp is not None,
        controller=controller_of(metadata.owner_references),
        for_extended=texts(metadata.annotations).get(_FOR_EXTENDED) == "true",
    )


def _parse_claimed(raw: bytes) -> tuple[tuple[ClaimRequest, ...], tuple[Constraint, ...]]:
    field = "spec.devices"
    wire = decoding_field(_claimed_decoder.decode, raw, field) or _Claimed()
    _refuse_more(wire.requests, _MAX_LIST, f"{field}.requests")
    _refuse_more(wire.constraints, _MAX_LIST, f"{field}.constraints")
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


def _claim_request(wire: _ClaimRequest, field: str) -> ClaimRequest:
    _refuse_more(wire.first_available, _MAX_LIST, f"{field}.firstAvailable")
    name = wire.name or ""
    return ClaimRequest(
        name,
        None if wire.exactly is None else _request(name, wire.exactly, f"{field}.exactly"),
        tuple(
            [
                _request(each.name or "", each, f"{field}.firstAvailable[{at}]")
                for at, each in enumerate(wire.first_available or ())
            ]
        ),
    )


def _request(name: str, wire: _Request, field: str) -> DeviceRequest:
    refuse_longer(name, MAX_NAME_BYTES, f"{field}.name")
    _refuse_more(wire.tolerations, _MAX_LIST, f"{field}.tolerations")
    capacities = None if wire.capacity is None else wire.capacity.requests or {}
    _refuse_more(capacities, _MAX_VALUES, f"{field}.capacity.requests")
    return DeviceRequest(
        name=name,
        device_class=wire.device_class_name or "",
        mode=EXACT_COUNT if wire.allocation_mode is None else intern(wire.allocation_mode),
        count=wire.count or 0,
        selectors=_selectors(wire.selectors, f"{field}.selectors"),
        admin_access=wire.admin_access,
        tolerations=tuple(map(toleration_of, wire.tolerations or ())),
        capacities=None if capacities is None else _amounts(capacities, f"{field}.capacity.requests"),
        derives=bool(wire.derived_attributes),
    )


def _amounts(quantities: Mapping[str, msgspec.Raw], field: str) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((intern(name), quantity_of(each, f"{field}.{name}")) for name, each in quantities.items()))


def _constraint(wire: _Constraint) -> Constraint:
    field = "spec.devices.constraints"
    for name in (wire.match_attribute, wire.distinct_attribute):
        refuse_longer(name, MAX_LABEL_KEY_BYTES, field)
    _refuse_more(wire.requests, _MAX_LIST, f"{field}.requests")
    return Constraint(frozenset(wire.requests or ()), wire.match_attribute, wire.distinct_attribute)


def _allocation(wire: _Allocation, statuses: Sequence[_DeviceStatus]) -> Allocation:
    field, results = "status.allocation", (wire.devices or _Results()).results or []
    _refuse_more(results, MAX_RESULTS, f"{field}.devices.results")
    return Allocation(
        devices=tuple([_allocated(each, f"{field}.devices.results[{at}]") for at, each in enumerate(results)]),
        nodes=_selector_of(wire.node_selector),
        unbindable=_unbindable(results, wire.allocation_timestamp or "", statuses),
        needs_optional_operations=any(each.skip_node_operations for each in results),
    )


def _allocated(wire: _Result, field: str) -> AllocatedDevice:
    consumed = wire.consumed_capacity
    return AllocatedDevice(
        request=wire.request or "",
        device=DeviceID(intern(wire.driver or ""), wire.pool or "", wire.device or ""),
        admin_access=wire.admin_access or False,
        share=wire.share_id,
        consumed=None if consumed is None else _amounts(consumed, f"{field}.consumedCapacity"),
    )


def _unbindable(results: Sequence[_Result], allocated_at: str, statuses: Iterable[_DeviceStatus]) -> bool:
    """Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, Filter."""
    conditions = {
        (each.driver, each.pool, each.device): {found.type: found.status for found in reversed(each.conditions or ())}
        for each in reversed(list(statuses))  # of several entries, the first one counts
    }
    for result in results:
        if not result.binding_conditions:
            continue
        found = conditions.get((result.driver, result.pool, result.device))
        if found is not None and any(found.get(each) == "True" for each in result.binding_failure_conditions or ()):
            return True
        if found is None or any(found.get(each) != "True" for each in result.binding_conditions):
            return _is_overdue(allocated_at)
    return False


def _is_overdue(allocated_at: str) -> bool:
    try:
        allocated = datetime.fromisoformat(allocated_at).timestamp()
    except ValueError:
        return False
    return allocated + _BINDING_TIMEOUT < time.time()
