"""Preemption cases: the dry run on every node, the choice among the candidates, and whether the pod may preempt."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from app.objects.decode_node import decode_pod_disruption_budget
from core.diagnosis.diagnosis import Diagnosis
from core.events import ClusterEvent
from core.framework.evaluation import Failure
from core.framework.interface import Code
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from core.preemption import Victims, best_nodes, dry_run, why_not_eligible
from core.profile import Profile, full_profile
from tests.conformance.engine import add_volumes, decoded_pod, load
from tests.conformance.golden_files import Line, Members, other_rules
from tests.conformance.results import Difference, Results, differences

NAME: Final = "preemption"


def run(lines: Iterable[Line], results: Results) -> None:
    """Ask the profile of a whole scheduler, without default constraints of topology spread, as upstream was asked."""
    profile = full_profile({"PodTopologySpread": {"defaulting_type": "List"}})
    for line in lines:
        results.add(NAME, f"{line.content['name']} ({line.place})", _differences(profile, line))


def _differences(profile: Profile, line: Line) -> list[Difference]:
    case = line.content
    try:
        got = _response(profile.under(line.rules), case, _mirror(line))
    except Exception as error:  # noqa: BLE001 - whatever the engine raises is its answer to this case, a wrong one
        return [Difference("answer", dict(case["expected"]), error)]
    stated = {"not_eligible_reason": "", **case["expected"]}
    return differences({member: stated[member] for member in got}, got)


def _response(profile: Profile, case: Members, mirror: ClusterMirror) -> Members:
    pod = decoded_pod(case["pod"])
    names = [node["metadata"]["name"] for node in case["nodes"]]
    decision = Diagnosis(profile, mirror, pod, mirror.batch(names))
    failed = {
        name: Failure(decision.verdicts.status(position), plugin)
        for position, name in enumerate(names)
        if (plugin := decision.deciding_plugin(position))
    }
    potential = [name for name, failure in failed.items() if failure.status.code is Code.UNSCHEDULABLE]
    found = dict(zip(names, dry_run(mirror, profile.filters, pod, names), strict=True))
    candidates = {name: each for name, each in found.items() if isinstance(each, Victims)}
    reason = _not_eligible_reason(mirror, pod, failed)
    return {
        "filter_failed": _rendered(failed),
        "potential_nodes": potential,
        "candidates": {name: _victims(each) for name, each in candidates.items()},
        "failed": _rendered({name: each for name, each in found.items() if isinstance(each, Failure)}),
        "chosen": _chosen(candidates, potential),
        "chosen_all_nodes": _chosen(candidates, names),
        "eligible": not reason,
        "not_eligible_reason": reason,
    }


def _mirror(line: Line) -> ClusterMirror:
    """Load a case while other rules hold, and change them then: the answers do not depend on what held before."""
    case = line.content
    pods = [*case["pods"], *case.get("nominated", ())]
    mirror = load(case["namespaces"], case["nodes"], pods, rules=other_rules(line.rules))
    add_volumes(mirror, case)
    for budget in case["pdbs"]:
        mirror.apply(ClusterEvent("Add", decode_pod_disruption_budget(msgspec.json.encode(budget))))
    mirror.change_rules(line.rules)
    return mirror


def _not_eligible_reason(mirror: ClusterMirror, pod: Pod, failed: Mapping[str, Failure]) -> str:
    failure = failed.get(pod.nominated_node_name)
    return why_not_eligible(mirror, pod, Code.SUCCESS if failure is None else failure.status.code)


def _chosen(candidates: Mapping[str, Victims], among: Sequence[str]) -> list[str]:
    return sorted(best_nodes({name: each for name, each in candidates.items() if name in among}))


def _victims(victims: Victims) -> Members:
    return {
        "victims": [pod.full_name for pod in victims.pods],
        "num_pdb_violations": victims.pdb_violations,
    }


def _rendered(failures: Mapping[str, Failure]) -> Mapping[str, Members]:
    return {
        name: {
            "code": failure.status.code.label,
            **({"plugin": failure.plugin} if failure.plugin else {}),
            "reasons": list(failure.status.reasons),
        }
        for name, failure in failures.items()
    }
