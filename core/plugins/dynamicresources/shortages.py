"""What is said of the capacities and counters that devices lack."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from core.explaining.claim_steps import amount_text
from core.plugins.dynamicresources.capacities import NOTHING, CapacityError, consumption, fits, most_of
from core.plugins.dynamicresources.constraints import Need
from core.plugins.dynamicresources.pools import Pool, PoolDevice
from core.plugins.dynamicresources.survey import State, Survey


class _Short(NamedTuple):
    """A capacity of a device. `left` is None if it has no such capacity, `most` what a policy allows of `left`."""

    left: int | None
    taken: int
    most: int


def capacities_text(survey: Survey, devices: Sequence[PoolDevice], need: Need, state: State) -> str:
    """Return which capacities devices lack, each with what a request takes, and the most there is, or left if FULL."""
    requested = dict(need.request.capacities or ())
    alike = {each.id if state is State.FULL else id(each.device.capacity): each for each in devices}.values()
    texts = []
    for name in dict.fromkeys((*requested, *sorted({name for each in alike for name in each.device.capacity}))):
        short = [one for each in alike if (one := _short(survey, each, name, requested.get(name), state)) is not None]
        if not short:
            continue
        best = max(short, key=lambda each: (each.left is not None, each.left))
        takes = f" and takes {amount_text(best.taken)}" if best.taken != requested.get(name, best.taken) else ""
        needs = f"{name}: needs {amount_text(requested.get(name, best.taken))}{takes}"
        if best.left is None:
            texts.append(f"{needs}, none has it")
            continue
        may = f", and at most {amount_text(best.most)} for one request" if 0 < best.most < best.left else ""
        texts.append(f"{needs}, most {'left' if state is State.FULL else 'is'} {amount_text(best.left)}{may}")
    return "; ".join(texts)


def _short(survey: Survey, device: PoolDevice, name: str, amount: int | None, state: State) -> _Short | None:
    """Return a capacity that a device lacks for a request. None if it has enough, or need not have it."""
    capacity, left, taken = device.device.capacity.get(name), survey.left(device, name, state), amount or 0
    if capacity is None or left is None:
        return None if amount is None else _Short(None, taken, 0)
    requested, fixed = {} if amount is None else {name: amount}, survey.claims.gates.fixed
    with suppress(CapacityError):
        if fits(requested, {name: capacity}, {name: capacity.value - left}, NOTHING, fixed=fixed):
            return None
        taken = consumption(requested, {name: capacity}, fixed=fixed)[name]
    return _Short(left, taken, most_of(capacity.policy, left))


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
