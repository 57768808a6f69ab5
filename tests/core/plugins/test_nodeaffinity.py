"""NodeAffinity: names that conflict, what the scheduler adds for every pod, and terms that could not be parsed.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go and k8s.io/component-helpers
scheduling/corev1/nodeaffinity/nodeaffinity.go.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final

import pytest

from app.objects.decode_pod import decode_pod
from core.framework.interface import SKIP, SUCCESS, Code, Status
from core.mirror.cluster import ClusterMirror
from core.objects.affinity import NodeAffinity as AffinityToNodes
from core.objects.pod import Pod
from core.plugins.nodeaffinity.plugin import NodeAffinity
from tests.builders import PREFERRED, REQUIRED, NodeBuilder, Object, expressed, make_node, make_pod
from tests.core.decoded import mirror_of, node_of

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
