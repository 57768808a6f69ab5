"""The mirror as a whole: events in any order, repeated, missed and unexpected ones, and those that cost nothing."""

import json
from typing import Final, NoReturn

import pytest

from app.objects.decode_node import decode_node
from app.objects.decode_pod import decode_pod
from core.events import ClusterEvent
from core.mirror.changes import EVERY_CHANGE, Change, PodChange, RulesChange
from core.mirror.cluster import ClusterMirror
from core.objects.labels import NOTHING, parse_selector
from core.objects.pod import Pod
from core.plugins.noderesources.columns import ResourceColumns
from core.releases.differences import rules_of
from core.releases.release import DEFAULT_RELEASE, Release
from tests.builders import labelled, make_namespace, make_node, make_pod, term
from tests.core.decoded import Builder, by_value, counter_of, in_partition, matcher_of, mirror_of, node_of, tell
from tests.core.mirror.audit import audit, audit_counters

WEB: Final = term("zone", labelled(app="web"))
N_A: Final = make_node("na").label("zone", "a")
N_B: Final = make_node("nb").label("zone", "b")
POD: Final = make_pod("p").label("app", "web").required_anti_affinity(WEB)


def web_pods(mirror: ClusterMirror) -> dict[str, int]:
    """Count the pods that WEB selects, per zone; the counter of the terms that they carry must agree."""
    matched = by_value(counter_of(mirror, (matcher_of(WEB),), "zone"))
    owned = [by_value(counter) for counter in mirror.affinity.owners("default", {"app": "web"})]
    assert owned in ([], [matched])
    assert audit_counters(mirror) == []
    return matched


def refuse(*_: object) -> NoReturn:
    pytest.fail("counted again")


@pytest.mark.parametrize("requested_first", [0, 1], ids=["asked-at-last", "asked-at-first"])
def test_more_nodes_than_columns_have_room_for_at_first_count_all_the_same(requested_first: int) -> None:
    mirror = mirror_of(*(POD.uid(str(number)).on(f"n{number}") for number in range(70)))
    assert [{}] * requested_first == [web_pods(mirror) for _ in range(requested_first)]
    tell(mirror, "Add", *(make_node(f"n{number}").label("zone", str(number % 35)) for number in range(70)))
    assert {str(zone): 2 for zone in range(35)} == web_pods(mirror)


@pytest.mark.parametrize(
    "repeated",
    [
        pytest.param(POD.on("na"), id="pod"),
        pytest.param(POD.on("na").phase("Running"), id="pod-with-another-phase"),
        pytest.param(POD.on("na").terminating(), id="pod-with-a-deletion-timestamp"),
        pytest.param(N_A, id="node"),
        pytest.param(N_A.label("disk", "ssd"), id="node-with-a-label-that-no-term-names"),
        pytest.param(make_namespace("x").label("team", "red"), id="namespace"),
    ],
)
def test_an_update_that_changes_nothing_that_counts_is_free(monkeypatch: pytest.MonkeyPatch, repeated: Builder) -> None:
    mirror = mirror_of(N_A, POD.on("na"), make_namespace("x").label("team", "red"))
    assert web_pods(mirror) == {"a": 1}
    counter = counter_of(mirror, (matcher_of(WEB),), "zone")
    counts, slots, rows = counter.counts, dict(mirror.nodes.slots), dict(mirror.pods.rows)
    with monkeypatch.context() as patched:
        for method in ("count", "hold", "drop"):
            patched.setattr(mirror.affinity, method, refuse)
        patched.setattr(mirror.affinity.matches, "namespace_changed", refuse)
        tell(mirror, "Update", repeated)
        tell(mirror, "Add", repeated)
    assert (counts, slots, rows) == (counter.counts, mirror.nodes.slots, mirror.pods.rows)
    assert web_pods(mirror) == {"a": 1}


