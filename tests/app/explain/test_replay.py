"""What is told of a decision that is asked again."""

import json
from typing import Any

import pytest

from app.explain.decisions import RecordedDecision
from app.explain.replay import NodeDifference, NotReplayableError, Replay, Replayer
from app.objects.decode_node import decode_node
from app.objects.decode_pod import decode_pod
from app.settings import Settings
from app.verbs.observation import Asked, VerbOutcome
from app.wiring.engine import create_extender, create_replayer
from core.events import Action, ClusterEvent
from core.mirror.cluster import ClusterMirror
from tests.app.explain.noted_decisions import NOON, Asking
from tests.app.questions import (
    AFFINITY_RULES,
    ANTI_AFFINITY_RULES,
    EXISTING_ANTI_AFFINITY_RULES,
    NEAR_WEB,
    ZONE,
    by_name,
    by_object,
    mirror_of,
    shop,
    state,
)
from tests.builders import NodeBuilder, PodBuilder, labelled, make_node, make_pod, term

NODES = ("a1", "a2", "b1", "c1", "bare")
INTRUDER = make_pod("in").uid("u").label("app", "intruder")
FOND = make_pod("in").uid("u").preferred_affinity(5, term(ZONE, labelled(app="web")))
PADDING = {"padding": "x" * 9000}


@pytest.fixture
def asking() -> Asking:
    return Asking(shop())


def tell(mirror: ClusterMirror, action: Action, built: NodeBuilder | PodBuilder) -> None:
    decode = decode_node if isinstance(built, NodeBuilder) else decode_pod
    mirror.apply(ClusterEvent(action, decode(built.json())))


def replayed(asking: Asking, number: int, limit: int = 100) -> Replay:
    decision = asking.decisions.get(number)
    assert decision is not None
    return Replayer(asking.mirror, lambda _: create_extender(Settings(), asking.mirror)).replay(decision, limit)


def padded(body: bytes) -> bytes:
    """Make a request too large to be kept."""
    args = json.loads(body)
    args["Pod"]["status"] = PADDING
    return json.dumps(args).encode()


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
def test_nothing_differs_while_nothing_has_changed(asking: Asking, verb: str) -> None:
    found = replayed(asking, asking.ask(by_name(FOND, *NODES), verb))
    assert (found.id, found.verb, found.nodes_asked) == (1, verb, "as then")
    assert (found.at, found.pod, found.same) == ("2025-11-22T12:00:00.000Z", "default/in", True)
    assert found.then == found.now
    assert (found.now.nodes, found.now.passed, found.now.error) == (5, 5, "")
    assert (found.differing_nodes, found.differences) == (0, [])


def test_the_nodes_that_are_refused_or_passed_on_only_now_are_told_with_their_reasons(asking: Asking) -> None:
    number = asking.ask(by_name(INTRUDER, *NODES))
    tell(asking.mirror, "Delete", make_pod("hermit").on("b1"))
    tell(asking.mirror, "Add", make_pod("new").on("c1").required_anti_affinity(term(ZONE, labelled(app="intruder"))))
    found = replayed(asking, number)
    assert (found.then.passed, found.now.passed) == (4, 4)
    assert found.then.generation < found.now.generation
    assert (found.differing_nodes, found.same) == (2, False)
    assert sorted(found.differences, key=lambda each: each.node) == [
        NodeDifference("b1", EXISTING_ANTI_AFFINITY_RULES, ""),
        NodeDifference("c1", "", EXISTING_ANTI_AFFINITY_RULES),
    ]
    assert len(replayed(asking, number, limit=1).differences) == 1


def test_a_node_that_preemption_could_not_help_is_told_with_its_reason_too(asking: Asking) -> None:
    number = asking.ask(by_name(make_pod("in").required_affinity(NEAR_WEB), "a1", "b1"))
    tell(asking.mirror, "Delete", make_pod("web-3").on("b1"))
    assert replayed(asking, number).differences == [NodeDifference("b1", "", AFFINITY_RULES)]


