"""NodeAffinity: which nodes meet what is required, and what they are worth by what is preferred.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go and k8s.io/component-helpers
scheduling/corev1/nodeaffinity/nodeaffinity.go.
"""

import json
import random
from collections.abc import Mapping, Sequence
from typing import Final

import pytest

from app.objects.decode_pod import decode_pod
from core.framework.interface import SKIP, SUCCESS, Code, Operation, Scope, Status
from core.mirror.cluster import ClusterMirror
from core.objects.affinity import NodeAffinity as AffinityToNodes
from core.objects.node import Node
from core.objects.pod import Pod
from core.plugins.nodeaffinity import NodeAffinity
from tests.builders import PREFERRED, REQUIRED, NodeBuilder, Object, expressed, make_node, make_pod
from tests.core.decoded import mirror_of, node_of, tell

NODES: Final = (
    make_node("n1").label("zone", "a").label("gen", "3"),
    make_node("n2").label("zone", "b").label("gen", "07").label("gpu", ""),
    make_node("n3").label("zone", "b").label("gen", "new"),
    make_node("bare"),
)
ALL: Final = [node.name for node in NODES]
IN_A: Final = expressed("zone", "In", "a")
IN_B: Final = expressed("zone", "In", "b")
BROKEN: Final = expressed("zone", "Near", "a")
BROKEN_TEXT: Final = (
    '[0].matchExpressions[0].operator: Unsupported value: "Near": supported values: '
    '"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
)

POD: Final = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) didn't match Pod's node affinity/selector",))
ENFORCED: Final = Status(
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) didn't match scheduler-enforced node affinity",)
)
CONFLICT: Final = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("pod affinity terms conflict",))


def field(operator: str, *values: str, key: str = "metadata.name") -> Object:
    """Make a node selector term of one matchFields requirement."""
    return {"matchFields": [{"key": key, "operator": operator, "values": list(values)}]}


def both(*terms: Object) -> Object:
    """Make a node selector term of all requirements of several."""
    members = ("matchExpressions", "matchFields")
    return {member: [each for term in terms for each in term.get(member, ())] for member in members}


def asking(
    required: Sequence[Object] | None = None,
    preferred: Sequence[tuple[int, Object]] = (),
    node_selector: Mapping[str, str] | None = None,
) -> Pod:
    """Make a pod with these required terms, preferred terms with their weights, and nodeSelector."""
    affinity: Object = {PREFERRED: [{"weight": weight, "preference": term} for weight, term in preferred]}
    if required is not None:
        affinity[REQUIRED] = {"nodeSelectorTerms": list(required)}
    pod = make_pod("p").obj()
    pod["spec"] = {"nodeSelector": dict(node_selector or {}), "affinity": {"nodeAffinity": affinity}}
    return decode_pod(json.dumps(pod).encode())


def added(required: Sequence[Object] | None = None, preferred: Sequence[tuple[int, Object]] = ()) -> AffinityToNodes:
    return asking(required, preferred).node_affinity


def filtered(plugin: NodeAffinity, mirror: ClusterMirror, pod: Pod, names: Sequence[str] = ALL) -> list[Status]:
    """Filter nodes by name; those that the mirror does not know are given whole."""
    status, state = plugin.pre_filter(mirror, pod)
    assert status == SUCCESS
    assert state is not None
    whole = {names.index(node.name): node_of(node) for node in NODES if node.name in names}
    verdicts = plugin.filter(state, mirror.batch(names, whole))
    return [verdicts.status(position) for position in range(len(names))]


def scored(plugin: NodeAffinity, mirror: ClusterMirror, pod: Pod, names: Sequence[str] = ALL) -> list[int]:
    """Score nodes by name; those that the mirror does not know are given whole."""
    batch = mirror.batch(names, {names.index(node.name): node_of(node) for node in NODES if node.name in names})
    status, state = plugin.pre_score(mirror, pod, batch)
    assert status == SUCCESS
    assert state is not None
    scores: list[int] = plugin.score(state, batch).tolist()
    return scores


KNOWN: Final = pytest.mark.parametrize(
    "known",
    [
        pytest.param(NODES, id="known-nodes"),
        pytest.param((), id="whole-nodes"),
        pytest.param(NODES[:2], id="some-of-each"),
    ],
)


