"""Compares the placement of many pods with that of the real plugins: the same node for each, and the same left over."""

from typing import Final

import msgspec

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.mirror.cluster import ClusterMirror
from core.profile import full_profile
from core.releases.differences import rules_of
from core.releases.release import Release
from core.simulation.drain import drain
from core.simulation.loss import lose_each
from core.simulation.lost_nodes import NodeState
from core.simulation.moves import Basis, Move
from core.simulation.orders import FIRST, ties
from core.simulation.placing import DEFAULT_SCHEDULER, Placing, Scheduler, finished
from tests.conformance.engine import add_volumes, decoded_pod, load
from tests.core.simulation.setting import NOTHING_MORE
from tests.parity.random_nodes import V1, ZONE
from tests.parity.random_sequences import CAPACITY, DRAIN, OUT

PLACED: Final = "the place of each pod"


def places(case: V1) -> dict[str, str]:
    """Return NAMESPACE/NAME -> node, empty for none, of the pods that are placed. Nothing is left in the mirror."""
    before = case["before"]
    release = Release(*map(int, case["kubernetes"].split(".")))
    mirror = load(case["namespaces"], before["nodes"], before["pods"], rules=rules_of(release))
    add_volumes(mirror, case)
    profile = full_profile()
    cache = EquivalenceCache(mirror, profile.plugins, CacheOptions(mode="spec"))
    basis = Basis(mirror, {DEFAULT_SCHEDULER: Scheduler(profile, cache.evaluation)}, NOTHING_MORE)
    dump = mirror.dump()
    found = _places(basis, case)
    assert mirror.dump() == dump
    return found


def _places(basis: Basis, case: V1) -> dict[str, str]:
    if case["what"] == CAPACITY:
        return _more(basis.mirror, basis, case)
    if case["what"] == DRAIN:
        pods = [each.move for each in finished(drain(basis, case["lost"])).pods]
        return {each.pod: each.node for each in pods if not each.stays_away}
    found = finished(lose_each(basis, ZONE, [case["zone"]] if case["zone"] else ["none"]))
    state = NodeState.OUT if case["what"] == OUT else NodeState.REMOVED
    moves: list[Move] = []
    for domain in found.domains:
        of_state = domain.other if domain.other is not None and domain.other.state is state else domain.worse
        moves += of_state.moves
    return {each.pod: each.node for each in moves if not each.stays_away}


def _more(mirror: ClusterMirror, basis: Basis, case: V1) -> dict[str, str]:
    with mirror.fork(cache_follows=True) as fork:
        placing = Placing(mirror, fork, basis.schedulers, ties(mirror, FIRST))
        outcomes = finished(placing.place([decoded_pod(each) for each in case["queue"]]))
    return {each.pod.full_name: each.node if each.is_placed else "" for each in outcomes}


def difference(case: V1, expected: V1) -> str:
    """Return the pods with another place than the real plugins give them, as lines. Empty: there is none."""
    ours, theirs = places(case), {each["pod"]: each["node"] for each in expected["placed"]}
    lines = [
        f"  {pod}: real {theirs.get(pod)!r}, ours {ours.get(pod)!r}"
        for pod in dict.fromkeys((*theirs, *ours))
        if theirs.get(pod) != ours.get(pod)
    ]
    return "\n".join([msgspec.json.encode(case["what"]).decode(), *lines]) if lines else ""
