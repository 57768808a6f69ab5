"""What VolumeBinding adds to explanations: claims bound elsewhere, and what keeps others from a volume."""

from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import Final

import numpy as np

from core.events import Kind
from core.explaining.bound_claims import Judge, Reach, elsewhere_in_cluster, elsewhere_on_node
from core.explaining.decision import Decision
from core.explaining.explained import Event, Explained, Measured
from core.explaining.node_labels import selector_text
from core.framework.claims import find_claim, makes_volume, named_claims
from core.framework.node_matcher import keys_of_terms
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import BoolArray
from core.objects.csi_migration import TranslationError
from core.objects.labels import Operator
from core.objects.pod import Pod
from core.objects.volumes import CSIDriver, PersistentVolume
from core.plugins.volumebinding.claim_facts import claims_without_volume
from core.plugins.volumebinding.filtering import NAME, BindingState, BoundVolume, node_views
from core.plugins.volumezone import volume_topologies

_MAX_LABELLED: Final = 9
"""How many claims are read for the labels of a new node."""


def _judge(decision: Decision) -> Judge:
    return partial(_reach, decision.state_of(NAME))


def _reach(state: BindingState | None, volume: PersistentVolume, batch: NodeBatch) -> Reach | None:
    """Return the reach of a volume by its node affinity."""
    if state is None or volume.node_affinity is None:
        return None
    keys = keys_of_terms(volume.node_affinity.terms)
    return Reach(selector_text(volume.node_affinity), keys, _out_of_reach(state, volume, batch))


def _out_of_reach(state: BindingState, volume: PersistentVolume, batch: NodeBatch) -> BoolArray:
    bound = BoundVolume(volume)
    places, views = node_views(state.mirror, state.volumes, batch)
    rejected = []
    for view in views:
        try:
            rejected.append(not bound.reached_from(view))
        except TranslationError:
            rejected.append(True)
    found: BoolArray = np.array(rejected, np.bool_)[places]
    return found


class ExplainedBinding(Explained):
    """What the plugin adds to explanations."""

    keeps_off = "a volume"
    events = (
        Event("StorageClass", ("Add", "Update")),
        Event("PersistentVolumeClaim", ("Add", "Update")),
        Event("PersistentVolume", ("Add", "Update")),
        Event("Node", ("Add", "UpdateNodeLabel")),
        Event("CSINode", ("Add", "Update")),
        Event("CSIDriver", ("Update",)),
        Event("CSIStorageCapacity", ("Add", "Update")),
    )
    measured = Measured(
        on_node={"bound_elsewhere": lambda decision, at, _: elsewhere_on_node(decision, at, NAME, _judge(decision))},
        in_cluster={
            "bound_elsewhere": lambda decision, _: elsewhere_in_cluster(decision, NAME, _judge(decision)),
            "claims": lambda decision, _: claims_without_volume(decision),
        },
    )

    def reads_in_part(self, mirror: ClusterMirror, pod: Pod) -> Mapping[Kind, str]:
        """Return the drivers, without which it is unknown whether there is capacity for a new volume."""
        return {CSIDriver: "capacity for new volumes"} if makes_volume(mirror, pod) else {}

    def labels_needed(self, decision: Decision) -> Mapping[str, str]:
        """Return the labels that a node needs to reach the volumes of the pod's bound claims, if they name values.

        For a volume with several terms, these are the labels of the first term.
        """
        found: dict[str, str] = {}
        volumes = decision.mirror.objects(PersistentVolume)
        for named in islice(named_claims(decision.pod), _MAX_LABELLED):
            claim = find_claim(decision.mirror, decision.pod, named)
            volume = None if claim is None else volumes.get(claim.volume)
            if volume is None:
                continue
            terms = () if volume.node_affinity is None else volume.node_affinity.terms[:1]
            for requirement in (each for term in terms for each in term.requirements):
                if requirement.operator is Operator.IN and requirement.values:
                    found.setdefault(requirement.key, requirement.values[0])
            for key, values in volume_topologies(volume):
                found.setdefault(key, min(values))
        return found
