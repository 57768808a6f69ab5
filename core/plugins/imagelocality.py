"""ImageLocality: prefers nodes that already have the pod's images, by image size and by the share of nodes with it.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/imagelocality/image_locality.go.
"""

from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from core.framework.interface import SUCCESS, ScorePlugin, Status
from core.framework.invalidation import InvalidationRule, Operation, Scope, node_update
from core.framework.scores import MAX_NODE_SCORE
from core.mirror.changes import NodeChange
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array
from core.objects.node import Node
from core.objects.pod import Pod
from core.objects.quantity import MAX_INT64
from core.releases.release import ImageVolumes

_MIB: Final = 1024 * 1024
MIN_THRESHOLD: Final = 23 * _MIB
"""Up to this many bytes of scaled sizes, a node gets 0."""
MAX_CONTAINER_THRESHOLD: Final = 1000 * _MIB
"""From this many bytes per image, a node gets 100."""

MAX_COLUMNS: Final = 256
"""How many images have a column of sizes by node. One costs 40 KB at 5,000 nodes, and 0.5 ms to make."""
MANY_IMAGES: Final = 64
"""From this many images of a pod, a pass over all nodes adds up the sizes: 5 ms at 5,000 nodes with 25 images each."""


class ImageStates:
    """How many nodes have an image, and for recently requested images, the size on each node.

    The size is the node's own value. Upstream's cache takes the size from the first node with the image, so it depends
    on the order of events. Upstream's NewSnapshot, which tests use, takes the node's own size. Source:
    k8s.io/kubernetes pkg/scheduler/backend/cache (addNodeImageStates, getNodeImageStates).
    """

    hears: Final = (NodeChange,)

    def __init__(self, mirror: ClusterMirror) -> None:
        self._nodes = mirror.nodes
        self._capacity = mirror.nodes.capacity
        self.total = 0  # known nodes
        self.holders: Counter[str] = Counter()  # image name -> number of nodes with the image
        self.columns: OrderedDict[str, Int64Array] = OrderedDict()  # image name -> slot -> bytes, 0 without the image
        for _, node in mirror.nodes:
            self.total += 1
            self.holders.update(node.images.keys())

    def changed(self, change: NodeChange) -> None:
        """Update the counts for a changed node."""
        before, after = _images(change.before), _images(change.after)
        self.total += (change.after is not None) - (change.before is not None)
        if self._nodes.capacity > self._capacity:
            self._capacity = self._nodes.capacity
            self.columns.clear()  # the columns are too short now; the table of nodes rarely doubles
        if before == after:
            return
        self.holders.update(after.keys() - before.keys())
        for name in before.keys() - after.keys():
            self.holders[name] -= 1
            if not self.holders[name]:
                del self.holders[name]
        for name in before.keys() | after.keys():
            column = self.columns.get(name)
            if column is not None:
                column[change.slot] = after.get(name, 0)

    def added_up(self, times: Mapping[str, int]) -> Int64Array:
        """Return by slot the sum of the scaled sizes of many images, in one pass over the nodes' images.

        `times` has the number of uses of each image. For images without columns: columns for many of them would take
        megabytes.
        """
        sums = np.zeros(self._capacity, np.int64)
        spreads = {name: self.holders[name] / self.total for name in times}
        for slot, node in self._nodes:
            scaled = [
                int(node.images[name] * spreads[name]) * times[name] for name in node.images.keys() & times.keys()
            ]
            if scaled:
                sums[slot] = min(sum(scaled), MAX_INT64)
        return sums

    def sizes(self, names: Sequence[str]) -> list[Int64Array]:
        """Return for each image its bytes by slot, 0 where the node does not have it. Stale after the next event."""
        missing = {name: np.zeros(self._capacity, np.int64) for name in names if name not in self.columns}
        if missing:
            for slot, node in self._nodes:
                for name, column in missing.items():
                    column[slot] = node.images.get(name, 0)
            self.columns.update(missing)
        for name in names:
            self.columns.move_to_end(name)
        found = [self.columns[name] for name in names]
        while len(self.columns) > MAX_COLUMNS:
            self.columns.popitem(last=False)
        return found


class Preference:
    """The images of a pod, with the number of uses of each. Stale after the next event."""

    __slots__ = ("_images", "_number", "_states")

    def __init__(self, states: ImageStates, images: Sequence[str], number: int) -> None:
        """Score by `images`. `number` scales the sum of their sizes."""
        self._states = states
        self._number = number
        self._images = Counter(images)

    def scores(self, batch: NodeBatch) -> Int64Array:
        """Return the score of every node."""
        states = self._states
        present = {name: times for name, times in self._images.items() if name in states.holders}
        if len(present) > MANY_IMAGES:
            sums = states.added_up(present)[batch.slots]  # NO_SLOT reads the last slot, corrected below
        else:
            sums = np.zeros(len(batch), np.int64)
            for (name, times), sizes in zip(present.items(), states.sizes([*present]), strict=True):
                spread = states.holders[name] / states.total
                # Truncated for each container, as upstream does.
                sums += (sizes[batch.slots] * spread).astype(np.int64) * times
        for position, node in batch.unmirrored.items():
            sums[position] = 0 if node is None else self._of_unmirrored(node)
        highest = MAX_CONTAINER_THRESHOLD * self._number
        # In upstream's order: of a pod without containers, the highest is below the least.
        clipped = np.where(sums < MIN_THRESHOLD, MIN_THRESHOLD, np.minimum(sums, highest))
        scores: Int64Array = MAX_NODE_SCORE * (clipped - MIN_THRESHOLD) // (highest - MIN_THRESHOLD)
        return scores

    def _of_unmirrored(self, node: Node) -> int:
        """Sum the images of a stranger as if it were one more node in the mirror."""
        states = self._states
        return sum(
            int(node.images[name] * ((states.holders[name] + 1) / (states.total + 1))) * self._images[name]
            for name in node.images.keys() & self._images.keys()
        )


class ImageLocality(ScorePlugin[Preference]):
    """Scores by the images that nodes already have, exactly as the in-tree plugin."""

    name = "ImageLocality"
    former_scores = (("ImageLocalityPriority", ""),)
    points = ("score",)
    class_fields = ("demand.images", "demand.image_volumes")
    invalidated_by = (
        InvalidationRule(
            kind=Node,
            operations=(Operation.ADD, Operation.DELETE),
            scope=Scope.ALL,
            because="the size of an image is scaled by the share of all nodes that have it",
        ),
        node_update(
            scope=Scope.ALL,
            when="its images changed",
            because="an image that comes to one node is worth more on all that have it",
            reads=lambda node: node.images,
        ),
    )
    states = (ImageStates,)
    scores_alone = True
    normalizes_alone = True

    def pre_score(self, mirror: ClusterMirror, pod: Pod, _batch: NodeBatch) -> tuple[Status, Preference]:
        """Collect the pod's images."""
        taken = mirror.rules.image_volumes
        images = pod.demand.images if taken is ImageVolumes.IGNORED else (*pod.demand.images, *pod.demand.image_volumes)
        number = len(images) if taken is ImageVolumes.COUNTED else len(pod.demand.images)
        return SUCCESS, Preference(mirror.derived(ImageStates), images, number)

    def score(self, state: Preference, batch: NodeBatch) -> Int64Array:
        """Return the score of every node, 0..100."""
        return state.scores(batch)


def _images(node: Node | None) -> Mapping[str, int]:
    return {} if node is None else node.images
