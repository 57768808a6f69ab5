"""JSON of the kinds of resource.k8s.io/v1 to the core's values.

The limits are those of an API server (k8s.io/api resource/v1 types.go), but for the numbers of alternatives and of
selectors, which only bound the work.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from sys import intern
from typing import Annotated, Final, NamedTuple

import msgspec

from app.objects.decode import (
    MAX_LABEL_KEY_BYTES,
    MAX_NAME_BYTES,
    NULL,
    DecodeError,
    Metadata,
    Unread,
    Wire,
    WireObject,
    decoding,
    memoised,
    names_of,
    nullable,
    quantity_of,
    refuse_longer,
    under,
)
from app.objects.decode_placement import WireNodeSelector, WireTaint, node_selector_of, taint_of
from core.objects import devices
from core.objects.kinds import DeviceClass
from core.objects.pod import Taint

_MAX_DEVICES: Final = 128
MAX_VALUES: Final = 64  # attributes and capacities of a device, counters of a set
_MAX_EXPRESSION: Final = 10 * 1024
MAX_LIST: Final = 32  # requests, subrequests, constraints, selectors, taints, tolerations

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class _CEL(Wire):
    expression: str | None = None


class WireSelector(Wire):
    """A v1.DeviceSelector."""

    cel: _CEL | None = None


class _ClassSpec(Wire):
    extended_resource_name: str | None = None
    selectors: list[WireSelector] | None = None


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


class _OnNodes(Wire):
    node_name: str | None = None
    node_selector: WireNodeSelector | None = None
    all_nodes: bool | None = None


class _Device(_OnNodes):
    """A v1.Device. What most devices of a model have in common stays bytes."""

    name: str | None = None
    attributes: dict[str, _Attribute | None] | None = None
    capacity: Annotated[msgspec.Raw, Unread(dict[str, _Amount])] = NULL
    consumes_counters: Annotated[msgspec.Raw, Unread(list[_Counters])] = NULL
    taints: list[WireTaint] | None = None
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
    shared_counters: Annotated[msgspec.Raw, Unread(list[_Counters])] = NULL


class _ResourceSlice(WireObject):
    spec: _SliceSpec | None = None


class _RuleSelector(Wire):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class _RuleSpec(Wire):
    device_selector: _RuleSelector | None = None
    taint: WireTaint | None = None


class _DeviceTaintRule(WireObject):
    spec: _RuleSpec | None = None


_class_decoder: Final = msgspec.json.Decoder(_DeviceClass)
_slice_decoder: Final = msgspec.json.Decoder(_ResourceSlice)
_capacity_decoder: Final = nullable(dict[str, _Amount | None])
_counters_decoder: Final = nullable(list[_Counters])
_rule_decoder: Final = msgspec.json.Decoder(_DeviceTaintRule)


def decode_device_class(raw: bytes | msgspec.Raw) -> DeviceClass:
    """Decode a resource.k8s.io/v1 DeviceClass. Raises DecodeError."""
    wire = decoding(_class_decoder.decode, raw)
    spec = wire.spec or _ClassSpec()
    return DeviceClass(
        **names_of("DeviceClass", wire),
        extended_resource=spec.extended_resource_name or "",
        selectors=selectors_of(spec.selectors, "spec.selectors"),
        created=(wire.metadata or _ClassMetadata()).creation_timestamp or "",
    )


def decode_device_taint_rule(raw: bytes | msgspec.Raw) -> devices.DeviceTaintRule:
    """Decode a resource.k8s.io/v1 DeviceTaintRule. Raises DecodeError."""
    wire = decoding(_rule_decoder.decode, raw)
    spec = wire.spec or _RuleSpec()
    selector = spec.device_selector or _RuleSelector()
    return devices.DeviceTaintRule(
        **names_of("DeviceTaintRule", wire),
        taint=taint_of(spec.taint or WireTaint(), "spec.taint"),
        selects=spec.device_selector is not None,
        driver=selector.driver,
        pool=selector.pool,
        device=selector.device,
    )


def decode_resource_slice(raw: bytes | msgspec.Raw) -> devices.ResourceSlice:
    """Decode a resource.k8s.io/v1 ResourceSlice. Raises DecodeError."""
    wire = decoding(_slice_decoder.decode, raw)
    spec = wire.spec or _SliceSpec()
    pool = spec.pool or _Pool()
    refuse_more(spec.devices, _MAX_DEVICES, "spec.devices")
    for name, field in ((spec.driver, "spec.driver"), (pool.name, "spec.pool.name")):
        refuse_longer(name, MAX_NAME_BYTES, field)
    with under("spec.sharedCounters"):
        shared_counters = _counters_of(spec.shared_counters).uses
        refuse_more(shared_counters, _MAX_DEVICES, "")
    found = tuple([_device(each, f"spec.devices[{at}]") for at, each in enumerate(spec.devices or ())])
    return devices.ResourceSlice(
        **names_of("ResourceSlice", wire),
        driver=intern(spec.driver or ""),
        pool=pool.name or "",
        generation=pool.generation or 0,
        slice_count=pool.resource_slice_count or 0,
        nodes=_nodes(spec, "spec"),
        per_device=spec.per_device_node_selection,
        devices=found,
        shared_counters=shared_counters,
        has_groups=any(_counters_of(each.consumes_counters).has_groups for each in spec.devices or ()),
    )


def _device(wire: _Device, field: str) -> devices.Device:
    refuse_longer(wire.name, MAX_NAME_BYTES, f"{field}.name")
    refuse_more(wire.attributes, MAX_VALUES, f"{field}.attributes")
    with under(f"{field}.capacity"):
        capacity = _capacities_of(wire.capacity)
    with under(f"{field}.consumesCounters"):
        consumes = _counters_of(wire.consumes_counters).uses
        refuse_more(consumes, MAX_LIST, "")
    conditions = wire.binding_conditions
    return devices.Device(
        name=intern(wire.name or ""),
        attributes=_attributes(wire.attributes, f"{field}.attributes"),
        capacity=capacity,
        consumes=consumes,
        nodes=_nodes(wire, field),
        taints=_taints(wire.taints or (), f"{field}.taints"),
        binds_to_node=wire.binds_to_node or False,
        binding_conditions=None if conditions is None else tuple(conditions),
        binding_failure_conditions=tuple(wire.binding_failure_conditions or ()),
        shareable=wire.allow_multiple_allocations or False,
    )


def _attributes(wires: Mapping[str, _Attribute | None] | None, field: str) -> devices.Attributes:
    if not wires:
        return devices.NO_ATTRIBUTES
    found = {
        _named(name, field): _shared(_attribute(each, f"{field}.{name}"))
        for name, each in wires.items()
        if each is not None
    }
    return devices.Attributes(found)


@lru_cache(maxsize=8192)
def _shared(attribute: devices.Attribute) -> devices.Attribute:
    """Return the attribute. Devices of one model share it."""
    return attribute


def _attribute(wire: _Attribute, field: str) -> devices.Attribute:
    """Source: k8s.io/dynamic-resource-allocation cel/compile.go (getAttributeValue), for the order."""
    if wire.number is not None:
        return devices.Attribute("int", wire.number)
    if wire.flag is not None:
        return devices.Attribute("bool", wire.flag)
    for kind, text in (("string", wire.string), ("version", wire.version)):
        if text is not None:
            refuse_longer(text, MAX_NAME_BYTES, f"{field}.{kind}")
            return devices.Attribute(kind, intern(text))
    lists = (("ints", wire.ints), ("bools", wire.bools), ("strings", wire.strings), ("versions", wire.versions))
    for kind, values in lists:
        if values is not None:
            refuse_more(values, MAX_VALUES, f"{field}.{kind}")
            return devices.Attribute(kind, tuple(values))
    return devices.Attribute("", "")


def _parse_capacities(raw: bytes) -> Mapping[str, devices.Capacity]:
    wires = decoding(_capacity_decoder.decode, raw) or {}
    refuse_more(wires, MAX_VALUES, "")
    return {_named(name, ""): _capacity(each, name) for name, each in wires.items() if each is not None}


_capacities_of: Final = memoised(_parse_capacities)


def _capacity(wire: _Amount, field: str) -> devices.Capacity:
    policy = wire.request_policy
    value = quantity_of(wire.value, f"{field}.value")
    return devices.Capacity(value, None if policy is None else _policy(policy, f"{field}.requestPolicy"))


def _policy(wire: _Policy, field: str) -> devices.RequestPolicy:
    refuse_more(wire.valid_values, MAX_LIST, f"{field}.validValues")
    found = wire.valid_range
    return devices.RequestPolicy(
        default=_optional(wire.default, f"{field}.default"),
        valid_values=tuple(
            [quantity_of(each, f"{field}.validValues[{at}]") for at, each in enumerate(wire.valid_values or ())]
        ),
        valid_range=None
        if found is None
        else devices.ValidRange(
            min=_optional(found.min, f"{field}.validRange.min"),
            max=_optional(found.max, f"{field}.validRange.max"),
            step=_optional(found.step, f"{field}.validRange.step"),
        ),
    )


def _optional(raw: msgspec.Raw, field: str) -> int | None:
    return None if bytes(raw) == b"null" else quantity_of(raw, field)


class _Uses(NamedTuple):
    uses: tuple[devices.CounterUse, ...]
    has_groups: bool


def _parse_counters(raw: bytes) -> _Uses:
    """Decode sharedCounters or consumesCounters."""
    wires = decoding(_counters_decoder.decode, raw) or []
    refuse_more(wires, _MAX_DEVICES, "")
    uses = tuple([_counters(each, f"[{at}]") for at, each in enumerate(wires)])
    return _Uses(uses, any(each.compatibility_groups for each in wires))


_counters_of: Final = memoised(_parse_counters)


def _counters(wire: _Counters, field: str) -> devices.CounterUse:
    name = wire.name if wire.counter_set is None else wire.counter_set
    refuse_longer(name, MAX_NAME_BYTES, f"{field}.name")
    refuse_more(wire.counters, MAX_VALUES, f"{field}.counters")
    return devices.CounterUse(
        name or "",
        tuple(
            [
                (_named(counter, f"{field}.counters"), quantity_of(each.value, f"{field}.counters.{counter}.value"))
                for counter, each in (wire.counters or {}).items()
                if each is not None
            ]
        ),
    )


def _nodes(wire: _OnNodes, field: str) -> devices.NodeChoice:
    refuse_longer(wire.node_name, MAX_NAME_BYTES, f"{field}.nodeName")
    if wire.node_selector is None:
        return devices.NodeChoice(wire.node_name or "", wire.all_nodes or False)
    with under(f"{field}.nodeSelector"):
        return devices.NodeChoice(wire.node_name or "", wire.all_nodes or False, node_selector_of(wire.node_selector))


def _taints(wires: Sequence[WireTaint], field: str) -> tuple[Taint, ...]:
    refuse_more(wires, MAX_LIST, field)
    return tuple([taint_of(each, f"{field}[{at}]") for at, each in enumerate(wires)])


def _named(name: str, field: str) -> str:
    refuse_longer(name, MAX_LABEL_KEY_BYTES, field)
    return intern(name)


def refuse_more(found: Sequence[object] | Mapping[str, object] | None, most: int, field: str) -> None:
    """Raise DecodeError for a list or map of more than `most` entries."""
    if found is not None and len(found) > most:
        raise DecodeError(field, f"more than {most}")


def selectors_of(wires: list[WireSelector] | None, field: str) -> tuple[str | None, ...]:
    """Return the expressions, None for a selector that is not of CEL. Raises DecodeError."""
    refuse_more(wires, MAX_LIST, field)
    for each in wires or ():
        refuse_longer(None if each.cel is None else each.cel.expression, _MAX_EXPRESSION, field)
    return tuple([None if each.cel is None else each.cel.expression or "" for each in wires or ()])
