"""Two namespaces, of which a caller may list the pods of one, and what their pods have in their names."""

from typing import Any, Final

from tests.app.admin.limited_callers import ALL
from tests.builders import NodeBuilder, PodBuilder, labelled, make_node, make_pod, term

OURS: Final = "ours"
THEIRS: Final = "theirs"
HIDDEN: Final = "hidden-7f3a"
"""In the name, and so in the uid, of every pod of THEIRS."""
SEEN: Final = "visible-4c1d"
"""In the name of every pod of OURS."""
NODES: Final = ("n1", "n2", "n3")
ZONE: Final = "topology.kubernetes.io/zone"
ALLOWED: Final = {"of-ours": (OURS,), "of-all": ALL, "of-none": ()}
DISK: Final = {"name": "d", "gcePersistentDisk": {"pdName": "disk"}}


def ours(name: str) -> PodBuilder:
    return make_pod(f"{SEEN}-{name}").in_namespace(OURS)


def theirs(name: str) -> PodBuilder:
    return make_pod(f"{HIDDEN}-{name}").in_namespace(THEIRS).uid(f"uid-{HIDDEN}-{name}")


def everywhere(**labels: str) -> dict[str, Any]:
    return term(ZONE, labelled(**labels), namespace_selector={})


def nodes() -> list[NodeBuilder]:
    return [make_node(name).label(ZONE, f"z-{name}").allocatable(cpu=4, memory="8Gi", pods=20) for name in NODES]
