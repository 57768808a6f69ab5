"""The results of InterPodAffinity for a pod over some nodes, in the shape of the golden data."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from core.framework.evaluation import everywhere
from core.framework.status import SUCCESS, Code
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from core.plugins.interpodaffinity.plugin import InterPodAffinity

_NOT_RUN: Final = "NotRun"  # PreFilter failed, so there was nothing to score
_NO_NODES: Final = "NoNodes"  # no node passed the filter
_RUNNING: Final = frozenset({Code.SUCCESS, Code.SKIP})


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The verdict of the filter on a node."""

    code: str
    reasons: tuple[str, ...] = ()


class Scores(msgspec.Struct, frozen=True, gc=False):
    """The code of PreScore, and node -> score before and after NormalizeScore."""

    prescore: str
    raw: Mapping[str, int] = {}
    normalized: Mapping[str, int] = {}


class Expected(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The part of a golden case's `expected` that is about InterPodAffinity."""

    prefilter: str
    prefilter_skip: bool
    filter: Mapping[str, Verdict]
    prescore_all: str
    raw_scores_all: Mapping[str, int]
    normalized_all: Mapping[str, int]
    prescore_feasible: str
    raw_scores_feasible: Mapping[str, int]
    normalized_feasible: Mapping[str, int]
    prefilter_reasons: tuple[str, ...] = ()


def expected_answer(plugin: InterPodAffinity, mirror: ClusterMirror, pod: Pod, nodes: Sequence[str]) -> Expected:
    """Run only this plugin, for nodes of the mirror in or out of the partition."""
    batch = mirror.batch(nodes)
    status, state = plugin.pre_filter(mirror, pod)
    verdicts = everywhere(status, batch) if state is None else plugin.filter(state, batch)
    statuses = (SUCCESS,) if verdicts is None else verdicts.statuses
    codes = [0] * len(nodes) if verdicts is None else verdicts.codes.tolist()
    told = [Verdict(each.code.label, each.reasons) for each in statuses]  # by code: nodes share few
    if status.code in _RUNNING:
        over_all = _scores(plugin, mirror, pod, nodes)
        feasible = [name for name, code in zip(nodes, codes, strict=True) if not code]
        over_feasible = _scores(plugin, mirror, pod, feasible)
    else:
        over_all, over_feasible = Scores(_NOT_RUN), Scores(_NO_NODES)
    return Expected(
        prefilter=status.code.label,
        prefilter_reasons=status.reasons,
        prefilter_skip=status.code is Code.SKIP,
        filter={name: told[code] for name, code in zip(nodes, codes, strict=True)},
        prescore_all=over_all.prescore,
        raw_scores_all=over_all.raw,
        normalized_all=over_all.normalized,
        prescore_feasible=over_feasible.prescore,
        raw_scores_feasible=over_feasible.raw,
        normalized_feasible=over_feasible.normalized,
    )


def _scores(plugin: InterPodAffinity, mirror: ClusterMirror, pod: Pod, nodes: Sequence[str]) -> Scores:
    if not nodes:
        return Scores(_NO_NODES)
    batch = mirror.batch(nodes)
    status, state = plugin.pre_score(mirror, pod, batch)
    if state is None:
        return Scores(status.code.label)
    raw = plugin.score(state, batch)
    scores = (raw.tolist(), plugin.normalize(raw).tolist())
    return Scores(status.code.label, *(dict(zip(nodes, each, strict=True)) for each in scores))
