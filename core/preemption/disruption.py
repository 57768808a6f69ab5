"""Which evictions would violate a PodDisruptionBudget.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go
(filterPodsWithPDBViolation), since v1.37 pkg/scheduler/framework/preemption/util.go (FilterVictimsWithPDBViolation).
"""

from collections.abc import Collection, Iterable

from core.objects.kinds import PodDisruptionBudget
from core.objects.pod import Pod


def split_by_violation(
    pods: Iterable[Pod], budgets: Collection[PodDisruptionBudget], *, stop_at_violation: bool
) -> tuple[list[Pod], list[Pod]]:
    """Return the pods whose eviction violates a budget, and the other pods, each in the given order.

    Each pod takes one disruption from every budget that covers it, unless the budget already counts the pod as
    disrupted. A pod that the search later spares takes one, too. A pod violates if any of its budgets drops below 0.
    With `stop_at_violation`, the pod then takes nothing from the budgets after that one.
    """
    allowed = {budget.full_name: budget.disruptions_allowed for budget in budgets}
    violating: list[Pod] = []
    others: list[Pod] = []
    for pod in pods:
        violates = False
        for budget in budgets:
            if (
                budget.namespace == pod.namespace
                and budget.covers(pod.labels)
                and pod.name not in budget.disrupted_pods
            ):
                allowed[budget.full_name] -= 1
                violates |= allowed[budget.full_name] < 0
                if violates and stop_at_violation:
                    break
        (violating if violates else others).append(pod)
    return violating, others