def test_a_batch_reads_objects_only_where_the_mirror_does_not_know_the_name() -> None:
    mirror = mirror_of(N_A, POD.on("na"))
    column = counter_of(mirror, (matcher_of(WEB),), "zone").column
    foreign = node_of(make_node("new").label("zone", "a"))
    batch = mirror.batch(["na", "new", "unknown"], {0: node_of(N_A.label("zone", "z")), 1: foreign})
    assert batch.unknown == [2]
    assert [column.ids["a"]] * 2 == batch.value_ids(column)[:2].tolist()


def test_the_partition_is_asked_by_name_and_by_the_labels_given_or_known() -> None:
    mirror = mirror_of(N_A, N_B, POD.on("waiting"))
    mirror.set_partition_selector(parse_selector({"zone": "a"}, ()))
    names = ("na", "nb", "waiting", "unknown")
    assert in_partition(mirror, *names) == ["na"]
    partition = mirror.nodes.partition
    assert partition.includes("nb", {"zone": "a"})
    assert partition.includes("unknown", {"zone": "a"})
    mirror.set_node_out_of_partition("na")
    mirror.set_node_in_partition("unknown")
    assert in_partition(mirror, *names) == ["unknown"]
    assert audit(mirror) == []


def test_pods_of_nodes_out_of_the_partition_count_for_everything() -> None:
    mirror = mirror_of(N_A, N_B, POD.on("na"))
    assert web_pods(mirror) == {"a": 1}
    mirror.set_partition_selector(NOTHING)
    assert web_pods(mirror) == {"a": 1}
    tell(mirror, "Add", POD.uid("2").on("nb"))
    assert web_pods(mirror) == {"a": 1, "b": 1}
    assert sum(mirror.figures.best_effort_requested.values()) == 2


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


def ruled(*pods: Pod) -> ClusterMirror:
    mirror = ClusterMirror()
    mirror.apply(ClusterEvent("Add", NODE))
    for pod in pods:
        mirror.apply(ClusterEvent("Add", pod))
    return mirror


def requested(mirror: ClusterMirror) -> tuple[int, int]:
    """Return what is counted of the node's cpu, by the figures and by the plugin's columns."""
    columns = mirror.derived(ResourceColumns).requested.at("cpu", mirror.all_nodes())
    return mirror.figures.guaranteed_requested["cpu"], int(columns[0])


class Recorder:
    """Keeps what it is told."""

    hears: Final = EVERY_CHANGE

    def __init__(self) -> None:
        self.reported: list[Change] = []

    def changed(self, change: Change) -> None:
        self.reported.append(change)


def test_a_mirror_begins_with_the_default_release_unless_told() -> None:
    assert ClusterMirror().rules == rules_of(DEFAULT_RELEASE)
    assert ClusterMirror(rules=NEW).rules == NEW


def test_other_rules_count_resized_pods_again_wherever_they_are_counted() -> None:
    mirror = ruled(resized("p"))
    assert requested(mirror) == (1000, 1000)
    mirror.change_rules(NEW)
    assert requested(mirror) == (5000, 5000)
    mirror.change_rules(OLD)
    assert requested(mirror) == (1000, 1000)
    assert audit(mirror) == []


def test_an_assumed_pod_is_counted_again_and_can_be_forgotten() -> None:
    mirror = ruled()
    mirror.assume(resized("p", ""), "n", 0.0)
    mirror.change_rules(NEW)
    assert audit(mirror) == []
    mirror.forget("p")
    assert "cpu" not in mirror.figures.guaranteed_requested


def test_listeners_are_told_of_the_pods_first_and_then_of_the_rules() -> None:
    mirror, recorder = ruled(resized("p"), asking("1")), Recorder()
    mirror.listen(recorder)
    mirror.change_rules(NEW)
    assert [type(change) for change in recorder.reported] == [PodChange, RulesChange]
    assert recorder.reported[-1] == RulesChange(OLD, NEW)


def test_equal_rules_change_nothing() -> None:
    mirror, recorder = ruled(resized("p")), Recorder()
    mirror.listen(recorder)
    mirror.change_rules(rules_of(Release(1, 34), {"PodLevelResources": True}))
    assert recorder.reported == []
