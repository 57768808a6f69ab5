"""Decisions as the extender makes them, noted."""

from typing import Final

from app.explain.decisions import Decisions
from app.settings.settings import Settings
from app.verbs.request import Request
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
        request = Request(body, verb=verb, size=len(body), seconds=0.25, waited=0.125)
        request.response = (self.extender.filter if verb == "filter" else self.extender.prioritize)(
            request, self.effects
        )
        self.decisions(request)
        return self.decisions.noted
