"""The amounts that predict a pod's usage: the limit of each container, or its request without a limit.

Source: sigs.k8s.io/scheduler-plugins pkg/trimaran/targetloadpacking (PredictUtilisation), koordinator
pkg/scheduler/plugins/loadaware/estimator (estimatedPodUsed).
"""

from typing import Final

import msgspec

from core.objects.pod_requests import PodResources, pod_limits
from core.objects.quantity import millis

_CPU: Final = "cpu"


class PodLoad(msgspec.Struct, frozen=True, gc=False):
    """The parts of a prediction, in millicores of cpu and bytes of memory. The factors are arguments of the plugins.

    Pods of one controller share one value. Init containers count only in `limits`.
    """

    limited_cpu: int = 0
    """Sum over the containers with a cpu limit."""
    requested_cpu: tuple[int, ...] = ()
    """The request of each container without a limit, sorted. Each is scaled and rounded separately."""
    unstated: int = 0
    """Number of containers with neither a cpu limit nor a cpu request."""
    overhead_cpu: int = 0
    limits: tuple[int, int] = (0, 0)
    """Cpu and memory limits of the pod as a whole (k8s.io/component-helpers PodLimits). 0 means no limit."""


NO_LOAD: Final = PodLoad()
"""The value of a pod without containers."""


def pod_load(pod: PodResources) -> PodLoad:
    """Return the parts for the resources of a pod."""
    limited, unstated = 0, 0
    requested: list[int] = []
    for container in pod.containers:
        resources = container.resources
        if _CPU in resources.limits:
            limited += millis(resources.limits[_CPU])
        elif _CPU in resources.requests:
            requested.append(millis(resources.requests[_CPU]))
        else:
            unstated += 1
    limits = pod_limits(pod)
    return PodLoad(
        limited,
        tuple(sorted(requested)),
        unstated,
        millis(pod.overhead.get(_CPU, 0)),
        (limits.get(_CPU, 0), limits.get("memory", 0)),
    )
