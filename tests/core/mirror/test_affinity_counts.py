"""Term counters: what they count after each kind of event, which terms share one, and that nothing is left behind."""

from collections.abc import Sequence
from typing import Final

import pytest
from msgspec.structs import replace

from core.events import Action
from core.mirror.affinity_counts import MAX_MATCHERS, MatchTerms, OwnerCounter
from core.mirror.cluster import ClusterMirror
from core.mirror.pod_columns import PodColumns
from core.mirror.topology import DomainCounts
from core.mirror.work import WorkLimitError
from core.objects.affinity import PodMatcher
from core.objects.labels import NOTHING, parse_selector
from tests.builders import Object, PodBuilder, expressed, labelled, make_namespace, make_node, make_pod, term
from tests.core.decoded import Builder, by_value, counter_of, matcher_of, mirror_of, pod_of, tell
from tests.core.mirror.audit import audit, match_counts, owner_counts

WEB: Final = term("zone", labelled(app="web"))
NODES: Final = [make_node(f"n{zone}").label("zone", zone).label("host", f"n{zone}") for zone in "ab"]
N_A, N_B = NODES
WEB_POD: Final = make_pod("web").label("app", "web")
GUARD: Final = make_pod("guard").required_anti_affinity(WEB)  # carries a term that selects WEB_POD

UNRELATED: Final = term("zone", labelled(app="web"), namespaces=["other"])
RED: Final = term("zone", labelled(app="web"), namespace_selector=labelled(team="red"))
NOT_BLUE: Final = term("zone", labelled(app="web"), namespace_selector=expressed("team", "NotIn", "blue"))
EVERYWHERE: Final = term("zone", labelled(app="web"), namespace_selector=labelled())
RED_OR_NAMED: Final = term("zone", labelled(app="web"), namespaces=["x"], namespace_selector=labelled(team="red"))
X: Final = make_namespace("x")


def match_counter(mirror: ClusterMirror, *v1_terms: Object, key: str = "zone") -> DomainCounts:
    """Ask for the match counter of terms that an incoming pod of the namespace `default` has."""
    return counter_of(mirror, tuple(matcher_of(each) for each in v1_terms), key)


def owners(mirror: ClusterMirror, namespace: str = "default", **labels: str) -> list[OwnerCounter]:
    """Ask for the owner counters whose terms select a pod."""
    return mirror.affinity.owners(namespace, labels)


def keys_in_use(mirror: ClusterMirror, *keys: str) -> list[str]:
    """Return which of the keys have a topology column with a user."""
    columns = [mirror.affinity.columns.acquire(key, mirror.nodes) for key in keys]
    for column in columns:
        mirror.affinity.columns.release(column)
    return sorted(column.key for column in columns if column.users)


def of_app(app: str, key: str = "zone") -> Object:
    return term(key, labelled(app=app))


