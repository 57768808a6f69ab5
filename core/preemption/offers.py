"""Candidates as the scheduler offers them, held against our own predicates: who else would have to go.

Source: k8s.io/kubernetes v1.34 pkg/scheduler/framework/preemption/preemption.go (callExtenders).
"""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from core.framework.fit_checks import Failure
from core.framework.interface import AnyFilter
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from core.preemption.candidates import candidates_wanted
from core.preemption.eligibility import NEVER
from core.preemption.victims import DryRun


class Offer(msgspec.Struct, frozen=True, gc=False):
    """The uids of the victims on a node, and how many of them violate a PodDisruptionBudget."""

    uids: tuple[str, ...] = ()
    pdb_violations: int = 0


def accepted(
    mirror: ClusterMirror, filters: Sequence[AnyFilter], pod: Pod, offers: Mapping[str, Offer], more: Sequence[str] = ()
) -> dict[str, Offer]:
    """Return the nodes where preemption helps, each with all its victims: the offers in their order, then the others.

    The scheduler's offer is enough for its own predicates, which may differ from Kindred's: its victims stay victims,
    also those that are not in the mirror (yet). Where the pod then fits, the offer is taken as it is; else further
    victims are looked for. A node is dropped if no victims help, if none are needed (the scheduler rejects an empty
    list), if it is not in the mirror, or if it is another scheduler's.

    `more` are nodes that the scheduler does not offer: only Kindred's predicates reject them, and its dry run finds no
    pod in the way. They are looked at in their order, until there are as many candidates as the scheduler wants to
    choose from, and no more of them than that: at 5,000 nodes it is 500.
    """
    if pod.preemption_policy == NEVER:
        return {}
    offered = _of_this_scheduler(mirror, [name for name in offers if name in mirror.nodes.slots])
    others = _of_this_scheduler(mirror, [name for name in more if name in mirror.nodes.slots and name not in offers])
    wanted = candidates_wanted(len(offered) + len(others))
    names = [*offered, *others[:wanted]]
    run = DryRun(mirror, filters, pod, names)
    found: dict[str, Offer] = {}
    for position, name in enumerate(names):
        if position >= len(offered) and len(found) >= wanted:
            break
        completed = _completed(run, position, offers.get(name, Offer()))
        if completed is not None:
            found[name] = completed
    return found


def _of_this_scheduler(mirror: ClusterMirror, names: Sequence[str]) -> Sequence[str]:
    outside = mirror.batch(names).out_of_partition
    return names if outside is None else [names[position] for position in np.flatnonzero(~outside).tolist()]


def _completed(run: DryRun, position: int, offer: Offer) -> Offer | None:
    if run.fits_without(position, offer.uids):
        return offer if offer.uids else None
    found = run.find(position, doomed=offer.uids)
    if isinstance(found, Failure):
        return None
    uids = [pod.uid for pod in found.pods]
    unknown = [uid for uid in offer.uids if uid not in uids]
    # The scheduler has counted budgets that may not be mirrored here.
    return Offer((*uids, *unknown), max(found.pdb_violations, offer.pdb_violations))
