"""Faults of preemption: wrong victims, wrong nodes, and wrong conditions."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
    Fault(
        id="victims-of-the-last-preemption-only",
        breaks="A pod that fits a node after two preemptions there has others evicted.",
        old="going.setdefault(each.node, set()).update(each.victims)",
        new="going[each.node] = {*each.victims}",
        tests=("app/verbs/evicting/test_evictor.py",),
    ),
    Fault(
        id="reserved-victim-deleted",
        breaks="A pod that has only a reserved place is deleted for a more important one.",
        old="plan.node or self._release(victim.uid):",
        new="plan.node:",
        tests=("evicting/test_evicting_decided.py",),
    ),
    Fault(
        id="victims-for-a-pod-with-a-node",
        breaks="A pod that got a node while its preemption was planned has others evicted.",
        old="if self._mirror.is_mirrored(pod.uid):  # it has",
        new="if False:  # it has",
        tests=("test_evaluator.py",),
    ),
    Fault(
        id="negative-priorities-count-less",
        breaks="Many victims of a negative priority do less harm than few.",
        old="lambda victims: sum(pod.priority - _LOWEST_PRIORITY for pod in victims.pods),",
        new="lambda victims: sum(pod.priority for pod in victims.pods),",
    ),
    Fault(
        id="oldest-victims-preferred",
        breaks="Of equal candidates, the node whose victims have run for longest is chosen.",
        old="latest = max((earliest_start_time(candidates[name].pods)",
        new="latest = min((earliest_start_time(candidates[name].pods)",
    ),
    Fault(
        id="last-allowed-disruption-violates",
        breaks="The last disruption that a budget allows counts as its violation.",
        old="violates |= allowed[budget.full_name] < 0",
        new="violates |= allowed[budget.full_name] <= 0",
    ),
    Fault(
        id="disrupted-pod-takes-from-its-budget-again",
        breaks="A pod whose disruption a budget has counted already takes from it once more.",
        old="                and pod.name not in budget.disrupted_pods\n",
        new="",
    ),
    Fault(
        id="hopeless-nominated-node-waited-for",
        breaks="A pod waits for victims on its nominated node though it cannot fit there any more.",
        old="if name not in mirror.nodes.slots or nominated_node_code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:",
        new="if name not in mirror.nodes.slots:",
    ),
    Fault(
        id="least-important-reprieved-first",
        breaks="Pods are spared in the order in which they started, whatever their priority.",
        old="return sorted(pods, key=lambda pod: (-pod.priority, start_time(pod)))",
        new="return sorted(pods, key=lambda pod: (start_time(pod), -pod.priority))",
    ),
    Fault(
        id="terminating-victim-taken-away-as-terminating",
        breaks="A victim that terminates already is not taken from what topology spread constraints count.",
        old="fork.remove(pod, as_running=True)",
        new="fork.remove(pod, as_running=False)",
        tests=("core/test_preemption.py", "test_falsified_cases.py"),
    ),
    Fault(
        id="violations-of-the-offer-forgotten",
        breaks="An offer that is completed loses violations of budgets that only kube-scheduler knows.",
        old="return Offer((*uids, *unknown), max(found.pdb_violations, offer.pdb_violations))",
        new="return Offer((*uids, *unknown), found.pdb_violations)",
    ),
    Fault(
        id="skipped-predicates-asked-anew",
        breaks="A predicate that PreFilter has skipped judges the pod while victims are supposed to be gone.",
        old="runs_afresh=verdicts is not None and _reads_pods(plugin))",
        new="runs_afresh=_reads_pods(plugin))",
        tests=("core/framework/test_composite.py", "core/test_preemption.py"),
    ),
    Fault(
        id="enough-candidates-though-all-violate",
        breaks="The search for candidates ends though each of them violates a budget.",
        old="return len(candidates) >= needed and any(not each.pdb_violations for each in candidates.values())",
        new="return len(candidates) >= needed",
    ),
    Fault(
        id="evicts-after-the-loss-of-leadership",
        breaks="A replica that has begun to evict goes on after another leads.",
        old="                if not victim.terminating:\n                    self._check(pod)\n",
        new="",
        tests=("test_evictor.py", "test_evicting_failures.py"),
    ),
    Fault(
        id="nominations-of-all-pods-cleared",
        breaks="Pods of equal priority lose their nomination for the node that another preempts on.",
        old="if each.priority < preemptor.priority]",
        new="if each.priority <= preemptor.priority]",
        tests=("test_executor.py",),
    ),
    Fault(
        id="lost-nomination-set-again-for-the-loser",
        breaks="A preemptor whose node a more important pod has taken is nominated for it again.",
        old="            self._preemptions.forget(pod.uid)  # else the evictor would nominate it again\n",
        new="",
        tests=("test_executor.py",),
    ),
    Fault(
        id="event-of-a-victim-that-was-gone",
        breaks="An Event tells that a pod was preempted that had gone before.",
        old="                    if await self.api.evict(victim, pod.scheduler_name):\n"
        "                        deleted.append(victim)\n",
        new="                    await self.api.evict(victim, pod.scheduler_name)\n"
        "                    deleted.append(victim)\n",
        tests=("test_executor.py",),
    ),
    Fault(
        id="refusal-under-a-name-of-another-request",
        breaks="A refusal is told for a node that the request does not name.",
        old="        if is_stored and verdicts.stored is not None and verdicts.stored[0] == name:",
        new="        if is_stored and verdicts.stored is not None:",
        tests=("deciding/test_decider.py",),
    ),
    Fault(
        id="nominated-node-without-an-entry",
        breaks="kube-scheduler takes the nominated node for unresolvable, and clears the nomination.",
        old="name = judged.name_json_at(position)",
        new="name = requested.name_json_at(0)",
        tests=("deciding/test_decider.py",),
    ),
    Fault(
        id="old-plan-carried-out",
        breaks="Victims are evicted by a plan that other requests have overtaken while it was made.",
        old="            (victims,) = dry_run(self._mirror, self._filters, pod, [node])\n",
        new="            victims = candidates[node]\n",
        tests=("test_evaluator.py",),
    ),
    Fault(
        id="preemptor-turn-put-off-for-ever",
        breaks="A pod that is asked about again and again never has its turn to preempt.",
        old="due if before is None else min(due, before.due), had)",
        new="due, had)",
        tests=("test_unschedulable_pods.py", "test_evictor.py"),
    ),
    Fault(
        id="a-plan-without-victims",
        breaks="Each refusal of a pod of the lowest priority reads the pod and plans a preemption: 0.1 s.",
        old="        if last.requested and may_preempt and",
        new="        if last.requested and",
        tests=("test_refused_nodes.py",),
    ),
    Fault(
        id="a-member-preempts-alone",
        breaks="Pods are evicted for one member of a scheduling group that has no place for the others.",
        old=" and not pod.in_scheduling_group\n        if last.requested",
        new="\n        if last.requested",
        tests=("test_evicting.py",),
    ),
    Fault(
        id="evicts-for-a-pod-that-has-a-node",
        breaks="Victims are evicted one after the other for a pod that got a node elsewhere meanwhile.",
        old="        if self._mirror.is_mirrored(preemptor.uid):",
        new="        if False:",
        tests=("evicting/test_evicting_failures.py",),
    ),
    Fault(
        id="bits-of-other-verdicts",
        breaks="Preemption looks for victims on the nodes that rejected another pod.",
        old="if last is None or last.verdicts is not verdicts or last.of_slots is not batch.slots:",
        new="if last is None:",
        tests=("test_refused_nodes.py",),
    ),
)
