"""Decisions as the extender makes them, noted."""

from typing import Final

from app.explain.decisions import Decisions
from app.settings import Settings
from app.verbs.request import Observation
from app.wiring.engine import create_extender
from core.mirror.cluster import ClusterMirror
from tests.app.verbs.receptions import effects_over

NOON: Final = 1_763_812_800.0


class Asking:
    """An extender over a mirror whose answers are noted."""

    def __init__(self, mirror: ClusterMirror) -> None:
        self.mirror = mirror
        self.extender = create_extender(Settings(), mirror)
        self.effects = effects_over(mirror)
        self.decisions = Decisions(mirror, self.effects.recent_pods, lambda: NOON)

    def ask(self, body: bytes, verb: str = "filter") -> int:
        """Ask, and give the number of the decision."""
        answer = (self.extender.filter if verb == "filter" else self.extender.prioritize)(body, effects=self.effects)
        self.decisions(
            Observation(
                verb,
                answer.outcome,
                0.25,
                0.125,
                len(body),
                len(answer.body),
                answer.asked,
                answer.source,
                answer.error,
                "",
                body,
                answer.body,
            )
        )
        return self.decisions.noted
