"""Counters of pods per node: which pods they count, and that events keep them."""

from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from core.events import Action, ClusterEvent, Object
from core.mirror.cluster import ClusterMirror
from core.objects.labels import Operator, Selector, requirement
from core.objects.node import Node
from core.objects.pod import Pod
from core.plugins.podtopologyspread.pod_counts import PodCounts
from tests.core.plugins.podtopologyspread.spreading import A1, A2, NAMES, mirror_of, placed, selecting, tell

WEB: Final = selecting(app="web")
POD: Final = Pod("p", "default", "p", {"app": "web"}, "a1")


def counted(mirror: ClusterMirror, selector: Selector = WEB, namespace: str = "default") -> dict[str, int]:
    """Return the number of pods by node, where there are any."""
    numbers = mirror.derived(PodCounts).of(namespace, selector).per_slot(mirror.nodes.capacity)
    found = {name: int(numbers[slot]) for name, slot in mirror.nodes.slots.items()}
    return {name: number for name, number in found.items() if number}


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(replace(POD, resource_version="2"), id="of-its-status"),
        pytest.param(replace(POD, requests={"cpu": 1}), id="of-its-requests"),
        pytest.param(Pod("q", "default", "q", {"app": "db"}, "a1"), id="of-a-pod-that-is-not-selected"),
        pytest.param(Pod("q", "other", "q", {"app": "web"}, "a1"), id="of-a-pod-of-another-namespace"),
        pytest.param(Pod("q", "default", "q", {"app": "web"}, "a1", terminating=True), id="of-a-terminating-pod"),
    ],
)
def test_the_version_stays_over_a_change(changed: Pod) -> None:
    mirror = mirror_of(POD)
    version = mirror.derived(PodCounts).of("default", WEB).version
    tell(mirror, "Add", changed)
    assert version == mirror.derived(PodCounts).of("default", WEB).version


def test_no_two_counters_ever_have_the_same_version() -> None:
    mirror = mirror_of()
    web, db = (mirror.derived(PodCounts).of("default", selecting(app=app)) for app in ("web", "db"))
    versions = [web.version, db.version]
    for pod in placed(a1="web db", a2="db web"):
        tell(mirror, "Add", pod)
        versions.append(web.version if pod.labels["app"] == "web" else db.version)
    assert len(set(versions)) == 6


def test_the_counters_asked_for_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.plugins.podtopologyspread.pod_counts.MAX_POD_COUNTERS", 2)
    mirror = mirror_of(*placed(a1="web db"))
    counts = mirror.derived(PodCounts)
    web, db = counts.of("default", WEB), counts.of("default", selecting(app="db"))
    assert counts.of("default", WEB) is web
    counts.of("other", WEB)
    assert counts.of("default", WEB) is web
    assert counts.of("default", selecting(app="db")) is not db
    tell(mirror, "Add", *placed(a2="web db"))
    assert counted(mirror) == counted(mirror, selecting(app="db")) == {"a1": 1, "a2": 1}


def test_terminating_pods_leave_the_counts_with_their_node() -> None:
    mirror = mirror_of(replace(POD, terminating=True), replace(POD, uid="q", name="q"))
    assert counted(mirror) == {"a1": 1}
    tell(mirror, "Delete", A1)
    assert counted(mirror) == {}
    tell(mirror, "Add", replace(A1, labels={}))
    assert counted(mirror) == {"a1": 1}
    assert counted(mirror, selecting(app="web", tier="x")) == {}


SELECTORS: Final = (
    WEB,
    selecting(tier="1"),
    selecting(app="web", tier="1"),
    Selector((requirement("tier", Operator.DOES_NOT_EXIST, ()),)),
)
pods = st.builds(
    lambda number, namespace, app, tier, node, ends: Pod(
        str(number), namespace, str(number), {"app": app, **tier}, node, **ends
    ),
    st.integers(0, 5),
    st.sampled_from(("default", "other")),
    st.sampled_from(("web", "db")),
    st.sampled_from(({}, {"tier": "1"}, {"tier": "2"})),
    st.sampled_from((*NAMES[:3], "unknown", "")),
    st.sampled_from(({}, {}, {"terminating": True}, {"terminal": True})),
)
nodes = st.builds(Node, st.sampled_from((*NAMES[:3], *(f"more-{number}" for number in range(20)))))
events = st.tuples(st.sampled_from(("Add", "Update", "Delete")), st.one_of(pods, pods, nodes))


@given(st.lists(events, max_size=40), st.lists(st.integers(0, len(SELECTORS) - 1), min_size=1))
def test_counters_kept_by_events_equal_counters_made_anew(
    stream: Sequence[tuple[Action, Object]], asked: Sequence[int]
) -> None:
    mirror = mirror_of(nodes=(A1, A2))
    for number, (action, each) in enumerate(stream):
        kept = mirror.derived(PodCounts)
        kept.of("default", SELECTORS[asked[number % len(asked)]])
        mirror.apply(ClusterEvent(action, each))
    kept, anew, capacity = mirror.derived(PodCounts), PodCounts(mirror), mirror.nodes.capacity
    for namespace in ("default", "other"):
        for selector in SELECTORS:
            numbers = kept.of(namespace, selector).per_slot(capacity)
            assert numbers.tolist() == anew.of(namespace, selector).per_slot(capacity).tolist()
            assert int(numbers.sum()) == sum(
                pod.namespace == namespace and selector.matches(pod.labels) and not pod.terminating
                for _, pod in mirror.placed_pods()
            )
