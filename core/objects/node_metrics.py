"""The measured usage of one node, as metrics.k8s.io or Prometheus gives it."""

import msgspec


class Usage(msgspec.Struct, frozen=True, gc=False):
    """The usage of one resource in the window of the measurement: cpu in millicores, memory in bytes, never negative.

    `deviation` is the standard deviation within the window; None where the source has one sample a window.
    """

    average: int
    deviation: int | None = None


class NodeMetrics(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The last measurement of a node. A resource that was not measured, or not plausibly, is None.

    `name` is the node's. `measured_at` is the end of the window, in seconds since 1970. A pod that started after
    `covers_pods_until` (RFC 3339 in UTC and whole seconds, as Pod.start_time) counts as not measured yet. A caller that
    has a clock sets `too_old`, see `core.mirror.node_usage`. Equal states are one state: a measurement that is read
    twice changes nothing.
    """

    name: str
    measured_at: int
    covers_pods_until: str
    window: float = 0.0
    """Seconds that the averages are over; 0 where the source does not say."""
    cpu: Usage | None = None
    memory: Usage | None = None
    too_old: bool = False
    uid: str = ""
    """Empty: a measurement has none. So it is with `resource_version`."""
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """The object as people write it; it has no namespace."""
        return self.name
