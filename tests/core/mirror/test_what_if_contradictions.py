"""Suppositions that contradict the mirror, or themselves: each is refused with the pod or node and the reason."""

from collections.abc import Callable
from typing import Final

import pytest
from msgspec.structs import replace

from core.mirror.cluster import ClusterMirror
from core.mirror.what_if import Supposition, WhatIfError
from core.objects.affinity import PodMatcher
from core.objects.labels import NOTHING
from tests.core.decoded import counter_of
from tests.core.mirror.values import REPELLING, mirror_of, node, pod, selecting

N1, N2 = node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "b"})
FIRST, SECOND, MOVED = pod("first", "n1", affinity=REPELLING), pod("second", "n1"), pod("moved", "n1")
WAITING, STRANGER = pod("waiting", "new"), pod("stranger")
TERMINATING = replace(pod("terminating", "n1"), terminating=True)
WEB = PodMatcher(frozenset({"default"}), NOTHING, selecting(app="web"))


def state(mirror: ClusterMirror) -> list[object]:
    """Return what pods and nodes there are, and where they count."""
    return [
        counter_of(mirror, (WEB,), "zone").by_value(),
        mirror.affinity.owner_counts(),
        list(mirror.placed_pods()),
        list(mirror.pods.rows),
        dict(mirror.nodes.slots),
        list(mirror.nodes.infos),
    ]


CONTRADICTIONS: Final[dict[str, tuple[Callable[[Supposition], object], str]]] = {
    "remove-unknown": (
        lambda supposed: supposed.remove(STRANGER),
        "pod default/stranger (stranger) cannot be removed: there is no such pod on any node",
    ),
    "remove-waiting": (
        lambda supposed: supposed.remove(WAITING),
        "pod default/waiting (waiting) cannot be removed: it is on new, which is not known",
    ),
    "remove-gone": (
        lambda supposed: supposed.remove(SECOND),
        "pod default/second (second) cannot be removed: it is gone already",
    ),
    "put-back-unknown": (lambda supposed: supposed.put_back("what"), "pod what cannot be put back: it is not gone"),
    "put-back-there": (lambda supposed: supposed.put_back("first"), "pod first cannot be put back: it is not gone"),
    "put-back-placed": (lambda supposed: supposed.put_back("moved"), "pod moved cannot be put back: it is not gone"),
    "place-there": (
        lambda supposed: supposed.place(FIRST, "n1"),
        "pod default/first (first) cannot be placed on n1: it is on n1 already",
    ),
    "place-elsewhere": (
        lambda supposed: supposed.place(FIRST, "n2"),
        "pod default/first (first) cannot be placed on n2: it is on n1 already",
    ),
    "place-placed": (
        lambda supposed: supposed.place(pod("moved"), "n1"),
        "pod default/moved (moved) cannot be placed on n1: it is on n2 already",
    ),
    "place-waiting": (
        lambda supposed: supposed.place(WAITING, "n1"),
        "pod default/waiting (waiting) cannot be placed on n1: it is on new, which is not known",
    ),
    "place-ended": (
        lambda supposed: supposed.place(pod("job", ended=True), "n1"),
        "pod default/job (job) cannot be placed on n1: it has ended",
    ),
    "place-on-unknown": (
        lambda supposed: supposed.place(STRANGER, "new"),
        "pod default/stranger (stranger) cannot be placed on new: there is no such node",
    ),
    "place-nowhere": (
        lambda supposed: supposed.place(STRANGER, ""),
        "pod default/stranger (stranger) cannot be placed on no node: there is no such node",
    ),
    "place-other": (
        lambda supposed: supposed.place(pod("terminating"), "n1"),
        "pod default/terminating (terminating) cannot be placed on n1: it terminates, and is gone as if it did not",
    ),
    "add-known": (lambda supposed: supposed.add_node(N1), "node n1 cannot be added: there is one of that name"),
    "add-supposed": (
        lambda supposed: supposed.add_node(node("supposed", cpu=1)),
        "node supposed cannot be added: there is one of that name",
    ),
}


@pytest.mark.parametrize(("contradict", "message"), CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys())
def test_what_contradicts_the_mirror_or_the_supposition_is_refused_and_changes_nothing(
    contradict: Callable[[Supposition], object], message: str
) -> None:
    mirror = mirror_of(N1, N2, FIRST, SECOND, MOVED, WAITING, TERMINATING)
    before = state(mirror)
    with mirror.suppose() as supposed:
        supposed.remove(SECOND)
        supposed.remove(MOVED)
        supposed.place(MOVED, "n2")
        supposed.remove(TERMINATING, as_running=True)
        supposed.add_node(node("supposed"))
        then = state(mirror)
        with pytest.raises(WhatIfError) as raised:
            contradict(supposed)
        assert str(raised.value) == message
        assert state(mirror) == then
    assert state(mirror) == before
