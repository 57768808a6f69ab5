"""The published capacity of a class after changes, against one that is made anew."""

from hypothesis import given
from hypothesis import strategies as st

from core.events import ClusterEvent
from core.objects.volumes import CSIStorageCapacity
from core.plugins.volumebinding.claims import Offers
from tests.core.decoded import mirror_of
from tests.core.plugins.volumebinding.values import room

CAPACITIES = st.builds(
    room,
    st.sampled_from("abcd"),
    st.sampled_from([None, 0, 3, 5, 5, 9]),
    st.sampled_from(["wait", "wait", "wait", "other"]),
    zone=st.sampled_from("xy"),
)
GONE = st.sampled_from("abcd").map(lambda name: room(name, None))


@given(st.lists(st.tuples(CAPACITIES | GONE, st.booleans()), max_size=12))
def test_the_largest_capacity_of_a_node_is_that_of_a_fresh_look(changes: list[tuple[CSIStorageCapacity, bool]]) -> None:
    mirror = mirror_of()
    followed = mirror.derived(Offers)
    for capacity, looks in changes:
        is_gone = capacity.limit is None and looks
        mirror.apply(ClusterEvent("Delete" if is_gone else "Add", capacity))
        fresh = Offers(mirror)
        for of in ("wait", "other") if looks else ():
            for zone in "xyz":
                assert followed.room(of).largest({"zone": zone}) == fresh.room(of).largest({"zone": zone})
            assert [*followed.room(of)] == [*fresh.room(of)]
            assert followed.room(of).keys == fresh.room(of).keys
