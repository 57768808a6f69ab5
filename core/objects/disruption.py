"""PodDisruptionBudgets as preemption sees them."""

import msgspec

from core.objects.labels import NOTHING, Selector


class PodDisruptionBudget(msgspec.Struct, frozen=True, gc=False):
    """A policy/v1 PodDisruptionBudget: the pods it covers, and how many of them may still be disrupted."""

    namespace: str
    name: str
    selector: Selector = NOTHING
    disruptions_allowed: int = 0
    disrupted_pods: frozenset[str] = frozenset()
    """Names of pods whose disruption the budget already counts (status.disruptedPods)."""
    uid: str = ""
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """The object as people write it, NAMESPACE/NAME."""
        return f"{self.namespace}/{self.name}"
