"""The pod as scheduling sees it."""

from collections.abc import Mapping

import msgspec

from core.objects.affinity import NO_AFFINITY, PodAffinity


class Pod(msgspec.Struct, frozen=True, gc=False):
    """A v1.Pod reduced to what the enabled plugins read.

    `uid` identifies the pod through all its updates. `node_name` is empty while the pod is not bound. `terminal` is
    phase Succeeded or Failed: such a pod holds nothing any more, whereas one with a deletionTimestamp still counts.
    """

    uid: str
    namespace: str
    name: str
    labels: Mapping[str, str] = {}
    node_name: str = ""
    terminal: bool = False
    affinity: PodAffinity = NO_AFFINITY

    @property
    def full_name(self) -> str:
        """The pod as people write it, NAMESPACE/NAME."""
        return f"{self.namespace}/{self.name}"

    @property
    def assigned(self) -> bool:
        """Whether the pod occupies a node, which is what the mirror holds and the plugins count."""
        return bool(self.node_name) and not self.terminal