def test_of_scores_those_that_are_others_now_are_told(asking: Asking) -> None:
    number = asking.ask(by_name(FOND, *NODES), "prioritize")
    for pod in ("x", "y", "z"):
        tell(asking.mirror, "Add", make_pod(pod).label("app", "web").on("c1"))
    found = replayed(asking, number)
    assert found.differences == [NodeDifference("c1", 0, 100)]


def test_a_node_that_is_not_in_the_answer_any_more_is_told(asking: Asking) -> None:
    number = asking.ask(by_name(INTRUDER, "a1", "c1"))
    decision = asking.decisions.get(number)
    assert decision is not None
    asked = decision._replace(request=by_name(INTRUDER, "a1"))
    found = Replayer(asking.mirror, lambda _: create_extender(Settings(), asking.mirror)).replay(asked, 100)
    assert found.differences == [NodeDifference("c1", "", None)]


def test_whole_nodes_are_asked_about_again(asking: Asking) -> None:
    number = asking.ask(by_object(INTRUDER, make_node("stranger"), make_node("b1").label(ZONE, "b")))
    tell(asking.mirror, "Delete", make_pod("hermit").on("b1"))
    assert replayed(asking, number).differences == [NodeDifference("b1", EXISTING_ANTI_AFFINITY_RULES, "")]


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
def test_a_request_that_was_too_large_is_made_again_from_the_answer(asking: Asking, verb: str) -> None:
    number = asking.ask(padded(by_name(INTRUDER, "a1", "b1")), verb)
    found = replayed(asking, number)
    assert (found.nodes_asked, found.now.nodes, found.differing_nodes) == ("as then", 2, 0)


def test_where_both_were_too_large_all_known_nodes_are_asked_about_and_none_is_compared(asking: Asking) -> None:
    asking.ask(by_name(INTRUDER, "a1", "b1"))
    decision = asking.decisions.get(1)
    assert decision is not None
    tell(asking.mirror, "Delete", make_pod("hermit").on("b1"))
    replayer = Replayer(asking.mirror, lambda _: create_extender(Settings(), asking.mirror))
    found = replayer.replay(decision._replace(request=b"", response=b""), 100)
    assert (found.nodes_asked, found.then.nodes, found.now.nodes) == ("all known", 2, 5)
    assert (found.then.passed, found.now.passed) == (1, 5)
    assert (found.differing_nodes, found.differences) == (None, [])


@pytest.mark.parametrize(
    ("then", "same"),
    [
        pytest.param({}, True, id="alike"),
        pytest.param({"outcome": VerbOutcome.NO_FIT}, False, id="another-outcome"),
        pytest.param({"asked": Asked("default/in", "u", 5, 3)}, False, id="another-number-passed"),
        pytest.param({"asked": Asked("default/in", "u", 9, 4)}, True, id="of-more-nodes-as-many-passed"),
        pytest.param({"error": "stale"}, False, id="an-error"),
    ],
)
def test_without_nodes_to_compare_the_ends_are_compared(asking: Asking, then: dict[str, Any], *, same: bool) -> None:
    asking.ask(by_name(INTRUDER, *NODES))
    decision = asking.decisions.get(1)
    assert decision is not None
    replayer = Replayer(asking.mirror, lambda _: create_extender(Settings(), asking.mirror))
    found = replayer.replay(decision._replace(request=b"", response=b"", **then), 100)
    assert (found.differing_nodes, found.same) == (None, same)


