"""A decision as columns, one entry a node: as much as a picture of the whole cluster takes, and no more."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain, islice
from typing import Final

import msgspec
import numpy as np

from app.explain.explain_error import UnknownError
from core.diagnosis.diagnosis import NO_PLUGIN, Diagnosis
from core.diagnosis.explained_profile import Judge
from core.diagnosis.not_judged import NotJudged
from core.diagnosis.summary import ZONE, domains_of
from core.mirror.cluster import ClusterMirror

_LOOKED_AT: Final = 256
"""Nodes that are searched for a rack label; an operator who labels racks labels them all."""


class NodeClass(msgspec.Struct, frozen=True):
    """The groups of nodes; the first one has the nodes that fit."""

    reason: str
    """As `filter` answers it; empty for those that fit."""
    plugin: str
    """The one that failed them first; empty where none did."""
    code: str
    nodes: int
    judged_by: Judge


class NodeMap(msgspec.Struct, frozen=True):
    """All nodes of the request; numbers are indexes in the lists of names."""

    pod: str
    """NAMESPACE/NAME"""
    generation: int
    """Of the mirror."""
    zone_key: str
    rack_key: str
    """Empty where no label is one of racks."""
    names: Sequence[str]
    zones: Sequence[str]
    """The first one is empty: of the nodes without this label."""
    zone: Sequence[int]
    racks: Sequence[str]
    """The first one is empty: of the nodes without this label."""
    rack: Sequence[int]
    reasons: Sequence[NodeClass]
    not_judged: Sequence[NotJudged]
    """Rules that may still refuse nodes that fit."""
    verdict: Sequence[int]
    score: Sequence[int | None]
    """None where it is not scored."""


def node_map(decision: Diagnosis, rack_key: str | None = None) -> NodeMap:
    """Draw up a decision; racks by that label, or by the one that looks like it. Raises UnknownError for the label."""
    if rack_key is None:
        rack_key = guessed_rack_key(decision.mirror)
    elif not _is_label(decision, rack_key):  # columns are kept for few labels: typos must not replace them
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
    """Return the label that most nodes have of those whose name is `rack`; empty if there is none.

    Kubernetes has no such label of its own, and every cluster another prefix.
    """
    found: Counter[str] = Counter()
    for _, node in islice(mirror.nodes, _LOOKED_AT):
        found.update(key for key in node.labels if key.rpartition("/")[2] == "rack")
    return found.most_common(1)[0][0] if found else ""


def _is_label(decision: Diagnosis, key: str) -> bool:
    nodes = chain((node for _, node in decision.mirror.nodes), decision.batch.strangers.values())
    return any(node is not None and key in node.labels for node in nodes)


def _classes(decision: Diagnosis) -> tuple[list[NodeClass], list[int]]:
    """Return the kinds of nodes, and the place of each node's."""
    filters = decision.profile.filters
    pairs, places, counts = np.unique(
        decision.verdicts.codes.astype(np.int64) * (len(filters) + 1) + decision.deciding,
        return_inverse=True,
        return_counts=True,
    )
    classes = [NodeClass("", "", "Success", len(decision.fitting), decision.judge_of(NO_PLUGIN))]
    numbers = []
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        code, place = divmod(pair, len(filters) + 1)
        if not code:
            numbers.append(0)
            continue
        status = decision.verdicts.statuses[code]
        reason = ", ".join(status.reasons) or status.code.label
        numbers.append(len(classes))
        plugin = filters[place - 1].name if place else NO_PLUGIN
        classes.append(NodeClass(reason, plugin, status.code.label, count, decision.judge_of(plugin)))
    return classes, np.array(numbers, np.int64)[places].tolist()
