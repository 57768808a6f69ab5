"""A small cluster to spread pods over, as the core's values: two zones, a node without a zone, one without labels."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from core.events import Action, ClusterEvent, Object
from core.mirror.cluster import ClusterMirror
from core.objects.labels import EVERYTHING, Operator, Selector, requirement
from core.objects.node import Node
from core.objects.pod import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, Pod, SpreadConstraint

ZONE: Final = "zone"
HOST: Final = "kubernetes.io/hostname"
A1: Final = Node("a1", {ZONE: "a", HOST: "a1"})
A2: Final = Node("a2", {ZONE: "a", HOST: "a2"})
B1: Final = Node("b1", {ZONE: "b", HOST: "b1"})
ZONELESS: Final = Node("zoneless", {HOST: "zoneless"})
BARE: Final = Node("bare")
NODES: Final = (A1, A2, B1, ZONELESS, BARE)
NAMES: Final = [node.name for node in NODES]


def selecting(**labels: str) -> Selector:
    """Return the selector of matchLabels; without arguments it is `{}`."""
    if not labels:
        return EVERYTHING
    return Selector(tuple(requirement(key, Operator.IN, [labels[key]]) for key in sorted(labels)))


def must(key: str, max_skew: int = 1, selector: Selector | None = None, **rest: Any) -> SpreadConstraint:  # noqa: ANN401 - any other field
    """Return a hard constraint, on pods of the app web if no selector is given."""
    chosen = selecting(app="web") if selector is None else selector
    return SpreadConstraint(max_skew, key, DO_NOT_SCHEDULE, chosen, **rest)


def should(key: str, max_skew: int = 1, selector: Selector | None = None, **rest: Any) -> SpreadConstraint:  # noqa: ANN401 - any other field
    """Return a soft constraint, on pods of the app web if no selector is given."""
    return replace(must(key, max_skew, selector, **rest), when_unsatisfiable=SCHEDULE_ANYWAY)


def incoming(*constraints: SpreadConstraint, app: str = "web", **rest: Any) -> Pod:  # noqa: ANN401 - any other field
    """Return a pod of an app that is to be scheduled."""
    return Pod("incoming", "default", "incoming", rest.pop("labels", {"app": app}), spread=constraints, **rest)


def placed(**apps_by_node: str) -> list[Pod]:
    """Return pods by the node that they are on: `placed(a1="web web db")`."""
    return [
        Pod(f"{node}/{number}", "default", f"{node}-{number}", {"app": app}, node)
        for node, apps in apps_by_node.items()
        for number, app in enumerate(apps.split())
    ]


def tell(mirror: ClusterMirror, action: Action, *objects: Object) -> None:
    """Apply one event for each of the objects."""
    for each in objects:
        mirror.apply(ClusterEvent(action, each))


def mirror_of(*objects: Object, nodes: Sequence[Node] = NODES) -> ClusterMirror:
    """Return a mirror of the nodes and of other objects."""
    mirror = ClusterMirror()
    tell(mirror, "Add", *nodes, *objects)
    return mirror


def by_name(numbers: Sequence[int], names: Sequence[str] = NAMES) -> Mapping[str, int]:
    """Return what belongs to each node."""
    return dict(zip(names, numbers, strict=True))
