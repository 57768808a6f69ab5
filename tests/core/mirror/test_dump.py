"""What a dump shows, of all and of the part that was asked for."""

from typing import Final

import pytest
from msgspec.structs import replace

from core.mirror.cluster import ClusterMirror
from core.mirror.dump import MirrorCopy, MirrorDump, PendingPodDump, PodDump, PreemptorDump, VictimDump
from core.mirror.node_figures import Figures
from core.mirror.placement import PodState
from tests.core.mirror.values import mirror_of, node, pod, tell

ADDED: Final = PodState.ADDED
ASSUMED: Final = PodState.ASSUMED


def cluster() -> ClusterMirror:
    mirror = mirror_of(
        node("nb", cpu=10, labels={"zone": "b"}),
        node("na", cpu=20),
        pod("2", "nb", cpu=4),
        pod("1", "nb"),
        pod("w", "waiting"),
    )
    mirror.assume(pod("3"), "nb", 7.0)
    mirror.assume(pod("4"), "na", 8.0)
    mirror.finish_binding("4", 9.0)
    mirror.set_node_out_of_partition("na")
    return mirror


def rendered(dump: MirrorDump) -> tuple[dict[str, list[str]], list[str]]:
    """Return node -> uids of its pods, and the uids of those on unknown nodes."""
    nodes = {found.name: [each.uid for each in found.pods] for found in dump.nodes}
    return nodes, [each.uid for each in dump.pods_of_unknown_nodes]


def test_a_dump_shows_every_node_with_its_pods_in_the_order_of_their_names() -> None:
    mirror = cluster()
    dump = mirror.dump()
    assert rendered(dump) == ({"na": ["4"], "nb": ["1", "2", "3"]}, ["w"])
    assert (dump.generation, dump.figures) == (mirror.generation, mirror.figures)
    na, nb = dump.nodes
    assert (na.slot, nb.slot) == (mirror.nodes.slots["na"], mirror.nodes.slots["nb"])
    assert (na.generation, nb.generation) == tuple(mirror.nodes.infos[name].generation for name in ("na", "nb"))
    assert (na.labels, nb.labels) == ({}, {"zone": "b"})
    assert (na.in_partition, nb.in_partition) == (False, True)
    assert nb.figures == Figures({"cpu": 10}, {"cpu": 4, "pods": 1}, {"cpu": 6}, {"pods": 2})


def test_a_dump_shows_the_state_of_each_pod() -> None:
    dump = cluster().dump()
    pods = {each.uid: each for found in dump.nodes for each in found.pods}
    assert pods == {
        "1": PodDump("1", "default/1", "nb", ADDED),
        "2": PodDump("2", "default/2", "nb", ADDED),
        "3": PodDump("3", "default/3", "nb", ASSUMED, 7.0, None),
        "4": PodDump("4", "default/4", "na", ASSUMED, 8.0, 39.0),
    }
    assert dump.pods_of_unknown_nodes == (PodDump("w", "default/w", "waiting", ADDED),)


@pytest.mark.parametrize(
    ("requested_node", "pod_query", "expected"),
    [
        pytest.param("nb", None, ({"nb": ["1", "2", "3"]}, []), id="a-node"),
        pytest.param("waiting", None, ({}, ["w"]), id="an-unknown-node-that-pods-name"),
        pytest.param("nowhere", None, ({}, []), id="a-node-that-nobody-names"),
        pytest.param(None, "2", ({"nb": ["2"]}, []), id="a-pod-by-its-uid"),
        pytest.param(None, "default/3", ({"nb": ["3"]}, []), id="a-pod-by-its-name"),
        pytest.param(None, "default/w", ({}, ["w"]), id="a-pod-of-an-unknown-node"),
        pytest.param(None, "other/3", ({}, []), id="a-pod-of-another-namespace"),
        pytest.param("na", "4", ({"na": ["4"]}, []), id="a-pod-on-a-node"),
        pytest.param("na", "3", ({}, []), id="a-pod-that-is-on-another-node"),
    ],
)
def test_a_dump_shows_the_part_that_was_asked_for(
    requested_node: str | None, pod_query: str | None, expected: tuple[dict[str, list[str]], list[str]]
) -> None:
    mirror = cluster()
    dump = mirror.dump(requested_node, pod_query)
    assert expected == rendered(dump)
    assert dump.figures == mirror.figures


def test_a_dump_shows_the_pods_that_have_no_node_and_are_not_assumed() -> None:
    mirror = cluster()
    waiting = replace(pod("7"), nominated_node_name="na", priority=5)
    tell(mirror, "Add", waiting, pod("6"), replace(pod("3"), nominated_node_name="na"))
    rendered = PendingPodDump("7", "default/7", "na", 5)
    assert mirror.dump().pending_pods == (PendingPodDump("6", "default/6", "", 0), rendered)
    assert (mirror.dump("na").pending_pods, mirror.dump("nb").pending_pods) == ((rendered,), ())
    assert (mirror.dump(pod="default/7").pending_pods, mirror.dump(pod="7").pending_pods) == ((rendered,), (rendered,))
    copy = mirror.copy()
    assert list(copy.steps()) == []
    tell(mirror, "Delete", waiting)
    assert list(copy.pending_pods()) == [PendingPodDump("6", "default/6", "", 0), rendered]


def test_a_dump_shows_the_victims_that_pods_wait_for() -> None:
    mirror = cluster()
    tell(mirror, "Update", replace(pod("1", "nb"), terminating=True))
    tell(mirror, "Add", *(replace(pod(uid), nominated_node_name="nb", priority=5) for uid in "76"))
    mirror.preemptors.follow(4.0)
    expected = (
        VictimDump("1", "default/1", "nb", tuple(PreemptorDump(each, f"default/{each}", 4.0) for each in "67")),
    )
    assert mirror.dump().victims == mirror.dump("nb").victims == mirror.dump(pod="default/1").victims == expected
    assert mirror.dump("na").victims == mirror.dump(pod="default/2").victims == ()
    copy = mirror.copy()
    assert list(copy.steps()) == []
    tell(mirror, "Delete", pod("1", "nb"))
    assert tuple(copy.victims()) == expected


def whole(copy: MirrorCopy) -> MirrorDump:
    return MirrorDump(
        copy.generation,
        copy.figures,
        tuple(copy.nodes()),
        tuple(copy.pods_of_unknown_nodes()),
        tuple(copy.pending_pods()),
        tuple(copy.victims()),
    )


def test_a_copy_is_of_one_generation_however_the_mirror_changes_between_its_steps() -> None:
    mirror = mirror_of(*(node(f"n{number}", cpu=10) for number in range(200)), pod("w", "waiting"))
    copy = mirror.copy()
    for number, _ in enumerate(copy.steps()):
        if number % 8 == 0:
            tell(mirror, "Delete", node(f"n{number}"))
            tell(mirror, "Update", node(f"n{number + 1}", cpu=99), pod(f"p{number}", f"n{number + 2}", cpu=1))
            mirror.assume(pod(f"a{number}"), f"n{number + 3}", 1.0)
    expected = mirror.dump()
    assert (copy.generation, whole(copy)) == (mirror.generation, expected)
    tell(mirror, "Delete", node("n1"), pod("w", "waiting"), *(pod(f"p{number}") for number in range(200)))
    for uid in list(mirror.assumed):
        mirror.forget(uid)
    assert whole(copy) == expected