@KNOWN
@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(asking([IN_B], node_selector={"gen": "new"}), ["n3"], id="node-selector-and-terms-are-both-met"),
        pytest.param(
            asking([both(expressed("gen", "Gt", "2"), expressed("gen", "Lt", "7"))]), ["n1"], id="gt-and-lt-of-a-label"
        ),
        pytest.param(asking([field("In", "n3")]), ["n3"], id="field-in"),
        pytest.param(asking([field("NotIn", "nobody")]), ALL, id="field-not-in-of-a-node-that-does-not-exist"),
        pytest.param(asking([field("In", "")]), [], id="no-node-has-an-empty-name"),
        pytest.param(asking([field("In", "n3"), IN_A]), ["n1", "n3"], id="field-or-label"),
        pytest.param(asking([field("In", "", key="metadata.uid")]), ALL, id="another-field-is-asked-to-be-empty"),
        pytest.param(asking([]), [], id="no-terms-match-nothing"),
        pytest.param(asking([BROKEN, IN_A]), ["n1"], id="beside-a-broken-term-the-others-stand"),
        pytest.param(asking([field("In", "n1", "n2")]), [], id="a-field-with-two-values-is-broken"),
    ],
)
def test_a_node_fits_that_meets_what_is_required(known: Sequence[NodeBuilder], pod: Pod, expected: list[str]) -> None:
    found = filtered(NodeAffinity(), mirror_of(*known), pod)
    assert found == [SUCCESS if name in expected else POD for name in ALL]


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(asking(), id="nothing"),
        pytest.param(asking(node_selector={}), id="an-empty-node-selector"),
        pytest.param(asking(preferred=[(1, IN_A)]), id="preferences"),
    ],
)
def test_a_pod_that_requires_nothing_is_skipped(pod: Pod) -> None:
    assert NodeAffinity(added_affinity=added(preferred=[(1, IN_A)])).pre_filter(mirror_of(*NODES), pod) == (SKIP, None)


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param([both(field("In", "n1"), field("In", "n2"))], CONFLICT, id="two-names-at-once"),
        pytest.param([both(field("In", "n1"), field("In", "n1"))], SUCCESS, id="one-name-twice"),
        pytest.param([both(field("In", "n1"), field("In", "n2")), field("In", "n3")], SUCCESS, id="one-of-two-terms"),
        pytest.param([both(field("In", "n1"), field("In", "n2")), IN_A], SUCCESS, id="beside-a-term-without-names"),
        pytest.param([both(field("In", "n1"), field("NotIn", "n1"))], SUCCESS, id="not-in-is-not-looked-at"),
        pytest.param([both(field("In", "x", key="a"), field("In", "y", key="a"))], SUCCESS, id="nor-are-other-fields"),
        pytest.param([both(field("In", "n1"), field("In", "n2"), BROKEN)], CONFLICT, id="a-broken-term-too"),
    ],
)
def test_terms_that_all_want_a_node_of_two_names_fail_the_pod(terms: Sequence[Object], expected: Status) -> None:
    status, state = NodeAffinity().pre_filter(mirror_of(*NODES), asking(terms))
    assert status == expected
    assert (state is None) is (expected is CONFLICT)


def test_names_that_conflict_are_told_before_what_the_scheduler_enforces() -> None:
    pod = asking([both(field("In", "n1"), field("In", "n2"))])
    assert NodeAffinity(added_affinity=added([IN_A])).pre_filter(mirror_of(*NODES), pod) == (CONFLICT, None)


@KNOWN
@pytest.mark.parametrize(
    ("enforced", "pod", "expected"),
    [
        pytest.param(added([IN_B]), asking(), [ENFORCED, SUCCESS, SUCCESS, ENFORCED], id="of-a-pod-that-asks-nothing"),
        pytest.param(added([IN_B]), asking([IN_A]), [ENFORCED, POD, POD, ENFORCED], id="before-what-the-pod-asks"),
        pytest.param(
            added([IN_B]), asking(node_selector={"gpu": ""}), [ENFORCED, SUCCESS, POD, ENFORCED], id="and-what-it-asks"
        ),
        pytest.param(added([field("In", "n3")]), asking(), [ENFORCED, ENFORCED, SUCCESS, ENFORCED], id="by-name"),
        pytest.param(added([]), asking(), [ENFORCED] * 4, id="no-terms-match-nothing"),
    ],
)
def test_added_affinity_is_required_of_the_nodes_of_every_pod(
    known: Sequence[NodeBuilder], enforced: AffinityToNodes, pod: Pod, expected: list[Status]
) -> None:
    assert filtered(NodeAffinity(added_affinity=enforced), mirror_of(*known), pod) == expected


