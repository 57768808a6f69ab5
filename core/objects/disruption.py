"""PodDisruptionBudgets, reduced to the fields that preemption reads."""

from collections.abc import Mapping

import msgspec

from core.objects.labels import NOTHING, Selector


class PodDisruptionBudget(msgspec.Struct, frozen=True, gc=False):
    """A policy/v1 PodDisruptionBudget: the pods that it covers, and how many of them may still be disrupted."""

    namespace: str
    name: str
    selector: Selector = NOTHING
    disruptions_allowed: int = 0
    disrupted_pods: frozenset[str] = frozenset()
    """Names of the pods that the budget already counts as disrupted (status.disruptedPods)."""
    uid: str = ""
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """NAMESPACE/NAME."""
        return f"{self.namespace}/{self.name}"

    def covers(self, labels: Mapping[str, str]) -> bool:
        """Return whether the budget covers pods of its namespace with these labels.

        A budget whose selector is null or empty covers no pod. No budget covers a pod without labels. Source:
        k8s.io/kubernetes v1.37 pkg/scheduler/framework/preemption/util.go (FilterVictimsWithPDBViolation).
        """
        return bool(labels) and not self.selector.everything and self.selector.matches(labels)
