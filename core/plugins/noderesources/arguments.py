"""The arguments of NodeResourcesFit and NodeResourcesBalancedAllocation: the resources to score, and the strategy.

Source: k8s.io/kubernetes pkg/scheduler/apis/config/v1/defaults.go and validation/validation_pluginargs.go.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from core.framework.arguments import Args, Int32, Strict
from core.framework.interface import Plugin


class ResourceSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A resource to score, and its weight."""

    name: str | None = None
    weight: int | None = None


class ScoredResource(NamedTuple):
    """A scored resource with its weight, 1..100."""

    name: str
    weight: int = 1


CPU_AND_MEMORY: Final = (ResourceSpec("cpu"), ResourceSpec("memory"))
"""The default resources to score (upstream defaultResourceSpec)."""


def with_default_weights(resources: Sequence[ResourceSpec]) -> tuple[ScoredResource, ...]:
    """Apply the defaults of upstream's SetDefaults_NodeResourcesFitArgs: for no resources, and for weights of 0."""
    return tuple(ScoredResource(each.name or "", each.weight or 1) for each in resources or CPU_AND_MEMORY)


MAX_UTILIZATION: Final = 100
MAX_CUSTOM_PRIORITY_SCORE: Final = 10
MAX_WEIGHT: Final = 100
RATIO: Final = "RequestedToCapacityRatio"
"""The only type of a strategy that reads its shape."""
_TYPES: Final = ("LeastAllocated", "MostAllocated", RATIO)
_PATH: Final = "scoringStrategy"


class UtilizationShapePoint(msgspec.Struct, frozen=True, gc=False):
    """A point of the function from utilization, 0..100, to score, 0..10."""

    utilization: int
    score: int


class ScoringStrategy(msgspec.Struct, frozen=True, gc=False):
    """The way to score nodes, and the scored resources. Only RequestedToCapacityRatio reads `shape`."""

    type: str = "LeastAllocated"
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY
    shape: tuple[UtilizationShapePoint, ...] = ()

    def errors(self) -> Iterator[str]:
        """Yield the errors of the strategy, by upstream's field names (ValidateNodeResourcesFitArgs)."""
        if self.type not in _TYPES:
            yield f"{_PATH}.type: must be one of {', '.join(_TYPES)}, got {self.type}"
        for index, resource in enumerate(with_default_weights(self.resources)):
            if not 0 < resource.weight <= MAX_WEIGHT:
                path = f"{_PATH}.resources[{index}].weight"
                yield (
                    f"{path}: resource weight of {resource.name} not in valid range (0, {MAX_WEIGHT}], "
                    f"got {resource.weight}"
                )
        if self.shape or self.type == RATIO:
            yield from _shape_errors(self.shape)


def _shape_errors(shape: Sequence[UtilizationShapePoint]) -> Iterator[str]:
    path = f"{_PATH}.shape"
    if not shape:
        yield f"{path}: at least one point must be specified"
    for index, (before, point) in enumerate(pairwise(shape), 1):
        if before.utilization >= point.utilization:
            yield f"{path}[{index}].utilization: values must be sorted in increasing order, got {point.utilization}"
            break
    for index, point in enumerate(shape):
        if not 0 <= point.utilization <= MAX_UTILIZATION:
            yield f"{path}[{index}].utilization: not in valid range [0, {MAX_UTILIZATION}], got {point.utilization}"
        if not 0 <= point.score <= MAX_CUSTOM_PRIORITY_SCORE:
            yield f"{path}[{index}].score: not in valid range [0, {MAX_CUSTOM_PRIORITY_SCORE}], got {point.score}"


def effect_of(argument: object) -> object:
    """Return what is equal for all values of an argument that have the same effect, as `Plugin.effect_of`."""
    match argument:
        case ScoringStrategy():
            shape = argument.shape if argument.type == RATIO else ()
            return argument.type, with_default_weights(argument.resources), shape
        case [ResourceSpec(), *_]:
            return with_default_weights([each for each in argument if isinstance(each, ResourceSpec)])
        case [str(), *_]:  # names of ignored resources
            return frozenset(argument)
    return Plugin.effect_of(argument)


# As people write them.


class WrittenPoint(Strict):
    """UtilizationShapePoint, as people write it."""

    utilization: Int32 | None = None
    score: Int32 | None = None


class WrittenRatio(Strict):
    """RequestedToCapacityRatioParam."""

    shape: list[WrittenPoint] | None = None


class WrittenStrategy(Strict):
    """ScoringStrategy, as people write it."""

    type: str | None = None
    resources: list[ResourceSpec] | None = None
    requested_to_capacity_ratio: WrittenRatio | None = None

    def parsed(self) -> ScoringStrategy:
        """Return the strategy. Raises ValueError."""
        ratio = self.requested_to_capacity_ratio
        shape = [] if ratio is None else ratio.shape or []
        if ratio is not None and not shape:
            raise ValueError(f"{_PATH}.shape: at least one point must be specified")
        return ScoringStrategy(
            type=self.type or "",  # upstream has no default type of a strategy
            resources=tuple(self.resources or ()),
            shape=tuple(UtilizationShapePoint(each.utilization or 0, each.score or 0) for each in shape),
        )


class NodeResourcesFitArgs(Args):
    """The arguments of NodeResourcesFit."""

    ignored_resources: list[str] | None = None
    ignored_resource_groups: list[str] | None = None
    scoring_strategy: WrittenStrategy | None = None
