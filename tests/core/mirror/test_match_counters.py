"""Match counters of questions with many terms: exact, counted once for one list, charged first, and not kept."""

from typing import Final

import pytest

from core.mirror.affinity_counts import MAX_KEPT_MATCHERS, MatchTerms
from core.mirror.cluster import ClusterMirror
from core.mirror.pod_columns import PodColumns
from core.mirror.work import WorkLimitError
from core.objects.affinity import PodMatcher
from core.objects.labels import NOTHING, parse_selector
from tests.builders import labelled, make_namespace, make_node, make_pod, term
from tests.core.decoded import matcher_of, mirror_of, tell
from tests.core.mirror.audit import audit

NODES: Final = [make_node(f"n{zone}").label("zone", zone).label("host", f"n{zone}") for zone in "ab"]
WEB_POD: Final = make_pod("web").label("app", "web")
MANY: Final = MAX_KEPT_MATCHERS + 1


def selecting(*apps: str) -> PodMatcher:
    return PodMatcher(frozenset({"default"}), NOTHING, parse_selector({}, [("app", "In", apps)]))


def many_terms(key: str = "zone") -> list[MatchTerms]:
    """Return more terms than are kept, each of which selects WEB_POD."""
    return [MatchTerms((selecting("web", f"other-{number}"),), key) for number in range(MANY)]


def counted(mirror: ClusterMirror, wanted: list[MatchTerms]) -> list[dict[str, int]]:
    return [counter.by_value() for counter in mirror.affinity.matches.of(wanted, "spec.affinity")]


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
    assert mirror.affinity.match_counts() == {}
    tell(mirror, "Add", WEB_POD.uid("2").on("nb"))
    assert counted(mirror, many_terms()) == [{"a": 1, "b": 1}] * MANY


def test_counters_that_are_not_kept_have_another_version_each_time() -> None:
    mirror = mirror_of(*NODES)
    versions = [
        {counter.version for counter in mirror.affinity.matches.of(many_terms(), "spec.affinity")} for _ in range(2)
    ]
    assert versions[0].isdisjoint(versions[1])


def test_as_many_terms_as_are_allowed_are_kept() -> None:
    mirror = mirror_of(*NODES, WEB_POD.on("na"))
    wanted = many_terms()[:-1]
    first = mirror.affinity.matches.of(wanted, "spec.affinity")
    assert first == mirror.affinity.matches.of(wanted, "spec.affinity")
    assert len(mirror.affinity.match_counts()) == MAX_KEPT_MATCHERS


def test_matchers_that_are_shared_by_many_keys_look_for_pods_once(rows_looked_up: list[object]) -> None:
    mirror = mirror_of(*NODES, WEB_POD.on("na"))
    matchers = tuple(terms.matchers[0] for terms in many_terms())
    found = counted(mirror, [MatchTerms(matchers, key) for key in ("zone", "host", "zone")])
    assert found == [{"a": 1}, {"na": 1}, {"a": 1}]
    assert len(rows_looked_up) == 1


@pytest.mark.parametrize("number", [MANY, 2])
def test_keys_that_no_node_has_look_for_no_pods(rows_looked_up: list[object], number: int) -> None:
    mirror = mirror_of(*NODES, WEB_POD.on("na"))
    wanted = [MatchTerms((selecting("web"),), f"key-{each}") for each in range(number)]
    assert counted(mirror, wanted) == [{}] * number
    assert rows_looked_up == []


def test_a_key_that_a_node_gets_later_is_counted_by_the_counters_that_are_kept() -> None:
    mirror = mirror_of(*NODES, WEB_POD.on("na"))
    wanted = [MatchTerms((selecting("web"),), "rack")]
    assert counted(mirror, wanted) == [{}]
    tell(mirror, "Update", NODES[0].label("rack", "r1"))
    assert counted(mirror, wanted) == [{"r1": 1}]
    assert mirror.affinity.audit() == []


def test_work_past_the_limit_is_refused_before_it_is_done(rows_looked_up: list[object]) -> None:
    mirror = mirror_of(*NODES, WEB_POD.on("na"))
    mirror.work.limit = 1_000_000
    wanted = many_terms()
    with pytest.raises(
        WorkLimitError, match=rf"^Pod.spec.affinity: too much work: {MANY} entries, \d+ of 1000000 "
    ) as raised:
        mirror.affinity.matches.of(wanted, "spec.affinity")
    assert raised.value.field == "Pod.spec.affinity"
    assert rows_looked_up == []
    mirror.work.begin()
    assert counted(mirror, wanted[:2]) == [{"a": 1}] * 2


def test_counters_that_are_known_cost_no_work() -> None:
    mirror = mirror_of(*NODES, WEB_POD.on("na"))
    wanted = many_terms()[:3]
    counted(mirror, wanted)
    spent = mirror.work.spent
    assert spent > 0
    counted(mirror, wanted)
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
    assert counter.by_value() == {"a": 2}
    tell(mirror, "Update", new)
    assert counter.by_value() == {"a": 1}
    assert audit(mirror) == []
