"""The plugin's arguments, its Pre extension points, what invalidates its answers, and that kept ones are right."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import Action, ClusterEvent, Object
from core.framework.evaluation import Evaluation, FreshEvaluation
from core.framework.interface import SKIP, SUCCESS, Code, InvalidationRule, Operation, Scope, Status
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.affinity import NodeAffinity
from core.objects.kinds import ControllerRef, ReplicaSet, ReplicationController, Service, StatefulSet
from core.objects.node import Node
from core.objects.pod import HONOR, SCHEDULE_ANYWAY, Pod, SpreadConstraint, Taint, Toleration
from core.plugins.podtopologyspread.plugin import PodTopologySpread
from tests.core.plugins.podtopologyspread.spreading import (
    A1,
    A2,
    B1,
    HOST,
    NAMES,
    ZONE,
    incoming,
    mirror_of,
    must,
    placed,
    selecting,
    should,
)

LISTED: Final = PodTopologySpread(defaulting_type="List")
SYSTEM: Final = PodTopologySpread()
HARD_DEFAULT: Final = SpreadConstraint(1, ZONE)
SOFT_DEFAULT: Final = SpreadConstraint(1, HOST, SCHEDULE_ANYWAY)
WITH_DEFAULTS: Final = PodTopologySpread(defaulting_type="List", default_constraints=(HARD_DEFAULT, SOFT_DEFAULT))
WEB: Final = Service("default", "web", selecting(app="web"))
OWNED: Final = ControllerRef("ReplicaSet", "rs", "uid", "apps/v1")
OWNER: Final = ReplicaSet("default", "rs", selector=selecting(app="web"))
OWNED_BY_A_STATEFUL_SET: Final = replace(OWNED, kind="StatefulSet")
STATEFUL: Final = StatefulSet("default", "rs", OWNER.selector)


def pre_filter(plugin: PodTopologySpread, pod: Pod, *objects: Object) -> Status:
    status, state = plugin.pre_filter(mirror_of(*objects), pod)
    assert (state is not None) is (status == SUCCESS)
    return status


def pre_score(plugin: PodTopologySpread, pod: Pod, *objects: Object) -> Status:
    mirror = mirror_of(*objects)
    status, state = plugin.pre_score(mirror, pod, mirror.batch(NAMES))
    assert (state is not None) is (status == SUCCESS)
    return status


def test_the_plugin_has_upstream_s_name() -> None:
    assert SYSTEM.name == "PodTopologySpread"


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


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match=r"^defaultConstraints\[0\].maxSkew: must be greater than 0, got 0$"):
        PodTopologySpread(defaulting_type="List", default_constraints=(SpreadConstraint(0, ZONE),))


@pytest.mark.parametrize(
    ("plugin", "pod", "objects", "filtered", "scored"),
    [
        pytest.param(LISTED, incoming(), [WEB], SKIP, SKIP, id="no-constraints"),
        pytest.param(LISTED, incoming(must(ZONE)), [], SUCCESS, SKIP, id="hard"),
        pytest.param(LISTED, incoming(should(ZONE)), [], SKIP, SUCCESS, id="soft"),
        pytest.param(LISTED, incoming(should(ZONE), must(HOST)), [], SUCCESS, SUCCESS, id="both"),
        pytest.param(WITH_DEFAULTS, incoming(), [WEB], SUCCESS, SUCCESS, id="defaults"),
        pytest.param(WITH_DEFAULTS, incoming(), [], SKIP, SKIP, id="defaults-for-a-pod-that-nothing-selects"),
        pytest.param(WITH_DEFAULTS, incoming(should(ZONE)), [WEB], SKIP, SUCCESS, id="own-ones-instead-of-defaults"),
        pytest.param(SYSTEM, incoming(), [WEB], SKIP, SUCCESS, id="system-defaults"),
        pytest.param(SYSTEM, incoming(controller=OWNED), [OWNER], SKIP, SUCCESS, id="system-defaults-by-replica-set"),
        pytest.param(
            WITH_DEFAULTS,
            incoming(controller=OWNED_BY_A_STATEFUL_SET),
            [STATEFUL],
            SUCCESS,
            SUCCESS,
            id="defaults-by-stateful-set",
        ),
    ],
)
def test_a_side_without_constraints_is_skipped(
    plugin: PodTopologySpread, pod: Pod, objects: Sequence[Object], filtered: Status, scored: Status
) -> None:
    assert (filtered, scored) == (pre_filter(plugin, pod, *objects), pre_score(plugin, pod, *objects))


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


Answers: TypeAlias = tuple[Mapping[str, Status], Sequence[int] | None]


def answers(plugin: PodTopologySpread, evaluation: Evaluation, batch: NodeBatch) -> Answers:
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
    _, found = answers(plugin, FreshEvaluation(mirror, incoming()), mirror.batch(NAMES))
    assert scores == found


def test_default_constraints_filter() -> None:
    mirror = mirror_of(WEB, *placed(a1="web"))
    statuses, _ = answers(WITH_DEFAULTS, FreshEvaluation(mirror, incoming()), mirror.batch(["a1", "a2", "b1"]))
    assert [status.code for status in statuses.values()] == [Code.UNSCHEDULABLE, Code.UNSCHEDULABLE, Code.SUCCESS]


def rule(kind: type, operation: Operation) -> InvalidationRule:
    (found,) = [each for each in LISTED.invalidated_by if each.kind is kind and operation in each.operations]
    return found


@pytest.mark.parametrize("operation", [Operation.ADD, Operation.DELETE])
def test_a_node_that_comes_or_goes_touches_all_nodes(operation: Operation) -> None:
    found = rule(Node, operation)
    assert found.scope is Scope.ALL
    assert found.touches(None, A1)
    assert found.touches(A1, None)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param(replace(A1, labels={**A1.labels, ZONE: "b"}), True, id="label-changed"),
        pytest.param(replace(A1, labels={**A1.labels, "disk": "ssd"}), True, id="label-added"),
        pytest.param(replace(A1, labels={ZONE: "a"}), True, id="label-removed"),
        pytest.param(replace(A1, taints=(Taint("x"),)), True, id="taint-added"),
        pytest.param(replace(A1, resource_version="2", conditions={"Ready": "True"}), False, id="heartbeat"),
        pytest.param(replace(A1, images={"i": 1}, allocatable={"cpu": 1}), False, id="images-and-amounts"),
        pytest.param(replace(A1, unschedulable=True), False, id="cordon-without-its-taint"),
    ],
)
def test_a_node_s_labels_and_taints_touch_all_nodes(after: Node, *, expected: bool) -> None:
    found = rule(Node, Operation.UPDATE)
    assert found.scope is Scope.ALL
    assert (expected, expected) == (found.touches(A1, after), found.touches(after, A1))


@pytest.mark.parametrize("operation", [*Operation])
def test_pods_touch_through_the_counters(operation: Operation) -> None:
    assert rule(Pod, operation).scope is Scope.COUNTERS


C1: Final = Node("c1", {ZONE: "c", HOST: "c1"})
TAINTED: Final = Taint("dedicated", "x", "NoSchedule")


@pytest.mark.parametrize(
    ("before", "event", "expected"),
    [
        pytest.param([], ("Add", C1), Code.UNSCHEDULABLE, id="an-empty-domain-that-comes"),
        pytest.param([C1], ("Delete", C1), Code.SUCCESS, id="an-empty-domain-that-goes"),
        pytest.param([C1], ("Update", replace(C1, labels={ZONE: "b"})), Code.SUCCESS, id="a-node-that-changes-domain"),
        pytest.param([C1], ("Update", replace(C1, taints=(TAINTED,))), Code.SUCCESS, id="a-node-that-counts-no-more"),
        pytest.param([C1], ("Add", *placed(c1="web")), Code.SUCCESS, id="the-first-pod-of-a-domain"),
        pytest.param([], ("Delete", *placed(b1="web")), Code.UNSCHEDULABLE, id="the-last-pod-of-a-domain"),
    ],
)
def test_a_node_is_judged_anew_after_a_change_far_from_it(
    before: Sequence[Object], event: tuple[Action, Object], expected: Code
) -> None:
    mirror = mirror_of(*before, *placed(a1="web", b1="web"), nodes=(A1, B1))
    cache = EquivalenceCache(mirror, (LISTED,), CacheOptions(mode="spec"))
    pod, batch = incoming(must(ZONE, node_taints_policy=HONOR)), mirror.batch(["a1"])
    first, _ = answers(LISTED, cache.evaluation(pod), batch)
    mirror.apply(ClusterEvent(*event))
    second, _ = answers(LISTED, cache.evaluation(pod), batch)
    assert expected == second["a1"].code != first["a1"].code


NODES: Final = (
    *(A1, A2, B1, C1),
    *(replace(A1, labels={**A1.labels, ZONE: "b"}), replace(A2, labels={HOST: "a2"}), replace(B1, taints=(TAINTED,))),
    *(replace(B1, labels={**B1.labels, "disk": "ssd"}), replace(A1, labels={**A1.labels, "disk": "ssd"})),
    *(Node(f"more-{number}", {ZONE: f"d{number}", HOST: f"more-{number}"}) for number in range(14)),
)
QUESTIONS: Final = (
    incoming(must(ZONE), should(HOST)),
    incoming(must(HOST), must(ZONE, 2, min_domains=3), should(ZONE)),
    incoming(must(ZONE, 1, selecting(), match_label_keys=("app",)), app="db"),
    incoming(must(ZONE, node_taints_policy=HONOR), should(ZONE, node_taints_policy=HONOR)),
    incoming(must(ZONE), tolerations=frozenset({Toleration("dedicated", "Exists")})),
    incoming(must(HOST), should(ZONE), node_affinity=NodeAffinity(selecting(disk="ssd"))),
    incoming(),
    incoming(app="db", controller=OWNED),
    incoming(controller=OWNED_BY_A_STATEFUL_SET),
)
pods = st.builds(
    lambda number, app, node, ends: Pod(str(number), "default", str(number), {"app": app}, node, **ends),
    st.integers(0, 9),
    st.sampled_from(("web", "web", "db")),
    st.sampled_from((*NAMES[:3], "c1", "more-0")),
    st.sampled_from(({}, {}, {"terminating": True}, {"terminal": True})),
)
others = st.builds(
    lambda known, app: replace(known, selector=selecting(app=app)),
    st.sampled_from((WEB, OWNER, STATEFUL)),
    st.sampled_from(("web", "db")),
)
events = st.tuples(st.sampled_from(("Add", "Update", "Delete")), st.one_of(pods, pods, st.sampled_from(NODES), others))


@given(st.lists(events, max_size=25), st.data())
def test_kept_answers_are_those_of_a_mirror_made_anew(
    stream: Sequence[tuple[Action, Object]], data: st.DataObject
) -> None:
    plugin = data.draw(st.sampled_from((SYSTEM, WITH_DEFAULTS)))
    mirror = mirror_of(nodes=(A1, B1))
    cache = EquivalenceCache(mirror, (plugin,), CacheOptions(mode="spec"))
    for action, each in stream:
        mirror.apply(ClusterEvent(action, each))
        pod = data.draw(st.sampled_from(QUESTIONS))
        names = list(mirror.nodes.slots)
        anew = made_anew(mirror)
        expected = answers(plugin, FreshEvaluation(anew, pod), anew.batch(names))
        assert expected == answers(plugin, cache.evaluation(pod), mirror.batch(names))


def made_anew(mirror: ClusterMirror) -> ClusterMirror:
    """Return a mirror that was told of what another holds, in another order."""
    held = [pod for _, pod in mirror.placed_pods()]
    objects: list[Object] = [*mirror.objects(Service).values()]
    objects += [*mirror.objects(ReplicaSet).values(), *mirror.objects(StatefulSet).values()]
    return mirror_of(*reversed(held), *objects, nodes=[node for _, node in mirror.nodes][::-1])
