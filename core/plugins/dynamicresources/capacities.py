"""How much of a device's capacities a request consumes, and whether the device has that much.

Source: k8s.io/dynamic-resource-allocation structured/internal/incubating/consumable_capacity.go.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

from core.objects.devices import Capacity, RequestPolicy, ValidRange
from core.objects.quantity import MAX_INT64, units

Amounts: TypeAlias = Mapping[str, int]
"""Capacity -> amount in billionths."""
NOTHING: Final[Amounts] = {}
_NANOS: Final = 10**9


class CapacityError(Exception):
    """A request cannot be computed. Upstream ends the allocation with this error."""


def consumption(requested: Amounts, capacities: Mapping[str, Capacity], *, fixed: bool) -> dict[str, int]:
    """Return what a request consumes of each capacity. Raises CapacityError.

    `fixed`: with the checks of 1.37.
    """
    consumed = {}
    for name, capacity in capacities.items():
        consumed[name] = amount = _consumed(requested.get(name), capacity, name, fixed=fixed)
        if fixed and amount < 0:
            raise CapacityError(f'capacity "{name}": capacity value is negative')
    return consumed


def fits(
    requested: Amounts, capacities: Mapping[str, Capacity], taken: Amounts, taking: Amounts, *, fixed: bool
) -> bool:
    """Return whether a device has what is requested, besides what is taken. Raises CapacityError.

    `taken` is allocated, and `taking` is allocated in the same attempt.
    """
    if any(name not in capacities for name in requested):
        return False
    consumed = consumption(requested, capacities, fixed=fixed)
    for name, capacity in capacities.items():
        amount = consumed[name]
        if capacity.policy is not None and _violates(amount, capacity.policy):
            return False
        if amount + taken.get(name, 0) + taking.get(name, 0) > capacity.value:
            return False
    return True


def _consumed(requested: int | None, capacity: Capacity, name: str, *, fixed: bool) -> int:
    policy = capacity.policy
    if requested is None:
        return capacity.value if policy is None or policy.default is None else policy.default
    if policy is None:
        return requested
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_up(requested, policy.valid_range, policy.valid_range.min, name, fixed=fixed)
    return next((each for each in policy.valid_values if requested <= each), requested)


def _rounded_up(requested: int, allowed: ValidRange, lowest: int, name: str, *, fixed: bool) -> int:
    if requested < lowest:
        return lowest
    if allowed.step is None:
        return requested
    if fixed and requested > MAX_INT64 * _NANOS:
        raise CapacityError(_unrepresentable(name))
    step = units(allowed.step)
    if not step:  # upstream divides by a step of 0, and panics
        return requested
    base = units(lowest)
    rounded = base + step * -((base - units(requested)) // step)
    if fixed and base >= 0 and rounded > MAX_INT64:
        raise CapacityError(_unrepresentable(name))
    return int64(rounded) * _NANOS


def int64(number: int) -> int:
    """Return a number as Go has it after an overflow, which releases before 1.37 do not notice."""
    return (number + MAX_INT64 + 1) % (2 * MAX_INT64 + 2) - MAX_INT64 - 1


def _unrepresentable(name: str) -> str:
    return f'capacity "{name}": capacity request cannot be represented in the device\'s range arithmetic'


def most_of(policy: RequestPolicy | None, amount: int) -> int:
    """Return the most that one request may consume of an amount. 0: nothing."""
    if policy is None or (policy.valid_range is None and not policy.valid_values):
        return amount
    allowed = policy.valid_range
    if allowed is None:
        return max([each for each in policy.valid_values if each <= amount], default=0)
    lowest = allowed.min or 0
    most = amount if allowed.max is None else min(amount, allowed.max)
    return 0 if most < lowest else most - (most - lowest) % (allowed.step or 1)


def _violates(amount: int, policy: RequestPolicy) -> bool:
    if amount == policy.default:
        return False
    if policy.valid_range is not None:
        return _is_outside(amount, policy.valid_range)
    return bool(policy.valid_values) and amount not in policy.valid_values


def _is_outside(amount: int, allowed: ValidRange) -> bool:
    if allowed.max is not None and amount > allowed.max:
        return True
    step = 0 if allowed.step is None else units(allowed.step)
    return bool(step) and int64(units(amount) - units(allowed.min or 0)) % step != 0
