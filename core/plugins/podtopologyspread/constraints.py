"""The constraints that apply to a pod: its own, or the default ones with a selector derived for the pod.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/podtopologyspread/common.go (filterTopologySpreadConstraints,
buildDefaultConstraints) and apis/config/validation/validation_pluginargs.go (ValidatePodTopologySpreadArgs).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec.structs import replace

from core.objects.labels import NOTHING, Operator, Selector, label_key_errors, requirement
from core.objects.pod import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, Pod, SpreadConstraint

DefaultingType: TypeAlias = Literal["System", "List"]

HOSTNAME: Final = "kubernetes.io/hostname"
SYSTEM_DEFAULTS: Final = (
    SpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY),
    SpreadConstraint(max_skew=5, topology_key="topology.kubernetes.io/zone", when_unsatisfiable=SCHEDULE_ANYWAY),
)
_ACTIONS: Final = (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)


class BrokenConstraintError(ValueError):
    """The selector of a pod's constraint could not be parsed. The message is upstream's."""


def own_constraints(pod: Pod, action: str) -> tuple[SpreadConstraint, ...]:
    """Return the pod's constraints of an action. matchLabelKeys are added to the selectors.

    Raises BrokenConstraintError for the first constraint with an invalid selector.
    """
    chosen = [constraint for constraint in pod.spread if constraint.when_unsatisfiable == action]
    for constraint in chosen:
        if constraint.selector_error:
            raise BrokenConstraintError(constraint.selector_error)
    return tuple(_with_match_labels(constraint, pod.labels) for constraint in chosen)


def default_constraints(
    constraints: Iterable[SpreadConstraint], action: str, selector: Selector
) -> tuple[SpreadConstraint, ...]:
    """Return the default constraints of an action with the selector, or none if the selector is empty."""
    if selector.everything:
        return ()
    return tuple(replace(each, selector=selector) for each in constraints if each.when_unsatisfiable == action)


def check_arguments(defaulting_type: str, constraints: Sequence[SpreadConstraint]) -> None:
    """Raise ValueError for arguments that upstream rejects, with upstream's field names."""
    if defaulting_type not in ("System", "List"):
        raise ValueError(f"defaultingType: must be System or List, got {defaulting_type}")
    if defaulting_type == "System" and constraints:
        raise ValueError("defaultingType: must be List where defaultConstraints are not empty, got System")
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        identity = (constraint.topology_key, constraint.when_unsatisfiable)
        for error in _errors(constraint):
            raise ValueError(f"defaultConstraints[{index}].{error}")
        if identity in seen:
            raise ValueError(f"defaultConstraints[{index}]: must not be there twice, got {', '.join(identity)}")
        seen.add(identity)


def _with_match_labels(constraint: SpreadConstraint, labels: Mapping[str, str]) -> SpreadConstraint:
    """Source: mergeLabelSetWithSelector. A null selector still selects no pods."""
    added = [requirement(key, Operator.IN, [labels[key]]) for key in constraint.match_label_keys if key in labels]
    if not added or constraint.selector.nothing:
        return constraint
    merged = Selector(tuple(sorted({*constraint.selector.requirements, *added})))
    return replace(constraint, selector=merged)


def _errors(constraint: SpreadConstraint) -> Iterator[str]:
    if constraint.max_skew <= 0:
        yield f"maxSkew: must be greater than 0, got {constraint.max_skew}"
    if not constraint.topology_key:
        yield "topologyKey: must not be empty"
    for error in label_key_errors(constraint.topology_key):
        yield f"topologyKey: {error}, got {constraint.topology_key}"
    if constraint.when_unsatisfiable not in _ACTIONS:
        yield f"whenUnsatisfiable: must be {' or '.join(_ACTIONS)}, got {constraint.when_unsatisfiable}"
    if constraint.selector != NOTHING or constraint.selector_error:
        yield "labelSelector: must be absent, as it is deduced for each pod"
