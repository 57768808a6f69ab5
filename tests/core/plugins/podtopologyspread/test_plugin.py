"""PodTopologySpread: its default constraints, its scores where labels may lack, and its counters."""

from collections.abc import Mapping, Sequence
from math import log
from random import Random
from typing import Final, TypeAlias

import numpy as np
import pytest
from msgspec.structs import replace

from core.events import Object
from core.framework.evaluation import Evaluation, FreshEvaluation
from core.framework.interface import SUCCESS, Code, Status
from core.framework.scores import NOT_SCORED, rounded_all
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import TopologyCounts
from core.objects.kinds import ReplicaSet, ReplicationController, Service, StatefulSet
from core.objects.labels import NOTHING, Selector
from core.objects.node import Node
from core.objects.pod import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, Pod, SpreadConstraint
from core.plugins.podtopologyspread.constraints import own_constraints
from core.plugins.podtopologyspread.filtering import CONSTRAINTS_NOT_MATCHED, PreFilterState
from core.plugins.podtopologyspread.plugin import PodTopologySpread
from core.plugins.podtopologyspread.pod_counts import PodCounter, PodCounts
from core.plugins.podtopologyspread.scoring import PreScoreState
from core.releases.differences import rules_of
from core.releases.release import RELEASES
from tests.core.plugins.podtopologyspread.spreading import (
    A1,
    A2,
    B1,
    BARE,
    HOST,
    NAMES,
    ZONE,
    by_name,
    incoming,
    mirror_of,
    must,
    placed,
    selecting,
    should,
    tell,
)

LISTED: Final = PodTopologySpread(defaulting_type="List")
SYSTEM: Final = PodTopologySpread()
HARD_DEFAULT: Final = SpreadConstraint(1, ZONE)
SOFT_DEFAULT: Final = SpreadConstraint(1, HOST, SCHEDULE_ANYWAY)
WITH_DEFAULTS: Final = PodTopologySpread(defaulting_type="List", default_constraints=(HARD_DEFAULT, SOFT_DEFAULT))
WEB: Final = Service("default", "web", selecting(app="web"))
OWNER: Final = ReplicaSet("default", "rs", selector=selecting(app="web"))


def pre_filter(plugin: PodTopologySpread, pod: Pod, *objects: Object) -> Status:
    status, state = plugin.pre_filter(mirror_of(*objects), pod)
    assert (state is not None) is (status == SUCCESS)
    return status


def pre_score(plugin: PodTopologySpread, pod: Pod, *objects: Object) -> Status:
    mirror = mirror_of(*objects)
    status, state = plugin.pre_score(mirror, pod, mirror.batch(NAMES))
    assert (state is not None) is (status == SUCCESS)
    return status


READ: Final = (Node, Pod, Service, ReplicationController, ReplicaSet, StatefulSet)


@pytest.mark.parametrize(
    ("plugin", "kinds", "controller"),
    [
        pytest.param(SYSTEM, READ, True, id="system"),
        pytest.param(WITH_DEFAULTS, READ, True, id="list"),
        pytest.param(LISTED, (Node, Pod), False, id="none"),
    ],
)
def test_services_and_controllers_are_read_where_there_are_default_constraints(
    plugin: PodTopologySpread, kinds: tuple[type, ...], *, controller: bool
) -> None:
    assert plugin.kinds == kinds
    fields = ("namespace", "labels", "tolerations", "node_affinity", "spread")
    assert plugin.class_fields == (*fields, *(("controller",) if controller else ()))


def test_a_broken_selector_is_an_error_of_the_side_that_it_is_on() -> None:
    # AsStatus of PreFilter in filtering.go and of PreScore in scoring.go
    hard = "get constraints from pod: obtaining pod's hard topology spread constraints: broken"
    soft = "calculating preScoreState: obtaining pod's soft topology spread constraints: broken"
    pod = incoming(must(ZONE, selector_error="broken"), should(ZONE))
    assert (pre_filter(LISTED, pod), pre_score(LISTED, pod)) == (Status(Code.ERROR, (hard,)), SUCCESS)
    pod = incoming(should(ZONE, selector_error="broken"), must(ZONE))
    assert (pre_filter(LISTED, pod), pre_score(LISTED, pod)) == (SUCCESS, Status(Code.ERROR, (soft,)))


def test_the_references_of_a_pod_are_what_selects_its_like_where_defaults_apply() -> None:
    mirror = mirror_of(WEB, OWNER)
    assert SYSTEM.references(mirror, incoming()) == selecting(app="web")
    assert SYSTEM.references(mirror, incoming(app="db")) == selecting()
    assert SYSTEM.references(mirror, incoming(should(ZONE))) is None
    assert LISTED.references(mirror, incoming()) is None


