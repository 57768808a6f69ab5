"""The drawings of docs/concepts.md: `python -m tests.site.drawings` writes them to docs/images."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tests.site.drawing import Arrow, Box, Drawing, Note

FOLDER: Final = Path(__file__).parents[2] / "docs" / "images"

_DATA_FLOW: Final = Drawing(
    "Data flow: watch events change the mirror, requests read it",
    760,
    300,
    (
        Box(10, 40, 120, 50, "API server"),
        Box(190, 40, 130, 50, "reflectors", "own"),
        Box(380, 40, 150, 50, "mirror\nnodes, pods, counters", "own"),
        Arrow(((130, 65), (190, 65))),
        Note(160, 54, "watch"),
        Arrow(((320, 65), (380, 65))),
        Note(350, 54, "events"),
        Arrow(((455, 90), (455, 140))),
        Note(466, 115, "invalidates cells", left=True),
        Box(380, 140, 150, 50, "equivalence cache\ncells by class", "kept"),
        Box(590, 40, 150, 50, "plugins\nfilters and scores", "own"),
        Arrow(((530, 65), (590, 65))),
        Note(560, 54, "read"),
        Arrow(((665, 90), (665, 165), (530, 165))),
        Note(660, 182, "new results"),
        Box(10, 230, 120, 50, "kube-scheduler"),
        Box(190, 230, 130, 50, "queue, decoder", "own"),
        Box(380, 230, 150, 50, "class of the pod", "own"),
        Box(590, 230, 150, 50, "response\nnodes, reasons, scores", "own"),
        Arrow(((130, 255), (190, 255))),
        Note(160, 244, "request"),
        Arrow(((320, 255), (380, 255))),
        Arrow(((455, 230), (455, 190))),
        Note(466, 210, "valid cells", left=True),
        Arrow(((530, 255), (590, 255))),
    ),
)
_CELLS: Final = Drawing(
    "A class and its cells: one row of cells for each plugin, one column for each node",
    760,
    290,
    (
        Box(10, 70, 120, 34, "pod web-1"),
        Box(10, 114, 120, 34, "pod web-2"),
        Box(10, 158, 120, 34, "pod web-3"),
        Box(180, 104, 120, 54, "class\nsame fields read", "own"),
        Arrow(((130, 87), (180, 122))),
        Arrow(((130, 131), (180, 131))),
        Arrow(((130, 175), (180, 140))),
        Arrow(((300, 131), (340, 131))),
        Note(485, 35, "node1"),
        Note(585, 35, "node2"),
        Note(685, 35, "node3"),
        *(Note(345, y, name, left=True) for y, name in ((70, "InterPod"), (86, "Affinity"), (191, "NodePorts"))),
        *(Note(345, y, name, left=True) for y, name in ((124, "Image"), (140, "Locality"))),
        Box(440, 55, 90, 44, "fits", "kept"),
        Box(540, 55, 90, 44, "fails: reason", "kept"),
        Box(640, 55, 90, 44, "fits", "kept"),
        Box(440, 112, 90, 44, "raw score 12", "kept"),
        Box(540, 112, 90, 44, "raw score 0", "kept"),
        Box(640, 112, 90, 44, "raw score 12", "kept"),
        Box(440, 169, 90, 44, "fits", "kept"),
        Box(540, 169, 90, 44, "invalid", "gone"),
        Box(640, 169, 90, 44, "fits", "kept"),
        Box(180, 240, 200, 38, "event: pod on node2 deleted"),
        Arrow(((380, 259), (585, 259), (585, 213))),
        Note(595, 243, "invalidates the cell;", left=True),
        Note(595, 261, "the next request", left=True),
        Note(595, 279, "evaluates it", left=True),
    ),
)
_POD_STATES: Final = Drawing(
    "States of a pod in the mirror: it counts while Assumed or Added",
    760,
    250,
    (
        Box(10, 80, 110, 44, "Initial"),
        Box(230, 80, 110, 44, "Assumed", "kept"),
        Box(480, 80, 110, 44, "Added", "kept"),
        Box(230, 190, 110, 44, "Expired", "gone"),
        Box(480, 190, 110, 44, "Deleted", "gone"),
        Arrow(((120, 92), (230, 92))),
        Note(175, 82, "decided or bound"),
        Arrow(((230, 114), (120, 114))),
        Note(175, 130, "binding failed"),
        Arrow(((340, 102), (480, 102))),
        Note(410, 92, "seen in the watch"),
        Arrow(((65, 80), (65, 30), (535, 30), (535, 80))),
        Note(300, 20, "watch event: assigned by another scheduler"),
        Arrow(((285, 124), (285, 190))),
        Note(218, 157, "not confirmed in time"),
        Arrow(((535, 124), (535, 190))),
        Note(545, 157, "deleted, Succeeded or Failed", left=True),
        Arrow(((340, 118), (480, 196))),
        Note(430, 180, "deleted"),
    ),
)
_REGISTRATIONS: Final = Drawing(
    "Decide beside full offload: which program filters, scores and binds",
    760,
    250,
    (
        Note(190, 16, "decide: a second kube-scheduler for the pods that name it"),
        Box(10, 40, 160, 50, "second kube-scheduler\nqueue, backoff"),
        Box(10, 180, 160, 50, "binding\nby kube-scheduler"),
        Box(230, 110, 140, 50, "Kindred\nfilters, scores, choice", "own"),
        Arrow(((170, 65), (300, 65), (300, 110))),
        Note(235, 54, "filter: 1 call"),
        Arrow(((300, 160), (300, 205), (170, 205))),
        Note(235, 222, "one node"),
        Note(570, 16, "full offload: the cluster's own kube-scheduler"),
        Box(400, 40, 160, 50, "kube-scheduler\nall other plugins"),
        Box(600, 40, 150, 50, "Kindred: filter\nInterPodAffinity", "own"),
        Box(600, 110, 150, 50, "Kindred: prioritize\nInterPodAffinity", "own"),
        Box(600, 180, 150, 50, "Kindred: bind\nfilters again, binds", "own"),
        Arrow(((560, 65), (600, 65))),
        Arrow(((480, 90), (480, 135), (600, 135))),
        Arrow(((480, 135), (480, 205), (600, 205))),
        Note(540, 125, "call 2"),
        Note(540, 195, "call 3"),
        Note(580, 54, "1"),
    ),
)
DRAWINGS: Final[Mapping[str, Drawing]] = MappingProxyType(
    {
        "data-flow.svg": _DATA_FLOW,
        "class-and-cells.svg": _CELLS,
        "pod-states.svg": _POD_STATES,
        "decide-and-full-offload.svg": _REGISTRATIONS,
    }
)
"""File in docs/images -> drawing."""


if __name__ == "__main__":
    for name, drawing in DRAWINGS.items():
        (FOLDER / name).write_text(drawing.svg(), "utf-8")
