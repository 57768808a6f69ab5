"""Faults of explanations: an explanation that differs from the decision."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
    Fault(
        id="last-failing-plugin-blamed",
        breaks="A node is told to have failed by the last predicate that fails there, not the first.",
        old="deciding[(verdicts.codes > 0) & (deciding == 0)] = place",
        new="deciding[verdicts.codes > 0] = place",
        tests=("diagnosis/test_summary.py", "diagnosis/test_golden_cases.py"),
    ),
    Fault(
        id="repelling-term-told-to-attract",
        breaks="The weight of a preferred anti-affinity term is told without its sign.",
        old="avoided = [(each.term, -each.weight) for each in affinity.preferred_anti_affinity]",
        new="avoided = [(each.term, each.weight) for each in affinity.preferred_anti_affinity]",
        tests=("diagnosis/test_summary.py", "diagnosis/test_golden_cases.py"),
    ),
    Fault(
        id="affecting-terms-told-last",
        breaks="Of very many terms, those that do not affect the node are told.",
        old="key=lambda each: each[3] is Effect.NONE)",
        new="key=lambda each: each[3] is not Effect.NONE)",
        tests=("diagnosis/test_summary.py", "diagnosis/test_golden_cases.py"),
    ),
    Fault(
        id="ties-among-domains-lost",
        breaks="Of many domains with equally many pods, fewer are shown than the limit.",
        old="np.flatnonzero(numbers == least)[: limit - len(above)]",
        new="np.flatnonzero(numbers == least)[: limit - len(above) - 1]",
        tests=("diagnosis/test_summary.py", "diagnosis/test_golden_cases.py"),
    ),
    Fault(
        id="explanation-charged-for-its-terms",
        breaks="A pod that is just within its work is refused an explanation.",
        old="    with mirror.work.uncharged():  # the decision was",
        new="    if mirror is not None:  # the decision was",
        tests=("test_summary.py", "test_work_limit.py"),
    ),
    Fault(
        id="unlabelled-nodes-counted-as-a-domain",
        breaks="Nodes that lack the label count as one more domain with room.",
        old="domains_with_fit=int(np.count_nonzero(fitting[1:])),",
        new="domains_with_fit=int(np.count_nonzero(fitting)),",
        tests=("diagnosis/test_summary.py", "diagnosis/test_golden_cases.py"),
    ),
    Fault(
        id="request-lowered-below-what-is-free",
        breaks="A request is proposed to be lowered by more than it takes.",
        old="    to = max(free, 0)\n",
        new="    to = max(free - 1, 0)\n",
        tests=("remedies/test_what_would_help.py",),
    ),
    Fault(
        id="unwell-nodes-proposed-first",
        breaks="To tolerate that a node is not ready is told before other taints.",
        old="            found += _OF_UNWELL_NODE\n",
        new="            found += 0\n",
        tests=("remedies/test_what_would_help.py",),
    ),
    Fault(
        id="more-steps-than-it-takes",
        breaks="A combined remedy keeps steps that nothing depends on.",
        old="        elsewhere = trials.fitting(fewer) if fewer else None\n",
        new="        elsewhere = None\n",
        tests=("remedies/test_what_would_help.py", "properties/test_remedies.py"),
    ),
    Fault(
        id="remedies-not-tried-out",
        breaks="What would help is told without asking the plugins.",
        old="        if trials.fitting(each.steps, each.node) is None:\n            failures += 1\n",
        new="        if trials is None:\n            failures += 1\n",
        tests=("remedies/test_what_would_help.py", "properties/test_remedies.py"),
    ),
    Fault(
        id="nominated-pods-leave-room",
        breaks="A request is lowered to what is free without the pods that are nominated for the node.",
        old="                free[place] -= self._nominated[int(positions[place])].get(each.resource, 0)\n",
        new="                free[place] -= 0\n",
        tests=("remedies/test_what_would_help.py",),
    ),
    Fault(
        id="counted-disruption-forbids-eviction",
        breaks="A budget that has counted the pod's disruption already is said to forbid it.",
        old="each.disruptions_allowed <= 0 and pod.name not in each.disrupted_pods)",
        new="each.disruptions_allowed <= 0)",
        tests=("remedies/test_cluster_proposals.py",),
    ),
    Fault(
        id="supposed-state-moves-pods-that-are-gone",
        breaks="Pods that are supposed to be gone count again once their node is supposed in another state.",
        old="            rows = np.flatnonzero(self.pods.slot_of_row == info.slot).tolist()\n",
        new="            rows = sorted(info.rows)\n",
        tests=("core/mirror/test_what_if.py",),
    ),
    Fault(
        id="device-said-to-fit",
        breaks="A node that only a device could make right is said to fit.",
        old="self.not_judged: Final = [*self._not_judged(not_judged), *self._devices_not_judged()]",
        new="self.not_judged: Final = self._not_judged(not_judged)",
        tests=("test_not_judged.py", "test_explain.py"),
    ),
    Fault(
        id="node-said-to-fit-though-not-all-was-judged",
        breaks="A node in detail is said to fit though a rule was not judged.",
        old='passes = "fits" if all_judged else "passes the judged rules"',
        new='passes = "fits"',
        tests=("test_explain.py",),
    ),
)
