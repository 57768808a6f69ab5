"""The pod as scheduling sees it."""

from collections.abc import Mapping

import msgspec

from core.objects.affinity import NO_AFFINITY, PodAffinity
from core.objects.owner import ControllerRef


class Pod(msgspec.Struct, frozen=True, gc=False):
    """A v1.Pod reduced to what the enabled plugins and the mirror read.

    `uid` identifies the pod through all its updates. `node_name` is empty while the pod is not bound. `terminal` is
    phase Succeeded or Failed: such a pod holds nothing any more, whereas one with a deletionTimestamp still counts.
    `requests` is what the scheduler reserves for the whole pod: cpu in millicores, all others in their own unit (bytes,
    pieces). `best_effort` is QoS class BestEffort: no cpu and no memory asked for or limited.
    """

    uid: str
    namespace: str
    name: str
    labels: Mapping[str, str] = {}
    node_name: str = ""
    terminal: bool = False
    affinity: PodAffinity = NO_AFFINITY
    requests: Mapping[str, int] = {}
    best_effort: bool = True
    controller: ControllerRef | None = None
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """The pod as people write it, NAMESPACE/NAME."""
        return f"{self.namespace}/{self.name}"

    @property
    def assigned(self) -> bool:
        """Whether the pod occupies a node, which is what the mirror holds and the plugins count."""
        return bool(self.node_name) and not self.terminal
