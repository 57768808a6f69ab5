"""What is said of the capacities and counters that devices lack."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from core.explaining.claim_steps import amount_text
from core.plugins.dynamicresources.capacities import CapacityError, consumption, most_of
from core.plugins.dynamicresources.constraints import Need
from core.plugins.dynamicresources.pools import Pool, PoolDevice
from core.plugins.dynamicresources.survey import State, Survey


def capacities_text(survey: Survey, devices: Sequence[PoolDevice], need: Need, state: State) -> str:
    """Return what a request takes of each capacity, and the most that one of the devices has, or has left if FULL."""
    names = sorted({name for each in devices for name in each.device.capacity})
    asked = dict(need.request.capacities or ())
    return "; ".join(
        text for name in {**asked, **dict.fromkeys(names)} for text in _of(survey, devices, need, name, state)
    )


def _of(survey: Survey, devices: Sequence[PoolDevice], need: Need, name: str, state: State) -> Iterator[str]:
    """Yield what is said of one capacity: nothing if nobody asks for it, and a device has what is taken by default."""
    asked = dict(need.request.capacities or ())
    has = {device: left for device in devices if (left := survey.left(device, name, state)) is not None}
    if not has:
        yield f"{name}: needs {amount_text(asked[name])}, none has it"
        return
    best = max(has, key=has.__getitem__)
    capacity, taken = best.device.capacity[name], asked.get(name, 0)
    with suppress(CapacityError):
        taken = consumption(asked, {name: capacity}, fixed=survey.claims.gates.fixed)[name]
    if name not in asked and taken <= has[best]:
        return
    takes = f" and takes {amount_text(taken)}" if taken != asked.get(name, taken) else ""
    most = most_of(capacity.policy, has[best])
    may = f", and at most {amount_text(most)} for one request" if 0 < most < has[best] else ""
    there = f"most {'left' if state is State.FULL else 'is'} {amount_text(has[best])}"
    yield f"{name}: needs {amount_text(asked.get(name, taken))}{takes}, {there}{may}"


def counters_text(survey: Survey, pools: Iterable[Pool], device: PoolDevice) -> str:
    """Return the counter that a device lacks, or one of which more is in use than there is: then none is given."""
    for pool in pools:
        if pool.id == device.id[:2] and pool.whole is not None and device in pool.devices:
            left, needed = dict(survey.claims.inventory.usage_of(pool).available), dict(device.counters)
            for key in sorted(left, key=lambda each: each not in needed):
                if left[key] < needed.get(key, 0):
                    needs = f"needs {amount_text(needed[key])}, " if key in needed else ""
                    there = amount_text(pool.whole.counters[key])
                    return f"{'/'.join(key)}: {needs}{amount_text(left[key])} left of {there}"
    return "this release allocates no parts of devices"
