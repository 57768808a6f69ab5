"""A replay as text: whether it is the same answer, how both ended, and the nodes that differ."""

from click import unstyle
from msgspec.structs import replace

from app.commands.printer import laid_out
from app.commands.replay_text import replay_text
from app.commands.text_columns import WIDTH
from app.explain.replay import NodeDifference, Replay, ReplayedResult
from app.verbs.observation import VerbOutcome

LONG = "node(s) had untolerated taint {dedicated: batch}, node(s) didn't match pod anti-affinity rules"
THEN = ReplayedResult(41, VerbOutcome.FIT, 5000, 4100, "", "1.36")
SAME = Replay(7, "2025-11-22T12:00:00.000Z", "filter", "shop/web", "as then", THEN, THEN, 0, [])
OTHER = replace(
    SAME,
    now=ReplayedResult(57, VerbOutcome.NO_FIT, 5000, 0, "", "1.37"),
    differing_nodes=4100,
    differences=[NodeDifference("a1", "", LONG), NodeDifference("b1", LONG, None), NodeDifference("c1", 0, 100)],
)
UNKNOWN = replace(SAME, nodes_asked="all known", differing_nodes=None)


def lines(replay: Replay, *, of_a_dump: bool = False) -> list[str]:
    found = unstyle(laid_out(replay_text(replay, of_a_dump=of_a_dump))).splitlines()
    assert max(map(len, found)) <= WIDTH
    return found


def test_the_same_result_is_shown_with_both_outcomes() -> None:
    assert lines(SAME) == [
        "Decision 7, filter of pod shop/web: the same result.",
        "",
        "                    THEN                      NOW",
        "  Answered          2025-11-22T12:00:00.000Z  now",
        "  Generation        41                        41",
        "  Kubernetes        1.36                      1.36",
        "  Outcome           fit                       fit",
        "  Nodes in request  5,000                     5,000",
        "  Nodes passed      4,100                     4,100",
    ]


def test_nodes_that_differ_are_told_with_all_that_is_said_of_them() -> None:
    told = lines(OTHER)
    assert told[0] == "Decision 7, filter of pod shop/web: another result for 4,100 nodes."
    assert told[10:] == [
        "Nodes that differ",
        "  NODE  THEN                                 NOW",
        "  a1    fits                                 node(s) had untolerated taint",
        "                                             {dedicated: batch}, node(s) didn't",
        "                                             match pod anti-affinity rules",
        "  b1    node(s) had untolerated taint        (no reason)",
        "        {dedicated: batch}, node(s) didn't",
        "        match pod anti-affinity rules",
        "  c1    0                                    100",
        "  ... and 4,097 more nodes, see --limit",
    ]


def test_a_dump_has_no_generation_that_could_be_compared() -> None:
    assert lines(OTHER, of_a_dump=True)[4] == "  Generation        41                        of the dump"


def test_what_cannot_be_compared_is_said() -> None:
    told = lines(UNKNOWN)
    assert told[:5] == [
        "Decision 7, filter of pod shop/web: the same outcome.",
        "No nodes are compared: the old response was too large to keep, or named none.",
        "Only the outcome, the number of nodes that passed and the error are compared.",
        "All known nodes are compared: the nodes of the old request are unknown.",
        "",
    ]
    assert "another outcome" in lines(replace(UNKNOWN, now=OTHER.now))[0]


def test_errors_are_told_and_a_pod_that_is_not_known_is_not() -> None:
    stale = replace(
        UNKNOWN, pod="", then=replace(THEN, outcome=VerbOutcome.STALE, passed=0, error="the mirror is stale")
    )
    told = lines(stale)
    assert told[0] == "Decision 7, filter: another outcome."
    assert told[-1] == "  Error             the mirror is stale       -"


def test_prioritize_scores_nodes() -> None:
    assert lines(replace(SAME, verb="prioritize"))[-1] == "  Nodes scored      4,100                     4,100"


def test_no_node_is_named_where_none_is_asked_for() -> None:
    assert lines(replace(OTHER, differences=[]))[-2:] == [
        "Nodes that differ",
        "  ... and 4,100 more nodes, see --limit",
    ]