@pytest.fixture
def two_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep no more than two match counters."""
    monkeypatch.setattr("core.mirror.affinity_counts.MAX_MATCH_COUNTERS", 2)


@pytest.mark.usefixtures("two_counters")
def test_the_match_counter_unused_for_longest_goes_first() -> None:
    mirror = mirror_of(*NODES)
    x, y = match_counter(mirror, of_app("x")), match_counter(mirror, of_app("y"))
    assert x is match_counter(mirror, of_app("x"))
    match_counter(mirror, of_app("z"))
    assert len(match_counts(mirror)) == 2
    assert x is match_counter(mirror, of_app("x"))
    assert y is not match_counter(mirror, of_app("y"))


@pytest.mark.usefixtures("two_counters")
def test_an_evicted_match_counter_releases_its_column_and_a_kept_one_does_not() -> None:
    mirror = mirror_of(*NODES)
    for key in ("zone", "host", "rack"):
        match_counter(mirror, WEB, key=key)
    assert keys_in_use(mirror, "zone", "host", "rack") == ["host", "rack"]
    match_counter(mirror, of_app("x"), key="host")
    match_counter(mirror, of_app("y"), key="host")
    assert keys_in_use(mirror, "zone", "host", "rack") == ["host"]


@pytest.mark.usefixtures("two_counters")
def test_nothing_is_left_when_all_pods_are_gone_and_the_match_counters_evicted() -> None:
    picky = (
        GUARD.required_affinity(RED).preferred_affinity(5, EVERYWHERE).preferred_anti_affinity(5, of_app("x", "host"))
    )
    pods: list[PodBuilder] = [picky.on("na"), picky.uid("2").on("nb"), picky.uid("3").on("unknown"), WEB_POD.on("na")]
    mirror, fresh = mirror_of(*NODES, X, *pods), mirror_of(*NODES, X)
    for v1_term in (WEB, RED, NOT_BLUE, EVERYWHERE, of_app("x")):
        match_counter(mirror, v1_term)
    tell(mirror, "Delete", *pods)
    for app in ("y", "z"):
        assert match_counter(mirror, of_app(app), key="rack") is not match_counter(fresh, of_app(app), key="rack")
    assert keys_in_use(mirror, "zone", "host", "rack") == ["rack"]
    assert (owner_counts(mirror), match_counts(mirror)) == ({}, match_counts(fresh))
    # What is still held by an index or a memo shows nowhere else.
    stored, stored_fresh = (
        [each._term_sets, vars(each._owner_index), vars(each.matches._index)]  # noqa: SLF001
        for each in (mirror.affinity, fresh.affinity)
    )
    assert stored_fresh == stored


@pytest.mark.parametrize(
    ("listed", "action", "reported", "recounted"),
    [
        pytest.param([], "Add", X, {"not-blue"}, id="namespace-appears-without-labels"),
        pytest.param([], "Add", X.label("team", "red"), {"red", "not-blue"}, id="namespace-appears-selected"),
        pytest.param([], "Add", X.label("team", "blue"), set(), id="namespace-appears-not-selected"),
        pytest.param([X], "Update", X.label("team", "red"), {"red"}, id="namespace-becomes-selected"),
        pytest.param([X], "Update", X.label("team", "blue"), {"not-blue"}, id="namespace-is-no-longer-selected"),
        pytest.param([X], "Update", X.label("env", "prod"), set(), id="other-label"),
        pytest.param([X], "Update", X, set(), id="nothing-changed"),
        pytest.param([X.label("team", "red")], "Delete", X, {"red", "not-blue"}, id="namespace-goes"),
        pytest.param([X.label("team", "blue")], "Delete", X, set(), id="namespace-goes-that-none-selected"),
        pytest.param([], "Delete", X, set(), id="unknown-namespace-goes"),
    ],
)
def test_a_namespace_event_recounts_only_what_reaches_it_or_did(
    listed: Sequence[Builder], action: Action, reported: Builder, recounted: set[str]
) -> None:
    mirror = mirror_of(*NODES, *listed, WEB_POD.in_namespace("x").on("na"))
    terms = {"unrelated": UNRELATED, "red": RED, "not-blue": NOT_BLUE, "all": EVERYWHERE, "red-or-x": RED_OR_NAMED}
    counters = {name: match_counter(mirror, v1_term) for name, v1_term in terms.items()}
    counts = {name: counter.counts for name, counter in counters.items()}
    tell(mirror, action, reported)
    assert recounted == {name for name, counter in counters.items() if counter.counts is not counts[name]}
    assert audit(mirror) == []


def test_a_namespace_event_that_one_of_several_terms_sees_recounts_them_together() -> None:
    mirror = mirror_of(*NODES, X, WEB_POD.in_namespace("x").on("na"))
    counter = match_counter(mirror, RED, EVERYWHERE)
    before = counter.version
    assert by_value(counter) == {}
    tell(mirror, "Update", X.label("team", "red"))
    assert by_value(counter) == {"a": 1}
    assert counter.version != before


def test_pods_with_the_same_labels_are_selected_anew_after_a_label_of_their_namespace_changed() -> None:
    mirror = mirror_of(*NODES, X, make_pod("guard").required_anti_affinity(RED).on("na"))
    counter, labels = match_counter(mirror, RED), {"app": "web"}
    web = pod_of(WEB_POD.in_namespace("x"))

    def place(number: int) -> list[OwnerCounter]:
        mirror.assume(replace(web, uid=f"{number}", labels=labels), "na", 0.0)
        return mirror.affinity.owners("x", labels)

    assert (place(1), by_value(counter)) == ([], {})
    tell(mirror, "Update", X.label("team", "red"))
    assert (len(place(2)), by_value(counter)) == (1, {"a": 2})
    tell(mirror, "Update", X)
    assert (place(3), by_value(counter)) == ([], {})
    assert audit(mirror) == []


MANY: Final = MAX_MATCHERS + 1


def selecting(*apps: str) -> PodMatcher:
    return PodMatcher(frozenset({"default"}), NOTHING, parse_selector({}, [("app", "In", apps)]))


def many_terms(key: str = "zone") -> list[MatchTerms]:
    """Return more terms than are kept, each of which selects WEB_POD."""
    return [MatchTerms((selecting("web", f"other-{number}"),), key) for number in range(MANY)]


def counted(mirror: ClusterMirror, required: list[MatchTerms]) -> list[dict[str, int]]:
    return [by_value(counter) for counter in mirror.affinity.matches.of(required, "spec.affinity")]


@pytest.fixture
def rows_looked_up(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Note each time that pods are looked for."""
    calls: list[object] = []
    plain = PodColumns.slots_of

    def noted(self: PodColumns, *args: object) -> object:
        calls.append(args[0])
        return plain(self, *args)  # type: ignore[arg-type]  # whatever it was given

    monkeypatch.setattr(PodColumns, "slots_of", noted)
    return calls


