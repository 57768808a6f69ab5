"""The scores of devices in a choice among nodes, for pods whose devices kube-scheduler allocates.

kube-scheduler does not score the one node of a decision, so its DynamicResources prefers no node there. Its filter has
passed all nodes of the request, also for devices in flight. So this module judges none: it adds the plugin's score to
the scores of the profile, and devices to those by resources. The devices of an assumed pod are allocated in the API
server just before the pod is bound. Until then the score may count them as free. kube-scheduler then takes a later
alternative on that node.

`prioritize` does not use it, because kube-scheduler adds the score of its own plugin there.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from core.events import Kind, Missing
from core.framework.evaluation import Evaluation
from core.framework.interface import AnyFilter, AnyScore, DeviceAmounts, Verdicts
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array, IntpArray
from core.objects.pod import Pod
from core.plugins import DEVICE_TOTALS, DEVICES
from core.plugins.in_tree import DeviceSchedulers
from core.profile import Profile, with_device_score

Score: TypeAlias = Callable[[Evaluation, NodeBatch], Int64Array | None]
"""Returns the raw score of each node of a batch, or None if none counts."""


class DeviceRanking:
    """Adds the score of devices where it can be known and may differ by node. It costs other pods nothing."""

    def __init__(
        self, profile: Profile, schedulers: DeviceSchedulers, missing: Callable[[], Mapping[Kind, Missing]]
    ) -> None:
        """`schedulers` have the plugin of devices. `missing` returns the kinds of objects that the mirror lacks."""
        self._devices = DEVICES()
        self._counting = [plugin for plugin, _ in profile.scores if plugin.may_count_devices]
        self._profile = profile
        self._with_devices = with_device_score(profile, self._devices)
        self._schedulers = schedulers
        self._missing = missing

    def of(self, evaluation: Evaluation) -> tuple[Profile, Evaluation]:
        """Return the profile and the evaluation to choose a node for a pod with. The filters are always the same."""
        pod = evaluation.pod
        if not pod.resource_claims and not (self._counting and pod.demand.extended_requests):
            return self._profile, evaluation
        if not self._are_known(evaluation.mirror, pod):
            return self._profile, evaluation
        amounts = DEVICE_TOTALS(evaluation.mirror)
        scores: dict[AnyScore, Score] = {
            plugin: partial(_count, plugin, amounts) for plugin in self._counting if plugin.counts_devices(amounts, pod)
        }
        profile = self._profile
        if self._devices.prefers_nodes(evaluation.mirror, pod):
            profile, scores[self._devices] = self._with_devices, self._score
        return profile, _WithDevices(evaluation, scores) if scores else evaluation

    def _are_known(self, mirror: ClusterMirror, pod: Pod) -> bool:
        devices = self._devices
        if not self._schedulers.have(pod.scheduler_name) or devices.unsupported(mirror.rules):
            return False
        missing = [kind for kind in self._missing() if kind in devices.kinds]
        return not devices.reads_to_score(mirror, pod, missing)

    def _score(self, evaluation: Evaluation, batch: NodeBatch) -> Int64Array | None:
        """Return no score if it is not known for some node: in comparison, that node or all others would lose."""
        _, state = self._devices.pre_score(evaluation.mirror, evaluation.pod, batch)
        if state is None:
            return None
        found = self._devices.score(state, batch)
        return None if self._devices.undecided(state) else found


def _count(plugin: AnyScore, amounts: DeviceAmounts, evaluation: Evaluation, batch: NodeBatch) -> Int64Array | None:
    """Return the score by resources that counts devices."""
    _, state = plugin.pre_score(evaluation.mirror, evaluation.pod, batch)
    return None if state is None else plugin.score(plugin.with_devices(state, amounts), batch)


class _WithDevices:
    """An evaluation in which some scores are those of devices, afresh. The plugin of devices keeps what it searched."""

    def __init__(self, evaluation: Evaluation, scores: Mapping[AnyScore, Score]) -> None:
        self.mirror: Final = evaluation.mirror
        self.pod: Final = evaluation.pod
        self._evaluation = evaluation
        self._scores = scores

    @property
    def source(self) -> str:
        return self._evaluation.source

    def verdicts(self, plugin: AnyFilter, batch: NodeBatch) -> Verdicts | None:
        return self._evaluation.verdicts(plugin, batch)

    def filtered(self, filters: Sequence[AnyFilter], batch: NodeBatch) -> Verdicts:
        return self._evaluation.filtered(filters, batch)

    def raw_scores(self, plugin: AnyScore, batch: NodeBatch) -> Int64Array | None:
        score = self._scores.get(plugin)
        return self._evaluation.raw_scores(plugin, batch) if score is None else score(self._evaluation, batch)

    def best(
        self, _filters: Sequence[AnyFilter], _scores: Sequence[tuple[AnyScore, int]], _batch: NodeBatch
    ) -> IntpArray | None:
        """Return None: a ranking has no scores of devices."""
        return None
