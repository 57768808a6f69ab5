"""What explanations judge beside what is served."""

from core.diagnosis.explained_profile import Judge, every_rule, served_alone
from core.profile import Profile, full_profile, parse_profile
from core.releases.differences import rules_of
from core.releases.release import Release
from tests.core.profile_parts import affinity_profile


def names(profile: Profile) -> tuple[list[str], list[str]]:
    return [each.name for each in profile.filters], [plugin.name for plugin, _ in profile.scores]


def test_every_rule_of_the_full_profile_is_judged_in_its_order_with_the_served_plugins_themselves() -> None:
    served = affinity_profile(hard_pod_affinity_weight=7)
    explained = every_rule(served)
    assert names(full_profile()) == names(explained.profile)
    assert served.filters[0] in explained.profile.filters
    assert served.scores[0] in explained.profile.scores  # with its weight
    assert explained.served is served


def test_plugins_tell_who_judges_by_them() -> None:
    explained = every_rule(parse_profile("filter:NodePorts,score:TaintToleration=4"))
    assert explained.judge_of_filter("NodePorts") is Judge.KINDRED
    assert explained.judge_of_filter("TaintToleration") is Judge.SCHEDULER
    assert explained.judge_of_score("TaintToleration") is Judge.KINDRED
    assert explained.judge_of_score("NodeAffinity") is Judge.SCHEDULER


def test_a_full_profile_is_explained_as_it_is() -> None:
    served = full_profile()
    assert every_rule(served) == served_alone(served)


def test_what_the_full_profile_does_not_have_comes_last() -> None:
    filters, _ = names(every_rule(parse_profile("CheckNodeDiskPressure,ServiceAffinity")).profile)
    assert filters[-2:] == ["CheckNodeDiskPressure", "ServiceAffinity"]


def test_parts_of_a_served_composite_are_asked_once() -> None:
    filters, _ = names(every_rule(parse_profile("GeneralPredicates")).profile)
    assert "GeneralPredicates" in filters
    assert not {"NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"} & {*filters}


def test_both_profiles_are_those_of_a_release() -> None:
    explained = every_rule(affinity_profile())
    assert "NodeDeclaredFeatures" not in names(explained.under(rules_of(Release(1, 34))).profile)[0]
    assert "NodeDeclaredFeatures" in names(explained.under(rules_of(Release(1, 37))).profile)[0]