Responses: TypeAlias = tuple[Mapping[str, Status], Sequence[int] | None]


def responses(plugin: PodTopologySpread, evaluation: Evaluation, batch: NodeBatch) -> Responses:
    """Return the statuses and the normalised scores."""
    verdicts, raw = evaluation.verdicts(plugin, batch), evaluation.raw_scores(plugin, batch)
    statuses = {name: verdicts.status(at) if verdicts else SUCCESS for at, name in enumerate(batch.names)}
    return statuses, None if raw is None else plugin.normalize(raw).tolist()


@pytest.mark.parametrize(
    ("plugin", "scores"),
    [
        # PreScore of scoring.go: requireAllTopologies
        # Raw, with 5 nodes: 2 * log(7) + 2 is 6, without pods 2, and 0 without the label.
        pytest.param(SYSTEM, [0, 66, 66, 66, 100], id="the-system-s-score-nodes-that-lack-a-label"),
        pytest.param(
            PodTopologySpread(
                defaulting_type="List", default_constraints=(SOFT_DEFAULT, replace(SOFT_DEFAULT, topology_key=ZONE))
            ),
            # Raw, with 3 nodes in 2 zones: 2 * log(5) + 2 * log(4) is 6, the second 3, and 0.
            [0, 50, 100, 0, 0],
            id="listed-ones-do-not",
        ),
    ],
)
def test_default_constraints_score(plugin: PodTopologySpread, scores: Sequence[int]) -> None:
    mirror = mirror_of(WEB, *placed(a1="web web"))
    _, found = responses(plugin, FreshEvaluation(mirror, incoming()), mirror.batch(NAMES))
    assert scores == found


def test_default_constraints_filter() -> None:
    mirror = mirror_of(WEB, *placed(a1="web"))
    statuses, _ = responses(WITH_DEFAULTS, FreshEvaluation(mirror, incoming()), mirror.batch(["a1", "a2", "b1"]))
    assert [status.code for status in statuses.values()] == [Code.UNSCHEDULABLE, Code.UNSCHEDULABLE, Code.SUCCESS]


@pytest.mark.parametrize(
    ("is_on", "codes", "expected"),
    [(True, [Code.SUCCESS, Code.SUCCESS], [100, 100]), (False, [Code.UNSCHEDULABLE, Code.SUCCESS], [0, 100])],
)
def test_match_label_keys_count_only_behind_their_gate(
    *, is_on: bool, codes: Sequence[Code], expected: Sequence[int]
) -> None:
    constraints = [each(key, match_label_keys=("hash",)) for each, key in ((must, ZONE), (should, HOST))]
    pod, mirror = incoming(*constraints, labels={"app": "web", "hash": "7"}), mirror_of(*placed(a1="web web"))
    mirror.change_rules(rules_of(RELEASES[-1], {"MatchLabelKeysInPodTopologySpread": is_on}))
    statuses, scores = responses(PodTopologySpread(), FreshEvaluation(mirror, pod), mirror.batch(["a1", "b1"]))
    assert ([status.code for status in statuses.values()], scores) == (codes, expected)


def skewed(*names: str) -> dict[str, Status]:
    return dict.fromkeys(names, CONSTRAINTS_NOT_MATCHED)


def rejections(
    mirror: ClusterMirror, pod: Pod, names: Sequence[str] = NAMES, unmirrored: Sequence[Node] = ()
) -> dict[str, Status]:
    """Filter and give the statuses of the nodes that do not pass."""
    state = PreFilterState(mirror, pod, own_constraints(pod, DO_NOT_SCHEDULE))
    requested = [*names, *(node.name for node in unmirrored)]
    verdicts = state.judge(mirror.batch(requested, {len(names) + at: node for at, node in enumerate(unmirrored)}))
    statuses = {name: verdicts.status(position) for position, name in enumerate(requested)}
    return {name: status for name, status in statuses.items() if status != SUCCESS}


def test_the_empty_selector_selects_the_pod_itself() -> None:
    # countPodsMatchSelector passes over the empty selector, Filter's self-match does not.
    pod = incoming(must(ZONE, 0, selecting()))
    assert rejections(mirror_of(), pod, ["a1", "b1"]) == skewed("a1", "b1")
    assert rejections(mirror_of(), incoming(must(ZONE, 0, NOTHING)), ["a1", "b1"]) == {}


