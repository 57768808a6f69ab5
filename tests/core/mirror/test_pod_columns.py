"""Pods as rows of columns select what a plain loop over them selects, whatever rows and groups they have had."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from core.mirror.pod_columns import NO_TERMS, PodColumns, namespace_is_selected
from core.objects.affinity import PodMatcher
from core.objects.labels import EVERYTHING, NOTHING, Selector, parse_selector
from core.objects.pod import Pod

Labels: TypeAlias = Mapping[str, str]

# "unlisted" is a namespace of which pods are known, but no object.
NAMESPACE_LABELS: Final[Mapping[str, Labels]] = {"a": {"team": "red"}, "b": {"team": "blue"}, "c": {}}
NAMESPACES: Final = (*NAMESPACE_LABELS, "unlisted")
KEYS: Final = ("app", "tier")
VALUES: Final = ("x", "y", "")

labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
expressions = st.tuples(
    st.sampled_from([*KEYS, "key-of-none"]),
    st.sampled_from(["In", "NotIn"]),
    st.lists(st.sampled_from([*VALUES, "value-of-none"]), min_size=1, max_size=3),
) | st.tuples(st.sampled_from([*KEYS, "key-of-none"]), st.sampled_from(["Exists", "DoesNotExist"]), st.just(()))
selectors = st.builds(parse_selector, labels, st.lists(expressions, max_size=2)) | st.just(NOTHING)
RED: Final = parse_selector({"team": "red"}, [])
NOT_RED: Final = parse_selector({}, [("team", "NotIn", ["red"])])
namespace_selectors = st.sampled_from([NOTHING, NOTHING, EVERYTHING, RED, NOT_RED])
matchers = st.builds(
    PodMatcher,
    namespaces=st.frozensets(st.sampled_from([*NAMESPACES, "namespace-of-none"]), max_size=2),
    namespace_selector=namespace_selectors,
    selector=selectors,
)
pods = st.builds(
    Pod, uid=st.sampled_from("123456"), namespace=st.sampled_from(NAMESPACES), name=st.just("p"), labels=labels
)
questions = st.lists(matchers, min_size=1, max_size=2)


def selects_namespace(matcher: PodMatcher, name: str) -> bool:
    return namespace_is_selected(matcher, name, NAMESPACE_LABELS.get(name))


class Cluster:
    """Pod columns beside the plain list of pods with their slots that they should equal."""

    def __init__(self) -> None:
        self.columns = PodColumns()
        self.placed: dict[str, tuple[Pod, int]] = {}

    def place(self, pod: Pod, slot: int) -> int:
        """Put a pod on the node of a slot, from wherever it was, and return its row."""
        self.displace(pod.uid)
        row = self.columns.insert(pod, NO_TERMS)
        self.columns.slot_of_row[row] = slot
        self.placed[pod.uid] = pod, slot
        return row

    def displace(self, uid: str) -> None:
        """Take a pod away, if it is there."""
        if uid in self.placed:
            pod, _ = self.placed.pop(uid)
            self.columns.slot_of_row[self.columns.rows[uid]] = -1
            self.columns.remove(pod)

    def selected(self, *matchers: PodMatcher) -> list[int]:
        """Ask the columns."""
        return sorted(self.columns.slots_of(matchers, selects_namespace).tolist())

    def looped(self, *matchers: PodMatcher) -> list[int]:
        """Ask the list."""
        return sorted(
            slot
            for pod, slot in self.placed.values()
            if slot >= 0
            and all(selects_namespace(each, pod.namespace) and each.selector.matches(pod.labels) for each in matchers)
        )


def pod(uid: str | int, namespace: str = "a", **labels: str) -> Pod:
    return Pod(str(uid), namespace, f"p{uid}", labels)


def uid_of(pod: Pod) -> str:
    return pod.uid


def everywhere(selector: Selector) -> PodMatcher:
    return PodMatcher(frozenset(), EVERYTHING, selector)


def labelled_with(**match_labels: str) -> PodMatcher:
    return everywhere(parse_selector(match_labels, []))


events = st.one_of(st.tuples(pods, st.integers(-1, 4)), st.sampled_from("123456"), questions)


@settings(deadline=None)
@given(st.lists(events, max_size=25), questions)
def test_after_any_events_the_columns_select_what_a_loop_selects(
    reported: Sequence[tuple[Pod, int] | str | list[PodMatcher]], last: list[PodMatcher]
) -> None:
    cluster = Cluster()
    for event in [*reported, last]:
        match event:
            case (Pod() as placed, int(slot)):
                cluster.place(placed, slot)
            case str(uid):
                cluster.displace(uid)
            case _:
                assert cluster.looped(*event) == cluster.selected(*event)
    for namespace in ("a", "b", "nowhere"):
        looped = [pod for pod, _ in cluster.placed.values() if pod.namespace == namespace]
        assert sorted(looped, key=uid_of) == sorted(cluster.columns.in_namespace(namespace), key=uid_of)


def test_a_pod_that_is_gone_is_in_no_namespace_though_others_of_its_group_are() -> None:
    cluster = Cluster()
    for uid in "12":
        cluster.place(pod(uid), 0)
    cluster.displace("1")
    assert [each.uid for each in cluster.columns.in_namespace("a")] == ["2"]


def test_groups_and_rows_of_pods_that_come_and_go_do_not_grow_in_number() -> None:
    cluster = Cluster()
    rows = set()
    for uid in range(100):
        rows.add(cluster.place(pod(uid, one=str(uid)), 1))
        cluster.displace(str(uid))
    assert (len(rows), len(cluster.columns.pods)) == (1, 1)
    assert len(cluster.columns.groups.selected([], selects_namespace)) == 1


def test_every_pod_of_many_with_a_value_of_its_own_is_found_when_stale_values_are_dropped() -> None:
    cluster = Cluster()
    cluster.place(pod("keeper", "keeper", one="keeper"), 1)
    any_value = everywhere(parse_selector({}, [("one", "Exists", [])]))
    assert cluster.selected(any_value) == [1]  # makes the column, with which the one-off values then come and go
    for uid in range(2500):
        own = pod(uid, f"namespace-{uid}", one=str(uid))
        cluster.place(own, 2)
        in_own_namespace = PodMatcher(frozenset({own.namespace}), NOTHING, EVERYTHING)
        requested = (any_value, in_own_namespace, labelled_with(one=str(uid)), labelled_with(one="keeper"))
        assert [cluster.selected(each) for each in requested] == [[1, 2], [2], [2], [1]]
        cluster.displace(str(uid))


def test_values_that_are_gone_are_not_kept_for_ever() -> None:
    cluster = Cluster()
    cluster.selected(labelled_with(one="0"))
    cluster.place(pod("keeper", one="keeper"), 1)
    assert cluster.selected(labelled_with(one="keeper")) == [1]
    for uid in range(5000):
        cluster.place(pod(uid, f"namespace-{uid}", one=str(uid)), 2)
        cluster.displace(str(uid))
    groups = cluster.columns.groups
    columns = [groups._namespace, *groups._labels.values()]  # noqa: SLF001 - what it holds shows nowhere else
    assert len(columns) == 2
    assert max(len(column.ids) for column in columns) < 1500


def test_more_label_keys_than_columns_are_kept_get_right_answers() -> None:
    cluster = Cluster()
    for number in range(300):
        cluster.place(pod(number, **{f"key-{number}": "x"}), number)
    for number in [*range(300), *range(300)]:
        assert [number] == cluster.selected(labelled_with(**{f"key-{number}": "x"}))
    assert len(cluster.columns.groups._labels) <= 256  # noqa: SLF001 - what it holds shows nowhere else