def test_counters_of_a_question_with_too_many_terms_are_exact_and_not_kept() -> None:
    mirror = mirror_of(*NODES, WEB_POD.on("na"))
    assert counted(mirror, many_terms()) == [{"a": 1}] * MANY
    assert match_counts(mirror) == {}
    tell(mirror, "Add", WEB_POD.uid("2").on("nb"))
    assert counted(mirror, many_terms()) == [{"a": 1, "b": 1}] * MANY


def test_counters_that_are_not_kept_have_another_version_each_time() -> None:
    mirror = mirror_of(*NODES)
    versions = [
        {counter.version for counter in mirror.affinity.matches.of(many_terms(), "spec.affinity")} for _ in range(2)
    ]
    assert versions[0].isdisjoint(versions[1])


def test_matchers_that_are_shared_by_many_keys_look_for_pods_once(rows_looked_up: list[object]) -> None:
    mirror = mirror_of(*NODES, WEB_POD.on("na"))
    matchers = tuple(terms.matchers[0] for terms in many_terms())
    found = counted(mirror, [MatchTerms(matchers, key) for key in ("zone", "host", "zone")])
    assert found == [{"a": 1}, {"na": 1}, {"a": 1}]
    assert len(rows_looked_up) == 1


@pytest.mark.parametrize("number", [MANY, 2])
def test_keys_that_no_node_has_look_for_no_pods(rows_looked_up: list[object], number: int) -> None:
    mirror = mirror_of(*NODES, WEB_POD.on("na"))
    required = [MatchTerms((selecting("web"),), f"key-{each}") for each in range(number)]
    assert counted(mirror, required) == [{}] * number
    assert rows_looked_up == []


def test_work_past_the_limit_is_refused_before_it_is_done(rows_looked_up: list[object]) -> None:
    mirror = mirror_of(*NODES, WEB_POD.on("na"))
    mirror.work.limit = 1_000_000
    required = many_terms()
    with pytest.raises(
        WorkLimitError, match=rf"^Pod.spec.affinity: too much work: {MANY} entries, \d+ of 1000000 "
    ) as raised:
        mirror.affinity.matches.of(required, "spec.affinity")
    assert raised.value.field == "Pod.spec.affinity"
    assert rows_looked_up == []
    mirror.work.spent = 0
    assert counted(mirror, required[:2]) == [{"a": 1}] * 2


def test_counters_that_are_known_cost_no_work() -> None:
    mirror = mirror_of(*NODES, WEB_POD.on("na"))
    required = many_terms()[:3]
    counted(mirror, required)
    spent = mirror.work.spent
    assert spent > 0
    counted(mirror, required)
    assert spent == mirror.work.spent


@pytest.mark.parametrize(
    "was_there", [pytest.param(False, id="never-had-pods"), pytest.param(True, id="has-no-pods-any-more")]
)
def test_a_namespace_without_pods_that_a_term_begins_to_select_recounts_nothing(was_there: bool) -> None:  # noqa: FBT001 - a case
    red, selector = make_namespace("default").label("team", "red"), labelled(team="red")
    matcher = matcher_of(term("zone", labelled(app="web"), namespace_selector=selector))
    mirror = mirror_of(*NODES, red, WEB_POD.on("na"))
    new, gone = make_namespace("new"), WEB_POD.in_namespace("new").on("na")
    if was_there:
        tell(mirror, "Add", gone)
        tell(mirror, "Delete", gone)
    (counter,) = mirror.affinity.matches.of([MatchTerms((matcher,), "zone")], "spec.affinity")
    version = counter.version

    tell(mirror, "Add", new.label("team", "red"))
    assert counter.version == version
    tell(mirror, "Add", gone)
    assert by_value(counter) == {"a": 2}
    tell(mirror, "Update", new)
    assert by_value(counter) == {"a": 1}
    assert audit(mirror) == []


NODE = make_node("n").label("zone", "a")
REPELLING = [make_pod(f"from-{app}").required_anti_affinity(term("zone", labelled(app=app))).on("n") for app in "abcd"]


def test_the_pods_that_carry_a_term_are_known_after_others_have_come_and_gone() -> None:
    mirror = mirror_of(NODE, *REPELLING[:3])
    tell(mirror, "Delete", REPELLING[0])
    tell(mirror, "Add", REPELLING[3], REPELLING[0], make_pod("plain").on("n"))
    for app in "abcd":
        (counter,) = mirror.affinity.owners("default", {"app": app})
        rows = mirror.pods.rows_with(counter.term_sets).tolist()
        assert [mirror.pods.pods[row].name for row in rows] == [f"from-{app}"]
    assert audit(mirror) == []


def test_a_term_that_a_pod_has_twice_counts_twice_and_is_let_go_of() -> None:
    mirror = mirror_of(*NODES, make_pod("p").required_anti_affinity(WEB, WEB).on("na"))
    assert [by_value(counter) for counter in owners(mirror, app="web")] == [{"a": 2}]
    assert audit(mirror) == []
    tell(mirror, "Delete", make_pod("p"))
    assert owner_counts(mirror) == {}