def test_the_versions_are_those_of_the_counters() -> None:
    mirror = mirror_of()
    pod = incoming(must(ZONE), must(HOST, 1, selecting(app="db")))

    def versions() -> tuple[object, ...]:
        return PreFilterState(mirror, pod, own_constraints(pod, DO_NOT_SCHEDULE)).versions()

    before = versions()
    tell(mirror, "Add", *placed(a1="other"), replace(BARE, labels={ZONE: "a"}))
    assert versions() == before
    tell(mirror, "Add", *placed(a2="web"))
    assert (versions()[0] == before[0], versions()[1] == before[1]) == (False, True)
    tell(mirror, "Add", *placed(b1="db"))
    assert versions()[1] != before[1]


PODS: Final = placed(a1="web web web", a2="web db", b1="web", zoneless="web web", bare="web")
LABELLED: Final = ["a1", "a2", "b1"]


def raw(
    mirror: ClusterMirror,
    pod: Pod,
    names: Sequence[str] = NAMES,
    unmirrored: Sequence[Node] = (),
    *,
    require_all_topologies: bool = True,
) -> Mapping[str, int]:
    """Return the raw scores by node."""
    requested = [*names, *(node.name for node in unmirrored)]
    batch = mirror.batch(requested, {len(names) + at: node for at, node in enumerate(unmirrored)})
    constraints = own_constraints(pod, SCHEDULE_ANYWAY)
    state = PreScoreState(mirror, pod, constraints, batch, require_all_topologies=require_all_topologies)
    return by_name(state.score(batch).tolist(), requested)


def weighed(**counts: float) -> Mapping[str, int]:
    """Return rounded scores, and NOT_SCORED for all nodes that are not named."""
    return {**dict.fromkeys(NAMES, NOT_SCORED), **{name: round(count) for name, count in counts.items()}}


def test_without_requiring_all_labels_a_node_scores_for_those_it_has() -> None:
    # PreScore of scoring.go: without a zone a node is in the domain of the empty one, and has nothing of it.
    pod = incoming(should(ZONE), should(HOST, 2))
    scores = raw(mirror_of(*PODS), pod, require_all_topologies=False)
    assert scores == weighed(
        a1=4 * log(5) + 3 * log(7) + 1,
        a2=4 * log(5) + log(7) + 1,
        b1=log(5) + log(7) + 1,
        zoneless=2 * log(7) + 1,
        bare=0,
    )


def test_without_requiring_all_labels_the_empty_value_is_that_of_nodes_without_the_label_too() -> None:
    void = Node("void", {ZONE: ""})
    mirror = mirror_of(*PODS, *placed(void="web"), void)
    scores = raw(mirror, incoming(should(ZONE)), [*NAMES, "void"], require_all_topologies=False)
    assert scores == {**weighed(a1=4 * log(5), a2=4 * log(5), b1=log(5), zoneless=0, bare=0), "void": round(4 * log(5))}


def test_without_requiring_all_labels_a_node_without_a_hostname_scores_nothing_beside_an_unknown_hostname() -> None:
    pod, unmirrored = incoming(should(HOST, max_skew=3)), [Node("s", {HOST: "s"}), Node("t")]
    scores = raw(mirror_of(*PODS), pod, ["a1", "bare"], unmirrored, require_all_topologies=False)
    assert scores == {"a1": round(3 * log(6) + 2), "bare": 0, "s": 2, "t": 0}


