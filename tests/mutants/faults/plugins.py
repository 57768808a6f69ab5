"""Faults of the plugins: slightly wrong rules of upstream."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
    Fault(
        id="hostnames-weigh-as-for-other-nodes",
        breaks="Where nodes come to fit or cease to, spread by hostname counts as much as for the last decision.",
        old="        if trait is not self._of_nodes[0] or size != self._of_nodes[1]:\n",
        new="        if trait is not self._of_nodes[0]:\n",
        tests=("core/equivalence/test_counted_rankings.py",),
    ),
    Fault(
        id="hostnames-are-worth-what-other-groups-were",
        breaks="A group of nodes that is new has no score, or that of another one.",
        old="        if trait is not self._of_nodes[0] or size != self._of_nodes[1]:\n",
        new="        if size != self._of_nodes[1]:\n",
        tests=("core/equivalence/test_counted_rankings.py",),
    ),
    Fault(
        id="spread-scores-nodes-with-pods-by-zone-alone",
        breaks="A node with pods of the app scores like its neighbours without any.",
        old="                trait = self._counter(each.constraint).on(slot)\n",
        new="                pass\n",
        tests=("test_counted_rankings.py", "test_choices.py"),
    ),
    Fault(
        id="first-pod-goes-to-nodes-without-the-key",
        breaks="The first of the pods that want each other may go to a node without the topology key.",
        old="                attracted &= value_ids != ABSENT\n",
        new="                continue\n",
        tests=("test_conformance.py",),
    ),
    Fault(
        id="affinity-scores-rounded-otherwise",
        breaks="Scores of InterPodAffinity are one off where the float64 of upstream lies below a whole number.",
        old="(float(MAX_NODE_SCORE) * ((scores - lowest) / float(highest - lowest)))",
        new="((float(MAX_NODE_SCORE) * (scores - lowest)) / float(highest - lowest))",
        tests=("test_conformance.py",),
    ),
    Fault(
        id="repelling-preference-of-others-attracts",
        breaks="Preferred anti-affinity of existing pods draws the pods that it selects.",
        old="*(OwnerTerm(Role.PREFERRED, each.term, -each.weight) for each in affinity.preferred_anti_affinity),",
        new="*(OwnerTerm(Role.PREFERRED, each.term, each.weight) for each in affinity.preferred_anti_affinity),",
        tests=("test_conformance.py",),
    ),
    Fault(
        id="no-execute-lets-pods-on",
        breaks="A taint with the effect NoExecute keeps no pod off a node.",
        old='KEEP_PODS_OFF: Final = frozenset({"NoSchedule", "NoExecute"})',
        new='KEEP_PODS_OFF: Final = frozenset({"NoSchedule"})',
        tests=("test_conformance.py",),
    ),
    Fault(
        id="empty-key-tolerates-no-effect",
        breaks="A toleration without a key tolerates only taints whose effect it names.",
        old='            for effect in (taint.effect, ""):\n',
        new='            for effect in (taint.effect, "") if key else (taint.effect,):\n',
    ),
    Fault(
        id="port-on-all-addresses-not-seen",
        breaks="A port on one address is let beside the same port on all addresses.",
        old="for ip in (ALL_ADDRESSES, *ips))",
        new="for ip in ips)",
    ),
    Fault(
        id="port-free-when-the-first-user-goes",
        breaks="A host port that two pods of a node have is free when one of them is gone.",
        old="        slots[slot] -= 1\n        if not slots[slot]:\n            del slots[slot]\n        if not slots:",
        new="        del slots[slot]\n        if not slots:",
        tests=("test_every_plugin.py",),
    ),
    Fault(
        id="one-pod-too-many",
        breaks="A node takes one pod more than it allows.",
        old="too_many = columns.requested.at(PODS, batch) >= columns.allocatable_of(PODS, batch, offered)",
        new="too_many = columns.requested.at(PODS, batch) > columns.allocatable_of(PODS, batch, offered)",
        tests=("noderesources/test_fit.py", "test_conformance.py"),
    ),
    Fault(
        id="exact-fit-unresolvable",
        breaks="Preemption is not tried on a node that the pod would need all of.",
        old="never = short & (allocatable < amount)",
        new="never = short & (allocatable <= amount)",
        tests=("test_conformance.py",),
    ),
    Fault(
        id="scored-requests-not-followed",
        breaks="A pod whose requests change for scoring alone is scored by those before.",
        old=" or before.demand.non_zero_requests != after.demand.non_zero_requests",
        new="",
        tests=("plugins/test_invalidation.py",),
    ),
    Fault(
        id="score-of-zero-lowers-the-mean",
        breaks="A resource with the score 0 has its weight in RequestedToCapacityRatio.",
        old="weight = (each.offered & (score > 0)) * np.int64(each.weight)",
        new="weight = (each.offered & (score >= 0)) * np.int64(each.weight)",
    ),
    Fault(
        id="sidecars-not-held-by-init-containers",
        breaks="What an init container needs is not added to the sidecars that were started before it.",
        old="limited = {name: amount + sidecars.get(name, 0) for name, amount in requests.items()}",
        new="limited = {name: amount for name, amount in requests.items()}",
    ),
    Fault(
        id="skew-of-one-less-allowed",
        breaks="A node is refused whose domain has exactly the skew that is allowed.",
        old="codes = np.where(skews > constraint.max_skew,",
        new="codes = np.where(skews >= constraint.max_skew,",
        tests=("test_conformance.py",),
    ),
    Fault(
        id="spreading-pod-counts-itself-always",
        breaks="A pod counts for its own constraint though its selector does not select the pod.",
        old="skews = numbers + int(constraint.selector.matches(self._pod.labels)) - fewest",
        new="skews = numbers + 1 - fewest",
        tests=("test_conformance.py",),
    ),
    Fault(
        id="min-domains-one-too-many",
        breaks="With exactly minDomains domains, the fewest pods of any domain are taken for 0.",
        old="if len(domains.ids) < constraint.min_domains:",
        new="if len(domains.ids) <= constraint.min_domains:",
        tests=("test_conformance.py",),
    ),
    Fault(
        id="taint-policy-of-another-constraint",
        breaks="Two constraints of a pod that differ in nodeTaintsPolicy count the same nodes.",
        old="constraint.node_affinity_policy == HONOR, constraint.node_taints_policy == HONOR\n        counted =",
        new="constraint.node_affinity_policy == HONOR, True\n        counted =",
        tests=("tests/core/plugins/podtopologyspread",),
    ),
    Fault(
        id="half-rounded-down",
        breaks="A topology spread score of a half is rounded down.",
        old="(amounts - whole >= _HALF)",
        new="(amounts - whole > _HALF)",
        tests=("podtopologyspread/test_plugin.py",),
    ),
    Fault(
        id="node-without-hostname-scores-beside-unknown-hostname",
        breaks="A node without a hostname scores for a constraint by hostname, beside a node with an unknown hostname.",
        old="if ids.min(initial=0) < 0:",
        new="if ids.min(initial=0) == ABSENT:",
        tests=("podtopologyspread/test_plugin.py",),
    ),
    Fault(
        id="possible-scores-counted-from-zero",
        breaks="Where each possible score is mapped once, a node gets the result of another score if none is 0.",
        old="scale(np.arange(lowest, highest + 1)).take(raw - lowest)",
        new='scale(np.arange(lowest, highest + 1)).take(raw, mode="wrap")',
        tests=("framework/test_interface.py",),
    ),
    Fault(
        id="pod-affinity-before-enforced-affinity",
        breaks="A node that fails both kinds of node affinity is given the reason of the pod's own.",
        old=(
            "        codes[~matcher.required(state.affinity)] = STATUSES.index(POD_AFFINITY)\n"
            "        codes[~matcher.required(state.added)] = STATUSES.index(ENFORCED_AFFINITY)\n"
        ),
        new=(
            "        codes[~matcher.required(state.added)] = STATUSES.index(ENFORCED_AFFINITY)\n"
            "        codes[~matcher.required(state.affinity)] = STATUSES.index(POD_AFFINITY)\n"
        ),
        tests=("test_nodeaffinity.py",),
    ),
    Fault(
        id="quantity-rounded-down",
        breaks="An amount between two units is taken for the lower one.",
        old="magnitude = -(-abs(amount) // divisor)",
        new="magnitude = abs(amount) // divisor",
    ),
    Fault(
        id="overflow-counted-as-the-largest",
        breaks="A request of 50E counts as the largest amount, where kube-scheduler counts 0.",
        old="thousands in _UNCHECKED else 0",
        new="thousands in _UNCHECKED else MAX_INT64",
    ),
    Fault(
        id="reading-disks-conflict",
        breaks="Two pods of a node that only read the same disk are kept apart.",
        old="                if not disk.read_only:\n                    slots.update(",
        new="                if True:\n                    slots.update(",
    ),
    Fault(
        id="waiting-volume-zone-not-an-event",
        breaks="A claim that gets its volume keeps the verdicts of VolumeZone from when it had none.",
        old='lambda claim: (claim.volume, "" if claim.volume else claim.storage_class)',
        new='lambda claim: ("", "" if claim.volume else claim.storage_class)',
        tests=("plugins/test_invalidation.py",),
    ),
    Fault(
        id="images-of-no-container-are-limited-first",
        breaks="A pod without containers prefers every node, whatever images it has.",
        old="np.where(sums < MIN_THRESHOLD, MIN_THRESHOLD, np.minimum(sums, highest))",
        new="np.clip(sums, MIN_THRESHOLD, highest)",
    ),
    Fault(
        id="spread-of-minus-1-is-a-score",
        breaks="With a maxSkew of 0, a domain without pods has the best score. Upstream takes it for ignored.",
        old="        found[raw == -1] = 0\n",
        new="        pass\n",
        tests=("podtopologyspread/test_plugin.py",),
    ),
    Fault(
        id="image-spread-of-one-node-less",
        breaks="An image counts for less than it is spread over the nodes.",
        old="                spread = states.holders[name] / states.total\n",
        new="                spread = (states.holders[name] - 1) / states.total\n",
    ),
    Fault(
        id="resource-left-to-devices-of-nobody",
        breaks="A pod gets a node without its amount in a scheduler that allocates no device.",
        old="if rule is DeviceClassResources.CHECKED or not schedulers.have(pod.scheduler_name):",
        new="if rule is DeviceClassResources.CHECKED:",
        tests=("noderesources/test_columns.py", "test_devices.py"),
    ),
    Fault(
        id="one-class-for-pods-with-and-without-devices",
        breaks="A pod whose scheduler allocates no device is served with the cached nodes of one that does.",
        old='            self.class_fields += ("scheduler_name",)\n',
        new="            pass\n",
        tests=("noderesources/test_columns.py", "test_class_fields.py"),
    ),
    Fault(
        id="gang-not-bounded-by-a-resource-with-a-device-class",
        breaks="The room of a node for a gang ignores the amount of a resource that nobody allocates by devices.",
        old="return capacity_for(mirror, pods, self._ignored, batch, self.device_schedulers)",
        new="return capacity_for(mirror, pods, self._ignored, batch)",
        tests=("noderesources/test_columns.py",),
    ),
)
