"""What a plugin for tests tells of itself when it has nothing to tell."""

from typing import ClassVar

from core.framework.interface import Versions
from core.framework.invalidation import InvalidationRule
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod


class PlainPlugin:
    """Reads no field, is invalidated by nothing but the coming and going of nodes."""

    class_fields: ClassVar[tuple[str, ...]] = ()
    invalidated_by: ClassVar[tuple[InvalidationRule, ...]] = ()
    scores_alone: ClassVar[bool] = True
    normalizes_alone: ClassVar[bool] = True

    def references(self, _mirror: ClusterMirror, _pod: Pod) -> None:
        """Refer to nothing."""

    def filter_versions(self, _state: object) -> Versions:
        """Read no counters."""
        return ()

    def score_versions(self, _state: object) -> Versions:
        """Read no counters."""
        return ()