@pytest.mark.parametrize("seed", range(20))
def test_the_scores_of_all_nodes_are_those_of_the_same_nodes_by_name(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - no secret
    zones = [{}, {ZONE: "a"}, {ZONE: "b"}] if seed % 2 else [{ZONE: "a"}, {ZONE: "b"}]
    nodes = [Node(name, random.choice(zones) | {HOST: name}) for name in (f"n{number}" for number in range(9))]
    on = {node.name: " ".join(random.choices(["web", "db"], k=random.randrange(4))) for node in nodes}
    mirror, pod = mirror_of(*placed(**on), nodes=nodes), incoming(should(HOST, 3), should(ZONE, 5))
    everyone, some = mirror.all_nodes(), np.array(sorted(random.sample(range(9), 4)))
    by_names = mirror.batch([node.name for node in nodes])
    found = []
    for requested, scored in ((everyone, everyone), (everyone.part(some), everyone), (by_names, by_names)):
        constraints = own_constraints(pod, SCHEDULE_ANYWAY)
        state = PreScoreState(mirror, pod, constraints, requested, require_all_topologies=seed % 3 == 0)
        found.append(state.score(scored).tolist())
    of_some = PreScoreState(mirror, pod, constraints, everyone.part(some), require_all_topologies=seed % 3 == 0)
    assert found[0] == found[2], "all nodes have a faster way"
    assert of_some.score(by_names).tolist() == found[1], "also where the weights are those of some"


def test_halves_are_rounded_up_as_go_rounds_them() -> None:
    # math.Round, where Python and numpy round 2.5 down, and adding a half rounds what is just below one up.
    numbers = np.array([0.0, 0.5, 1.5, 2.5, 2.4, 0.49999999999999994])
    assert rounded_all(numbers).tolist() == [0, 1, 2, 3, 2, 0]


def test_columns_that_were_dropped_meanwhile_do_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.mirror.label_columns.MAX_BYTES", 1)
    mirror, pod = mirror_of(*PODS), incoming(should(ZONE))
    raw(mirror, pod)
    # The ids of the zones are now in another order than in a column made from the nodes anew.
    labels = [{ZONE: "c", HOST: "a1"}, {ZONE: "c"}, {ZONE: "a"}]
    nodes = [replace(node, labels=each) for node, each in zip((A1, A2, B1), labels, strict=True)]
    tell(mirror, "Update", *nodes)
    found = [raw(mirror, pod, LABELLED)]
    raw(mirror, incoming(should(HOST)))
    found.append(raw(mirror, pod, LABELLED))
    assert found == [raw(mirror_of(*PODS, nodes=nodes), pod, LABELLED)] * 2


SELECTING_WEB: Final = selecting(app="web")
POD: Final = Pod("p", "default", "p", {"app": "web"}, "a1")


def counted(mirror: ClusterMirror, selector: Selector = SELECTING_WEB, namespace: str = "default") -> dict[str, int]:
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
    version = mirror.derived(PodCounts).of("default", SELECTING_WEB).version
    tell(mirror, "Add", changed)
    assert version == mirror.derived(PodCounts).of("default", SELECTING_WEB).version


def test_no_two_counters_ever_have_the_same_version() -> None:
    mirror = mirror_of()
    web, db = (mirror.derived(PodCounts).of("default", selecting(app=app)) for app in ("web", "db"))
    versions = [web.version, db.version]
    for pod in placed(a1="web db", a2="db web"):
        tell(mirror, "Add", pod)
        versions.append(web.version if pod.labels["app"] == "web" else db.version)
    assert len(set(versions)) == 6


def test_a_counter_tells_its_last_changes_and_none_of_another_one() -> None:
    mirror = mirror_of()
    counter, other = (mirror.derived(PodCounts).of("default", selecting(app=app)) for app in ("web", "db"))
    version = counter.version
    tell(mirror, "Add", *placed(a1="web", a2="web"))
    slots = mirror.nodes.slots
    assert sorted(counter.since(version) or ()) == sorted([(slots["a1"], 1), (slots["a2"], 1)])
    assert counter.since(counter.version) == []
    assert (other.since(version), counter.since(other.version)) == (None, None)
    for number in range(40):
        tell(mirror, "Add", replace(POD, uid=f"{number}", name=f"{number}"))
    assert counter.since(version) is None


def test_the_counters_asked_for_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.plugins.podtopologyspread.pod_counts.MAX_POD_COUNTERS", 2)
    mirror = mirror_of(*placed(a1="web db"))
    counts = mirror.derived(PodCounts)
    web, db = counts.of("default", SELECTING_WEB), counts.of("default", selecting(app="db"))
    assert counts.of("default", SELECTING_WEB) is web
    counts.of("other", SELECTING_WEB)
    assert counts.of("default", SELECTING_WEB) is web
    assert counts.of("default", selecting(app="db")) is not db
    tell(mirror, "Add", *placed(a2="web db"))
    assert counted(mirror) == counted(mirror, selecting(app="db")) == {"a1": 1, "a2": 1}


def test_a_counter_counts_with_what_it_keeps_of_the_nodes() -> None:
    counter = PodCounter(TopologyCounts.of(np.arange(5000, dtype=np.int32)))
    assert counter.by_slot() is counter.by_slot()
    assert counter.nbytes > 4 * 5000 + sum(array.nbytes for array in counter.by_slot())


def test_terminating_pods_leave_the_counts_with_their_node() -> None:
    mirror = mirror_of(replace(POD, terminating=True), replace(POD, uid="q", name="q"))
    assert counted(mirror) == {"a1": 1}
    tell(mirror, "Delete", A1)
    assert counted(mirror) == {}
    tell(mirror, "Add", replace(A1, labels={}))
    assert counted(mirror) == {"a1": 1}
    assert counted(mirror, selecting(app="web", tier="x")) == {}


def test_a_raw_score_of_minus_1_is_that_of_a_node_that_is_not_scored() -> None:
    """NormalizeScore: invalidScore. A maxSkew of 0, which no API server takes, gives it to a domain without pods."""
    for raw, scores in (([-1, 0], [0, 100]), ([-1, -1], [0, 0])):
        assert SYSTEM.normalize(np.array(raw)).tolist() == scores