# NewNodeSelector and NewPreferredSchedulingTerms, under the path of ValidateNodeAffinityArgs.
@pytest.mark.parametrize(
    ("affinity", "message"),
    [
        pytest.param(
            added([BROKEN]),
            f"addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms{BROKEN_TEXT}",
            id="required",
        ),
        pytest.param(
            added(preferred=[(1, BROKEN)]),
            f"addedAffinity.preferredDuringSchedulingIgnoredDuringExecution{BROKEN_TEXT}",
            id="preferred",
        ),
        pytest.param(
            added([BROKEN], [(1, BROKEN)]),
            f"[addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms{BROKEN_TEXT}, "
            f"addedAffinity.preferredDuringSchedulingIgnoredDuringExecution{BROKEN_TEXT}]",
            id="both",
        ),
    ],
)
def test_broken_added_affinity_is_refused_by_its_upstream_name(affinity: AffinityToNodes, message: str) -> None:
    with pytest.raises(ValueError, match="addedAffinity") as caught:
        NodeAffinity(added_affinity=affinity)
    assert str(caught.value) == message


@KNOWN
@pytest.mark.parametrize(
    ("preferred", "expected"),
    [
        pytest.param([(5, IN_B)], [0, 5, 5, 0], id="a-term-that-is-met"),
        pytest.param([(5, IN_B), (7, expressed("gpu", "Exists"))], [0, 12, 5, 0], id="terms-add-up"),
        pytest.param([(5, IN_B), (5, IN_B)], [0, 10, 10, 0], id="a-term-said-twice-counts-twice"),
        pytest.param([(5, both(IN_B, expressed("gpu", "Exists")))], [0, 5, 0, 0], id="all-requirements-of-a-term"),
        pytest.param([(5, expressed("gen", "Gt", "3"))], [0, 5, 0, 0], id="gt"),
        pytest.param([(5, field("In", "bare"))], [0, 0, 0, 5], id="field-in"),
        pytest.param([(5, field("NotIn", "bare")), (1, IN_A)], [6, 5, 5, 0], id="field-not-in"),
        pytest.param([(0, IN_B), (5, {}), (3, IN_A)], [3, 0, 0, 0], id="weight-0-and-empty-terms-are-passed-over"),
        pytest.param([(0, BROKEN), (3, IN_A)], [3, 0, 0, 0], id="broken-with-weight-0-is-passed-over"),
        pytest.param([(-5, IN_B), (3, IN_A)], [3, -5, -5, 0], id="a-negative-weight-is-not-checked"),
    ],
)
def test_a_node_scores_the_weights_of_the_terms_that_it_meets(
    known: Sequence[NodeBuilder], preferred: list[tuple[int, Object]], expected: list[int]
) -> None:
    assert scored(NodeAffinity(), mirror_of(*known), asking(preferred=preferred)) == expected


def test_added_preferences_add_to_those_of_the_pod() -> None:
    plugin = NodeAffinity(added_affinity=added(preferred=[(10, IN_A), (1, IN_B)]))
    assert scored(plugin, mirror_of(*NODES), asking()) == [10, 1, 1, 0]
    assert scored(plugin, mirror_of(*NODES), asking(preferred=[(5, IN_A)])) == [15, 1, 1, 0]


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(asking([IN_A]), SKIP, id="no-preferences"),
        pytest.param(
            asking(preferred=[(1, BROKEN)]), Status(Code.ERROR, (BROKEN_TEXT,)), id="a-broken-one-is-an-error"
        ),
        pytest.param(
            asking(preferred=[(1, IN_A), (1, BROKEN)]),
            Status(Code.ERROR, (BROKEN_TEXT.replace("[0]", "[1]", 1),)),
            id="although-others-stand",
        ),
    ],
)
def test_a_pod_without_preferences_or_with_a_broken_one_is_not_scored(pod: Pod, expected: Status) -> None:
    mirror = mirror_of(*NODES)
    assert NodeAffinity().pre_score(mirror, pod, mirror.batch(ALL)) == (expected, None)


def test_with_none_but_empty_preferences_every_node_is_scored_with_zero() -> None:
    plugin, mirror = NodeAffinity(), mirror_of(*NODES)
    status, state = plugin.pre_score(mirror, asking(preferred=[(0, IN_A), (1, {})]), mirror.batch(ALL))
    assert (status, state is None) == (SUCCESS, False)
    assert scored(plugin, mirror, asking(preferred=[(0, IN_A), (1, {})])) == [0, 0, 0, 0]


