"""Volume cases: each plugin that reads volumes is held against its part of a case, and all of them together."""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Final, TypeAlias

from app.dump.snapshot_file import CASE_MEMBERS
from app.objects.resources import RESOURCES
from core.events import ClusterEvent
from core.framework.evaluation import everywhere
from core.framework.interface import AnyFilter
from core.framework.status import Code
from core.mirror.cluster import ClusterMirror
from core.objects.namespace import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from core.plugins.nodevolumelimits.plugin import NodeVolumeLimits
from core.plugins.volumebinding.plugin import VolumeBinding
from core.plugins.volumerestrictions.plugin import VolumeRestrictions
from core.plugins.volumezone import VolumeZone
from tests.conformance.engine import decoded_pod, load
from tests.conformance.golden_files import Line, Members
from tests.conformance.results import Difference, Results, differences

PluginFactory: TypeAlias = Callable[[], AnyFilter]

VOLUME_PLUGINS: Final[Mapping[str, PluginFactory]] = {
    "NodeVolumeLimits": NodeVolumeLimits,
    "VolumeBinding": VolumeBinding,
    "VolumeRestrictions": VolumeRestrictions,
    "VolumeZone": VolumeZone,
}
"""How each plugin is made; what a case says of the others is left out."""

_PASSING: Final = frozenset({Code.SUCCESS, Code.SKIP})


def run(lines: Iterable[Line], results: Results) -> None:
    """Run every plugin that the cases speak of, and compare the nodes that pass all of them."""
    for line in lines:
        case, place = line.content, f"{line.content['name']} ({line.place})"
        expected: Mapping[str, Members] = case["expected"]["plugins"]
        loaded = cache(partial(_mirror, case))  # once for all plugins
        answers: list[Members] = []
        for name, members in expected.items():
            if name in VOLUME_PLUGINS:
                answers.append(_answer(VOLUME_PLUGINS[name], case, loaded))
                results.add(name, place, _differences(members, answers[-1]))
            else:
                results.left_out[f"{name} (no runner)"] += 1
        if len(answers) == len(expected):
            feasible = {"feasible": case["expected"]["feasible"]}
            results.add("all volume plugins", place, differences(feasible, _passing_all(case, answers)))


def _answer(make: PluginFactory, case: Members, loaded: Callable[[], ClusterMirror]) -> Members:
    """Run PreFilter and Filter over all nodes."""
    try:
        plugin, mirror, names = make(), loaded(), _names(case)
        batch = mirror.batch(names)
        status, state = plugin.pre_filter(mirror, decoded_pod(case["pod"]))
        verdicts = everywhere(status, batch) if state is None else plugin.filter(state, batch)
    except Exception as error:  # noqa: BLE001 - whatever the engine raises is its answer to this case, a wrong one
        return {"raised": error}
    statuses = [] if verdicts is None else [verdicts.status(position) for position in range(len(names))]
    return {
        "prefilter": "Success" if status.code in _PASSING else status.code.label,
        "prefilter_reasons": list(status.reasons),
        "filter_failed": {
            name: {"code": each.code.label, "reasons": list(each.reasons)}
            for name, each in zip(names, statuses, strict=False)
            if each.code is not Code.SUCCESS
        },
    }


def _mirror(case: Members) -> ClusterMirror:
    mirror = load(case["namespaces"], case["nodes"], case["pods"])
    loaded = (Namespace, Node, Pod)
    for member, kind in ((member, kind) for member, kind in CASE_MEMBERS.items() if kind not in loaded):
        for v1_object in case.get(member, ()):
            mirror.apply(ClusterEvent("Add", RESOURCES[kind].decode(json.dumps(v1_object).encode())))
    return mirror


def _differences(members: Members, answer: Members) -> list[Difference]:
    expected = {
        # Skip and Success are the same to the nodes, and which of them it is depends on what PreFilter looks at.
        "prefilter": "Success" if members["prefilter"] == "Skip" else members["prefilter"],
        "prefilter_reasons": members.get("prefilter_reasons", []),
        "filter_failed": members.get("filter_failed", {}),
    }
    return differences(expected, answer)


def _passing_all(case: Members, answers: Iterable[Members]) -> Members:
    failed = {name for answer in answers for name in answer.get("filter_failed", ())}
    return {"feasible": [name for name in _names(case) if name not in failed]}


def _names(case: Members) -> list[str]:
    return [node["metadata"]["name"] for node in case["nodes"]]
