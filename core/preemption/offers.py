"""Checks the scheduler's candidates against Kindred's predicates, and adds the missing victims.

Source: k8s.io/kubernetes v1.34 pkg/scheduler/framework/preemption/preemption.go (callExtenders).
"""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from core.framework.evaluation import Failure
from core.framework.interface import AnyFilter
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from core.preemption.candidates import candidates_wanted
from core.preemption.eligibility import NEVER
from core.preemption.victims import DryRun


class Offer(msgspec.Struct, frozen=True, gc=False):
    """The UIDs of the victims on a node, and how many of them violate a PodDisruptionBudget."""

    uids: tuple[str, ...] = ()
    pdb_violations: int = 0


def accepted(
    mirror: ClusterMirror, filters: Sequence[AnyFilter], pod: Pod, offers: Mapping[str, Offer], more: Sequence[str] = ()
) -> dict[str, Offer]:
    """Return each node where preemption helps, with all its victims: the offered nodes in their order, then `more`.

    The scheduler's victims satisfy its own predicates, which may differ from Kindred's. They stay victims, even if they
    are not in the mirror (yet). If the pod then fits, the offer is accepted unchanged. Else further victims are added.

    A node is dropped if no victims help, or if no victims are needed, because the scheduler rejects an empty list. It
    is also dropped if the mirror does not have it, or if it belongs to another scheduler.

    `more` are nodes that the scheduler does not offer, because only Kindred's predicates reject them. They are tried in
    their order, until there are as many candidates as the scheduler wants: 500 at 5,000 nodes.
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
    # The scheduler may have counted budgets that the mirror does not have.
    return Offer((*uids, *unknown), max(found.pdb_violations, offer.pdb_violations))