def test_a_name_of_which_nothing_is_known_does_no_harm() -> None:
    pod = asking([field("In", "ghost"), IN_A], [(1, field("NotIn", "ghost"))])
    assert filtered(NodeAffinity(), mirror_of(*NODES), pod, ["ghost", "n1", "bare"])[1:] == [SUCCESS, POD]
    assert scored(NodeAffinity(), mirror_of(*NODES), pod, ["ghost", "n1"])[1:] == [1]


def test_the_plugin_says_what_it_follows_from() -> None:
    plugin, mirror = NodeAffinity(), mirror_of(*NODES)
    pod = asking([IN_A], [(1, IN_A)])
    _, required = plugin.pre_filter(mirror, pod)
    _, preferred = plugin.pre_score(mirror, pod, mirror.batch(ALL))
    assert required is not None
    assert preferred is not None
    assert (plugin.name, plugin.kinds, plugin.class_fields) == ("NodeAffinity", (Node,), ("node_affinity",))
    assert (plugin.filter_versions(required), plugin.score_versions(preferred)) == ((), ())
    assert plugin.scores_alone


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(make_node("n"), make_node("n").label("gpu", ""), True, id="a-label-comes"),
        pytest.param(make_node("n").label("gpu", ""), make_node("n"), True, id="a-label-goes"),
        pytest.param(make_node("n").label("zone", "a"), make_node("n").label("zone", "b"), True, id="a-value-changes"),
        pytest.param(make_node("n"), make_node("n").unschedulable(), False, id="the-node-is-cordoned"),
        pytest.param(make_node("n"), make_node("n").condition("Ready", "True"), False, id="the-node-is-ready"),
        pytest.param(make_node("n"), make_node("n").image(7, "i"), False, id="an-image-is-pulled"),
    ],
)
def test_labels_that_change_invalidate_the_node(before: NodeBuilder, after: NodeBuilder, *, expected: bool) -> None:
    (rule,) = NodeAffinity().invalidated_by
    assert (rule.kind, rule.operations, rule.scope) == (Node, (Operation.UPDATE,), Scope.NODE)
    assert rule.touches(node_of(before), node_of(after)) is expected


@pytest.mark.parametrize("seed", range(10))
def test_answers_after_any_events_are_those_of_each_node_judged_alone(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a test's choice
    enforced = added([_random_term(chance), IN_B])
    plugin, mirror = NodeAffinity(added_affinity=enforced), mirror_of(*NODES)
    for _ in range(100):
        tell(mirror, chance.choice(("Add", "Add", "Delete")), _random_node(chance))
        pod = asking(
            [_random_term(chance) for _ in range(chance.randrange(4))],
            [(chance.randrange(5), _random_term(chance)) for _ in range(3)],
            chance.choice(({}, {"zone": "a"})),
        )
        nodes = [node for _, node in mirror.nodes]
        batch = mirror.batch([node.name for node in nodes])
        _, required = plugin.pre_filter(mirror, pod)
        if required is not None:
            verdicts = plugin.filter(required, batch)
            found = [verdicts.status(position) for position in range(len(batch))]
            assert found == [_verdict(enforced, pod.node_affinity, node) for node in nodes]
        _, preferred = plugin.pre_score(mirror, pod, batch)
        if preferred is not None:
            assert plugin.score(preferred, batch).tolist() == [_worth(pod.node_affinity, node) for node in nodes]


def _verdict(enforced: AffinityToNodes, asked: AffinityToNodes, node: Node) -> Status:
    if not enforced.matches(node.labels, node.name):
        return ENFORCED
    return SUCCESS if asked.matches(node.labels, node.name) else POD


def _worth(asked: AffinityToNodes, node: Node) -> int:
    return sum(each.weight for each in asked.preferred if each.term.matches(node.labels, node.name))


def _random_node(chance: random.Random) -> NodeBuilder:
    node = make_node(f"n{chance.randrange(40)}")
    for key, values in (("zone", "ab"), ("gen", "123x")):
        if chance.random() < 0.8:
            node = node.label(key, chance.choice(values))
    return node


def _random_term(chance: random.Random) -> Object:
    requirements = (
        IN_A,
        expressed("zone", "NotIn", "b"),
        expressed("gen", "Exists"),
        expressed("gen", "DoesNotExist"),
        expressed("gen", "Gt", "1"),
        expressed("gen", "Lt", "3"),
        field("In", f"n{chance.randrange(40)}"),
        field("NotIn", f"n{chance.randrange(40)}"),
    )
    return both(*chance.sample(requirements, chance.randrange(3)))
