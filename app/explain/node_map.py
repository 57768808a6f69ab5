"""A decision as columns with one entry per node: the data for a picture of the whole cluster."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain, islice
from typing import Final

import msgspec
import numpy as np

from app.explain.explain_request import UnknownError
from core.diagnosis.diagnosis import NO_PLUGIN, Diagnosis
from core.diagnosis.explained_profile import Judge
from core.diagnosis.not_judged import NotJudged
from core.explaining.node_labels import domains_of
from core.framework.interface import Code
from core.mirror.cluster import ClusterMirror
from core.objects.node import ZONE

_LOOKED_AT: Final = 256
"""Nodes that are searched for a rack label. If racks have a label, all nodes have it."""


class NodeClass(msgspec.Struct, frozen=True):
    """A group of nodes with the same result. The first group has the nodes that fit."""

    reason: str
    """The reason in the response of `filter`. Empty for nodes that fit."""
    plugin: str
    """The first plugin that rejected the nodes. Empty if none did."""
    code: str
    nodes: int
    judged_by: Judge


class NodeMap(msgspec.Struct, frozen=True):
    """All nodes of the request. Numbers are indexes in the lists of names."""

    pod: str
    """NAMESPACE/NAME"""
    generation: int
    zone_key: str
    rack_key: str
    """The label of racks. Empty if there is none."""
    names: Sequence[str]
    zones: Sequence[str]
    """The first zone is empty, for nodes without this label."""
    zone: Sequence[int]
    racks: Sequence[str]
    """The first rack is empty, for nodes without this label."""
    rack: Sequence[int]
    reasons: Sequence[NodeClass]
    not_judged: Sequence[NotJudged]
    """Rules that were not judged, and may still reject nodes that fit."""
    verdict: Sequence[int]
    score: Sequence[int | None]
    """None for a node that is not scored."""


def node_map(decision: Diagnosis, rack_key: str | None = None) -> NodeMap:
    """Return the map of a decision. Racks are by `rack_key`, or by a guessed label. Raises UnknownError for a label."""
    if rack_key is None:
        rack_key = guessed_rack_key(decision.mirror)
    elif not _is_label(decision, rack_key):  # columns are kept for few labels, and a typo must not replace one
        raise UnknownError("rack", f"no node has the label {rack_key}")
    zones, zone = domains_of(decision, ZONE)
    racks, rack = domains_of(decision, rack_key)
    reasons, verdict = _classes(decision)
    score: list[int | None] = [None] * len(decision.batch)
    for position, points in zip(decision.scored.tolist(), decision.scores.tolist(), strict=True):
        score[position] = points
    return NodeMap(
        pod=decision.pod.full_name,
        generation=decision.generation,
        zone_key=ZONE,
        rack_key=rack_key,
        names=decision.batch.names,
        zones=zones,
        zone=zone.tolist(),
        racks=racks,
        rack=rack.tolist(),
        reasons=reasons,
        not_judged=decision.not_judged,
        verdict=verdict,
        score=score,
    )


def guessed_rack_key(mirror: ClusterMirror) -> str:
    """Return the most frequent node label with the name `rack` and any prefix. Empty if there is none.

    Kubernetes defines no such label, and clusters use different prefixes.
    """
    found: Counter[str] = Counter()
    for _, node in islice(mirror.nodes, _LOOKED_AT):
        found.update(key for key in node.labels if key.rpartition("/")[2] == "rack")
    return found.most_common(1)[0][0] if found else ""


def _is_label(decision: Diagnosis, key: str) -> bool:
    nodes = chain((node for _, node in decision.mirror.nodes), decision.batch.unmirrored.values())
    return any(node is not None and key in node.labels for node in nodes)


def _classes(decision: Diagnosis) -> tuple[list[NodeClass], list[int]]:
    """Return the groups of nodes, and for each node the index of its group."""
    groups, places = decision.groups()
    classes = [NodeClass("", "", "Success", len(decision.fitting), decision.judge_of(NO_PLUGIN))]
    numbers = []
    for status, plugin, count in groups:
        if status.code is Code.SUCCESS:
            numbers.append(0)
            continue
        reason = ", ".join(status.reasons) or status.code.label
        numbers.append(len(classes))
        classes.append(NodeClass(reason, plugin, status.code.label, count, decision.judge_of(plugin)))
    return classes, np.array(numbers, np.int64)[places].tolist()
