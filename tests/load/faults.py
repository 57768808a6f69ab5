"""Faults of the API server under load: one after another, at random times."""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

_PODS: Final = "/api/v1/pods"
_OUTAGE: Final = 3.0  # seconds without any API server


class Change(NamedTuple):
    """A request to the fake API server: a verb of `tests.fake_apiserver.control`, and its body."""

    verb: str
    given: object


class Fault(NamedTuple):
    """A fault, with its weight relative to the others."""

    weight: int
    changes: tuple[Change, ...]
    seconds: float = 0.0
    """Seconds in which no other fault can be injected."""


def _watches(action: str, path: str | None = None, **fields: object) -> Change:
    return Change("disturb", {"action": action, "fields": fields, "path": path})


def _responses(response: str, times: int) -> Change:
    return Change("faults", [{"action": "refuse", "fields": {"answer": response}, "times": times}])


FAULTS: Final[Mapping[str, Fault]] = {
    "watches end": Fault(3, (_watches("End"),)),
    "watches are cut inside of a line": Fault(3, (_watches("Cut"),)),
    "watches are reset": Fault(3, (_watches("Cut", reset=True),)),
    "watches stand still for 5 s": Fault(2, (_watches("Stall", seconds=5),)),
    "garbage in the watch of pods": Fault(2, (_watches("SendLine", _PODS, line="<html>502 Bad Gateway</html>"),)),
    "an error in watches": Fault(1, (_watches("StreamError", status="internal-error"),)),
    "watches have expired (410)": Fault(1, (_watches("StreamError", status="expired"),)),
    "the history of pods is gone (410)": Fault(1, (Change("compact", {"path": _PODS}), _watches("Cut", _PODS))),
    "429 three times": Fault(2, (_responses("overloaded", 3), _watches("End"))),
    "503 three times": Fault(2, (_responses("unavailable", 3), _watches("End"))),
    "500 three times": Fault(1, (_responses("internal-error", 3), _watches("End"))),
    "the token is refused (401)": Fault(1, (_responses("unauthorized", 1), _watches("End"))),
    "connections are reset as they are made": Fault(
        2,
        (
            Change("faults", [{"action": "CloseOnAccept", "fields": {"reset": True}, "times": 2}]),
            _watches("Cut", reset=True),
        ),
    ),
    f"no API server for {_OUTAGE:g} s": Fault(2, (Change("refuse", {"seconds": _OUTAGE, "drop": True}),), _OUTAGE),
}


class FaultInjector:
    """Injects faults from time to time. `injected` counts them."""

    def __init__(
        self, change: Callable[[str, object], None], seed: int, mean_gap: float, clock: Callable[[], float]
    ) -> None:
        """`change` gets a verb and its body. `mean_gap`: mean seconds between two faults."""
        self._change = change
        self._random = random.Random(seed)  # noqa: S311 - to be the same each time
        self._rate = 1 / mean_gap
        self._clock = clock
        self.injected: Counter[str] = Counter()
        self._due = self._after(0.0)

    def step(self) -> None:
        """Inject a fault if one is due. Call this about every second."""
        if self._clock() < self._due:
            return
        name = self._random.choices(list(FAULTS), [fault.weight for fault in FAULTS.values()])[0]
        for change in FAULTS[name].changes:
            self._change(change.verb, change.given)
        self.injected[name] += 1
        self._due = self._after(FAULTS[name].seconds + 1)

    def _after(self, seconds: float) -> float:
        return self._clock() + seconds + self._random.expovariate(self._rate)