def test_the_pod_does_not_stand_in_its_own_way_and_the_mirror_stays_as_it_was(asking: Asking) -> None:
    lonely = make_pod("in").uid("u").label("app", "in").required_anti_affinity(term(ZONE, labelled(app="in")))
    number = asking.ask(by_name(lonely, *NODES))
    tell(asking.mirror, "Add", lonely.on("a1"))
    before = state(asking.mirror)
    found = replayed(asking, number)
    assert (found.now.passed, found.differences) == (5, [])
    assert state(asking.mirror) == before
    tell(asking.mirror, "Add", lonely.uid("another").on("b1"))
    assert replayed(asking, number).differences == [NodeDifference("b1", "", ANTI_AFFINITY_RULES)]


def test_the_extender_that_answers_schedulers_is_not_told(asking: Asking) -> None:
    number = asking.ask(by_name(INTRUDER, "a1"))
    asking.ask(by_name(FOND, "a1"))
    before = [*asking.effects.recent_pods]
    replayed(asking, number)
    assert [*asking.effects.recent_pods] == before


def test_a_bad_request_is_as_bad_as_it_was(asking: Asking) -> None:
    found = replayed(asking, asking.ask(b'{"Nod":1}'))
    assert found.now.error == found.then.error == "Nod: unknown field; ExtenderArgs has Pod, Nodes, NodeNames"
    assert found.differing_nodes is None


@pytest.mark.parametrize(
    ("verb", "request_kept", "why"),
    [
        pytest.param("bind", b"", "only filter and prioritize can be replayed, and this was bind", id="bind"),
        pytest.param("filter", b"", "the service no longer has its request or its pod", id="unknown"),
    ],
)
def test_what_cannot_be_asked_again_is_refused(asking: Asking, verb: str, request_kept: bytes, why: str) -> None:
    asking.ask(by_name(INTRUDER, "a1"))
    decision = asking.decisions.get(1)
    assert decision is not None
    replayer = Replayer(asking.mirror, lambda _: create_extender(Settings(), asking.mirror))
    with pytest.raises(NotReplayableError) as refused:
        replayer.replay(decision._replace(verb=verb, request=request_kept, pod=b""), 100)
    assert str(refused.value) == why


def test_without_nodes_there_is_nothing_to_ask_about(asking: Asking) -> None:
    asking.ask(by_name(INTRUDER, "a1"))
    decision = asking.decisions.get(1)
    assert decision is not None
    empty = ClusterMirror()
    with pytest.raises(NotReplayableError, match="the mirror has no node"):
        Replayer(empty, lambda _: create_extender(Settings(), empty)).replay(
            decision._replace(request=b"", response=b""), 100
        )


def recorded(body: bytes, answer: bytes) -> RecordedDecision:
    """Record an answer to a request as it would have been given."""
    asked = Asked("default/p", "default/p", 3, 1)
    sizes = len(body), body, len(answer), answer
    return RecordedDecision(1, NOON, 1, "filter", VerbOutcome.FIT, 0.25, 0.0, asked, "", "", "", b"", *sizes, "1.34")


@pytest.mark.parametrize("scope", ["question", "any-node"])
def test_a_decision_is_the_same_while_its_node_is_one_of_the_best(scope: str) -> None:
    settings = Settings(answer="decide", decide_scope=scope, profile="full")
    mirror = mirror_of(*(make_node(name).allocatable(cpu="4", pods=10) for name in ("n1", "n2", "n3")))
    replayer = create_replayer(settings, mirror)
    body = by_name(make_pod("p").requests(cpu="1"), "n1", "n2", "n3")
    for node in ("n1", "n2", "n3"):
        decided = b'{"Nodes":null,"NodeNames":["%b"],"FailedNodes":{},"FailedAndUnresolvableNodes":{}}' % node.encode()
        found = replayer.replay(recorded(body, decided), 10)
        assert (found.same, found.differences) == (True, [])
    tell(mirror, "Add", make_pod("busy").requests(cpu="1").on("n1"))
    found = replayer.replay(recorded(body, decided.replace(b"n3", b"n1")), 10)
    assert [(each.node, each.then, each.now) for each in found.differences] == [("n2", None, ""), ("n1", "", None)]
