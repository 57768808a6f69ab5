"""The rules of a release, which the mirror holds and which may change while it runs."""

import json
from typing import Final

from app.objects.decode_node import decode_node
from app.objects.decode_pod import decode_pod
from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import ClusterEvent
from core.framework.evaluation import FreshEvaluation
from core.mirror.changes import EVERY_CHANGE, Change, PodChange, RulesChange
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from core.plugins.noderesources.columns import ResourceColumns
from core.profile import full_profile
from core.releases import DEFAULT_RELEASE, Release, rules_of
from core.scheduling_cycle import filter_nodes
from tests.core.mirror.audit import audit

OLD, NEW = rules_of(Release(1, 34)), rules_of(Release(1, 37))
NODE = decode_node(
    json.dumps({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "8", "pods": "9"}}}).encode()
)


def resized(uid: str, node: str = "n") -> Pod:
    """Return a pod that requests 1 cpu until 1.36, and 5 since 1.37."""
    status = {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "5"}}]}
    spec = {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    wire = {"metadata": {"name": uid, "uid": uid}, "spec": spec, "status": status}
    return decode_pod(json.dumps(wire).encode())


def asking(cpu: str) -> Pod:
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}
    return decode_pod(json.dumps({"metadata": {"name": "q"}, "spec": spec}).encode())


def mirror_of(*pods: Pod) -> ClusterMirror:
    mirror = ClusterMirror()
    mirror.apply(ClusterEvent("Add", NODE))
    for pod in pods:
        mirror.apply(ClusterEvent("Add", pod))
    return mirror


def requested(mirror: ClusterMirror) -> tuple[int, int]:
    """Return what is counted of the node's cpu, by the figures and by the plugin's columns."""
    columns = mirror.derived(ResourceColumns).requested_of("cpu", mirror.all_nodes())
    return mirror.figures.guaranteed_requested["cpu"], int(columns[0])


class Recorder:
    """Keeps what it is told."""

    hears: Final = EVERY_CHANGE

    def __init__(self) -> None:
        self.told: list[Change] = []

    def changed(self, change: Change) -> None:
        self.told.append(change)


def test_a_mirror_begins_with_the_default_release_unless_told() -> None:
    assert ClusterMirror().rules == rules_of(DEFAULT_RELEASE)
    assert ClusterMirror(rules=NEW).rules == NEW


def test_other_rules_count_resized_pods_again_wherever_they_are_counted() -> None:
    mirror = mirror_of(resized("p"))
    assert requested(mirror) == (1000, 1000)
    mirror.change_rules(NEW)
    assert requested(mirror) == (5000, 5000)
    mirror.change_rules(OLD)
    assert requested(mirror) == (1000, 1000)
    assert audit(mirror) == []


def test_a_pod_that_comes_later_is_counted_by_the_rules_that_hold_then() -> None:
    mirror = mirror_of()
    mirror.change_rules(NEW)
    mirror.apply(ClusterEvent("Add", resized("p")))
    assert requested(mirror) == (5000, 5000)
    mirror.apply(ClusterEvent("Delete", resized("p")))
    assert audit(mirror) == []


def test_an_assumed_pod_is_counted_again_and_can_be_forgotten() -> None:
    mirror = mirror_of()
    mirror.assume(resized("p", ""), "n", 0.0)
    mirror.change_rules(NEW)
    assert audit(mirror) == []
    mirror.forget("p")
    assert "cpu" not in mirror.figures.guaranteed_requested


def test_listeners_are_told_of_the_pods_first_and_then_of_the_rules() -> None:
    mirror, recorder = mirror_of(resized("p"), asking("1")), Recorder()
    mirror.listen(recorder)
    mirror.change_rules(NEW)
    assert [type(change) for change in recorder.told] == [PodChange, RulesChange]
    assert recorder.told[-1] == RulesChange(OLD, NEW)


def test_equal_rules_change_nothing() -> None:
    mirror, recorder = mirror_of(resized("p")), Recorder()
    mirror.listen(recorder)
    mirror.change_rules(rules_of(Release(1, 34), {"PodLevelResources": True}))
    assert recorder.told == []


def test_the_cache_forgets_what_it_kept_under_other_rules() -> None:
    mirror, profile = mirror_of(resized("p")), full_profile()
    cache = EquivalenceCache(mirror, profile.plugins, CacheOptions(mode="spec"))

    def fits(*, cached: bool) -> bool:
        evaluation = cache.evaluation(asking("4")) if cached else FreshEvaluation(mirror, asking("4"))
        return not filter_nodes(profile, evaluation, mirror.batch(["n"])).codes.any()

    assert (fits(cached=True), fits(cached=False), len(cache)) == (True, True, 1)
    mirror.change_rules(NEW)
    assert len(cache) == 0
    assert (fits(cached=True), fits(cached=False)) == (False, False)
