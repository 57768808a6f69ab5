"""Arguments of plugins: decodes upstream's *Args by plugin to the arguments of the core's constructors.

Source: k8s.io/kube-scheduler config/v1/types_pluginargs.go, with the defaults of k8s.io/kubernetes
pkg/scheduler/apis/config/v1/defaults.go. ServiceAffinityArgs is from v1.18. Upstream decodes arguments strictly. So an
unknown field is an error here, at any depth. JSON null means an absent field.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import or_
from types import UnionType
from typing import Any, Final, TypeAlias, TypeVar, Union, get_args, get_origin

import msgspec

from app.objects.decode import NULL, DecodeError, Int32, decoding, decoding_field, quantity_of
from app.objects.decode_placement import WireNodeAffinity, WireSpreadConstraint, node_affinity_of, topology_spread_of
from app.settings.settings import Settings, SettingsError
from core.objects.quantity import millis
from core.plugins import PLUGINS
from core.plugins.noderesources.strategies import ResourceSpec, ScoringStrategy, UtilizationShapePoint
from core.profile import COMPOSITES, Arguments, todays_name

S = TypeVar("S", bound=msgspec.Struct)


def strict(wire: type[S]) -> type[S]:
    """Return a subclass of a wire struct that forbids unknown fields, at every depth."""
    fields = []
    for each in msgspec.structs.fields(wire):
        wanted = with_structs(each.type, strict)
        if wanted is not each.type:
            as_before: Any = {
                "default": each.default,
                "default_factory": each.default_factory,
                "name": each.encode_name,
            }
            fields.append((each.name, wanted, msgspec.field(**as_before)))
    derived: Any = msgspec.defstruct(wire.__name__, fields, bases=(wire,), forbid_unknown_fields=True)
    return derived  # type: ignore[no-any-return]  # of dynamic bases


def with_structs(wanted: Any, replace: Callable[[Any], Any]) -> Any:  # noqa: ANN401  # any annotation
    """Return a type with each struct in it replaced. A type without structs is returned unchanged."""
    if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        return replace(wanted)
    parts = get_args(wanted)
    derived = tuple(with_structs(part, replace) for part in parts)
    if derived == parts:
        return wanted
    origin = get_origin(wanted)
    return reduce(or_, derived) if origin in {Union, UnionType} else origin[derived]


Keywords: TypeAlias = dict[str, Any]

_GROUP: Final = "kubescheduler.config.k8s.io"


class _Strict(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """Base of all structs in this module."""


class _Args(_Strict):
    """The fields of every *Args. A plugin without arguments has no others."""

    api_version: str | None = None
    kind: str | None = None

    def keywords(self) -> Keywords:
        """Return the arguments of the constructor. Raises DecodeError."""
        given = {name: getattr(self, name) for name in self.__struct_fields__ if name not in {"api_version", "kind"}}
        return {name: value for name, value in given.items() if value is not None}


class _InterPodAffinityArgs(_Args):
    hard_pod_affinity_weight: Int32 | None = None
    ignore_preferred_terms_of_existing_pods: bool | None = None


class _ResourceSpec(_Strict):
    name: str | None = None
    weight: int | None = None


class _ShapePoint(_Strict):
    utilization: Int32 | None = None
    score: Int32 | None = None


class _RequestedToCapacityRatio(_Strict):
    shape: list[_ShapePoint] | None = None


class _ScoringStrategy(_Strict):
    type: str | None = None
    resources: list[_ResourceSpec] | None = None
    requested_to_capacity_ratio: _RequestedToCapacityRatio | None = None

    def parsed(self) -> ScoringStrategy:
        ratio = self.requested_to_capacity_ratio
        shape = [] if ratio is None else ratio.shape or []
        if ratio is not None and not shape:
            raise DecodeError("scoringStrategy.shape", "at least one point must be specified")
        return ScoringStrategy(
            type=self.type or "",  # upstream has no default type of a strategy
            resources=_resources(self.resources or ()),
            shape=tuple(UtilizationShapePoint(each.utilization or 0, each.score or 0) for each in shape),
        )


class _NodeResourcesFitArgs(_Args):
    ignored_resources: list[str] | None = None
    ignored_resource_groups: list[str] | None = None
    scoring_strategy: _ScoringStrategy | None = None

    def keywords(self) -> Keywords:
        strategy = {} if self.scoring_strategy is None else {"scoring_strategy": self.scoring_strategy.parsed()}
        return {
            "ignored_resources": self.ignored_resources or (),
            "ignored_resource_groups": self.ignored_resource_groups or (),
            **strategy,
        }


class _NodeResourcesBalancedAllocationArgs(_Args):
    resources: list[_ResourceSpec] | None = None

    def keywords(self) -> Keywords:
        return {"resources": _resources(self.resources or ())}


class _NodeAffinityArgs(_Args):
    added_affinity: msgspec.Raw = NULL

    def keywords(self) -> Keywords:
        decoding_field(_node_affinity_decoder.decode, self.added_affinity, "addedAffinity")
        affinity = b'{"nodeAffinity":' + bytes(self.added_affinity) + b"}"
        return {"added_affinity": node_affinity_of(affinity, NULL)}


class _PodTopologySpreadArgs(_Args):
    default_constraints: msgspec.Raw = NULL
    defaulting_type: str | None = None

    def keywords(self) -> Keywords:
        decoding_field(_constraints_decoder.decode, self.default_constraints, "defaultConstraints")
        return {
            "defaulting_type": self.defaulting_type or "System",
            "default_constraints": topology_spread_of(self.default_constraints),
        }


class _ServiceAffinityArgs(_Args):
    affinity_labels: list[str] | None = None


class _CpuRequest(_Strict):
    cpu: msgspec.Raw = NULL


class _TargetLoadPackingArgs(_Args):
    target_utilization: int | None = None
    default_requests: _CpuRequest | None = None
    default_requests_multiplier: str | None = None

    def keywords(self) -> Keywords:
        given: Keywords = {}
        if self.target_utilization:  # as upstream, use the default for 0, too
            given["target_utilization"] = self.target_utilization
        if self.default_requests is not None and self.default_requests.cpu != NULL:
            given["default_request"] = millis(quantity_of(self.default_requests.cpu, "defaultRequests.cpu"))
        if self.default_requests_multiplier is not None:
            given["default_requests_multiplier"] = _number(
                self.default_requests_multiplier, "defaultRequestsMultiplier"
            )
        return given


class _LoadVariationRiskBalancingArgs(_Args):
    safe_variance_margin: float | None = None
    safe_variance_sensitivity: float | None = None


class _LoadAwareArgs(_Args):
    usage_thresholds: dict[str, int] | None = None
    resource_weights: dict[str, int] | None = None
    dominant_resource_weight: int | None = None
    estimated_scaling_factors: dict[str, int] | None = None
    enable_schedule_when_node_metrics_expired: bool | None = None

    def keywords(self) -> Keywords:
        given = super().keywords()
        for name in ("usage_thresholds", "resource_weights"):
            if not given.get(name):  # as upstream: `{}` means the defaults
                given.pop(name, None)
        if self.dominant_resource_weight:
            given.setdefault("resource_weights", {})
        return given


_ARGS: Final[Mapping[str, type[_Args]]] = {
    "InterPodAffinity": _InterPodAffinityArgs,
    "NodeResourcesFit": _NodeResourcesFitArgs,
    "NodeResourcesBalancedAllocation": _NodeResourcesBalancedAllocationArgs,
    "NodeAffinity": _NodeAffinityArgs,
    "PodTopologySpread": _PodTopologySpreadArgs,
    "ServiceAffinity": _ServiceAffinityArgs,
    "TargetLoadPacking": _TargetLoadPackingArgs,
    "LoadVariationRiskBalancing": _LoadVariationRiskBalancingArgs,
    "LoadAware": _LoadAwareArgs,
}
_decoder: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_node_affinity_decoder: Final = msgspec.json.Decoder(strict(WireNodeAffinity) | None)
_constraints_decoder: Final = msgspec.json.Decoder(list[strict(WireSpreadConstraint)] | None)  # type: ignore[misc]  # derived


def plugin_arguments(settings: Settings) -> Arguments:
    """Return plugin -> arguments for the plugins with arguments in the settings. Raises SettingsError."""
    try:
        return decode_plugin_args(settings.plugin_args) if settings.plugin_args else {}
    except DecodeError as error:
        raise SettingsError(f"KINDRED_PLUGIN_ARGS: {error}") from None


def decode_plugin_args(text: str) -> Arguments:
    """Read a JSON object, plugin -> *Args, and check the arguments, also of disabled plugins. Raises DecodeError."""
    arguments: dict[str, Keywords] = {}
    for name, raw in decoding(_decoder.decode, text.encode(errors="surrogateescape")).items():
        plugin = todays_name(name)
        if plugin in COMPOSITES:
            raise DecodeError(plugin, f"has no arguments of its own, but {', '.join(COMPOSITES[plugin])} may")
        if plugin not in PLUGINS:
            raise DecodeError(name, f"unknown plugin; there are {', '.join(sorted(PLUGINS))}")
        if plugin in arguments:
            raise DecodeError(name, f"the arguments of {plugin} are already given under its other name")
        try:
            arguments[plugin] = _keywords(plugin, raw)
        except DecodeError as error:
            raise error.under(plugin) from None
    return arguments


def _keywords(plugin: str, raw: msgspec.Raw) -> Keywords:
    wanted = _ARGS.get(plugin, _Args)
    args = decoding(msgspec.json.Decoder(wanted).decode, raw)
    if args.kind not in {None, f"{plugin}Args"}:
        raise DecodeError("kind", f"expected {plugin}Args, got {args.kind}")
    if args.api_version is not None and not args.api_version.startswith(f"{_GROUP}/"):
        raise DecodeError("apiVersion", f"expected {_GROUP}/v1, got {args.api_version}")
    keywords = args.keywords()
    try:
        PLUGINS[plugin](**keywords)
    except ValueError as error:
        field, colon, message = str(error).partition(": ")
        # Upstream writes several errors as a list. Each has its own path.
        raise (
            DecodeError("", str(error)) if field.startswith("[") or not colon else DecodeError(field, message)
        ) from None
    return keywords


def _number(text: str, field: str) -> float:
    """Read a number that the API represents as a string."""
    try:
        return float(text)
    except ValueError:
        raise DecodeError(field, f"expected a number, got {text[:40]!r}") from None


def _resources(specs: Sequence[_ResourceSpec]) -> tuple[ResourceSpec, ...]:
    return tuple(ResourceSpec(each.name or "", each.weight or 0) for each in specs)
