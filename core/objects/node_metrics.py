"""The measured usage of one node, from metrics.k8s.io or Prometheus."""

import msgspec


class Usage(msgspec.Struct, frozen=True, gc=False):
    """The usage of one resource in the window of the measurement: cpu in millicores, memory in bytes, never negative.

    `deviation` is the standard deviation within the window, or None if the source has one sample per window.
    """

    average: int
    deviation: int | None = None


class NodeMetrics(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The last measurement of a node. A resource without a plausible measurement is None.

    `name` is the node's name. `measured_at` is the end of the window, in seconds since 1970. A pod that started after
    `covers_pods_until` (RFC 3339 in UTC and whole seconds, like Pod.start_time) counts as not measured yet. A caller
    with a clock sets `too_old`, see `core.mirror.node_usage`. Equal values are one state, so a measurement that is read
    twice changes no state.
    """

    name: str
    measured_at: int
    covers_pods_until: str
    window: float = 0.0
    """Length of the window of the averages in seconds, or 0 if the source does not report it."""
    cpu: Usage | None = None
    memory: Usage | None = None
    too_old: bool = False
    uid: str = ""
    """Empty, because a measurement has no UID. The same applies to `resource_version`."""
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """The name. The object has no namespace."""
        return self.name
