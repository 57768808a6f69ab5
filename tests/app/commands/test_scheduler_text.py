"""The scheduler's profile in an explanation, as text."""

from app.commands.explanation_text import profile_text, sample_text, scheduler_text, unscored_text
from core.diagnosis.not_judged import NotJudged
from core.diagnosis.scheduler_rules import SchedulerRules, SchedulerState
from core.profile import parse_profile

RULES = SchedulerRules(
    "mine",
    has_profile=True,
    off=parse_profile("NodeName,ImageLocality"),
    not_scored=(NotJudged("Mine", "no in-tree plugin"),),
    percentage_of_nodes_to_score=0,
)


def state(rules: SchedulerRules = RULES, nodes: int = 5000) -> SchedulerState:
    return rules.state((), nodes)


def text(lines: object) -> str:
    assert hasattr(lines, "__iter__")
    return " ".join(" ".join(lines).split())


def test_a_profile_with_all_rules_takes_no_line() -> None:
    whole = state(SchedulerRules("mine", has_profile=True))
    assert [*scheduler_text(whole), *unscored_text(whole), *sample_text(whole, 5000)] == []


def test_the_profile_and_the_extender_are_named() -> None:
    assert text(profile_text(state(), 10)) == "Scheduler profile mine; Kindred is not its extender"
    extender = SchedulerRules("mine", has_profile=True, extender="http://kindred:8888")
    assert text(profile_text(state(extender), 10)).endswith("; Kindred is its extender http://kindred:8888")
    assert not [*profile_text(state(SchedulerRules("other")), 10), *profile_text(None, 10)]


def test_a_sample_is_told_where_more_nodes_fit() -> None:
    told = text(sample_text(state(), 600))
    assert "kube-scheduler looks for 500 nodes that fit" in told
    assert "(percentageOfNodesToScore: by the size of the cluster)" in told
    assert not [*sample_text(state(), 500)]
