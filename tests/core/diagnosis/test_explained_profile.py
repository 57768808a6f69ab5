"""What explanations judge beside what is served, and what the scheduler's configuration changes."""

from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.explained_profile import ExplainProfile, Judge, SchedulerRules, every_rule, joined, served_alone
from core.diagnosis.node_detail import node_detail
from core.diagnosis.not_judged import NotJudged
from core.diagnosis.summary import summary
from core.diagnosis.wakes import ANY_EVENT, wakes
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod, PodResourceClaim
from core.profile import Profile, full_profile, parse_profile, with_devices
from core.releases.differences import rules_of
from core.releases.release import Release
from tests.core.decoded import mirror_of, pod_of
from tests.core.diagnosis.deciding import asking, roomy
from tests.core.profile_parts import affinity_profile


def plain(explained: ExplainProfile) -> ExplainProfile:
    """Return the profile for a pod without claims."""
    return explained.of_pod(ClusterMirror(), pod_of(asking()))


def names(profile: Profile) -> tuple[list[str], list[str]]:
    return [each.name for each in profile.filters], [plugin.name for plugin, _ in profile.scores]


def test_every_rule_of_the_full_profile_is_judged_in_its_order_with_the_served_plugins_themselves() -> None:
    served = affinity_profile(hard_pod_affinity_weight=7)
    explained = every_rule(served)
    assert names(full_profile()) == names(plain(explained).profile)
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
    assert plain(every_rule(served)) == served_alone(served)
    assert plain(every_rule(served)).profile is served


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


SCHEDULER = parse_profile("filter:NodeName,filter:NodeAffinity,score:NodeAffinity=2")
REQUESTED = parse_profile("filter:NodeResourcesFit,filter:NodeAffinity,score:ImageLocality")
OFF = with_devices(parse_profile("TaintToleration,NodeDeclaredFeatures"))
RULES = SchedulerRules(
    "mine",
    has_profile=True,
    filters=frozenset({"NodeName", "NodeAffinity"}),
    scores=frozenset({"NodeAffinity"}),
    extender_filters=frozenset({"NodeResourcesFit", "NodeAffinity"}),
    extender_scores=frozenset({"ImageLocality"}),
    off=OFF,
    not_judged=(NotJudged("Mine", "no in-tree plugin"),),
    percentage_of_nodes_to_score=30,
)
JUDGED = joined(SCHEDULER, REQUESTED, {"NodeAffinity": 2, "ImageLocality": 1})
EXPLAINED = ExplainProfile(JUDGED, REQUESTED, RULES)


def decision(pod: Pod, *, cpu: str = "8", explained: ExplainProfile = EXPLAINED) -> Diagnosis:
    mirror = mirror_of(roomy("n1", cpu, disk="ssd"))
    return Diagnosis(explained, mirror, pod, mirror.batch(["n1"]))


def test_the_scheduler_asks_its_own_plugins_first_and_each_plugin_is_asked_once() -> None:
    assert [each.name for each in JUDGED.filters] == ["NodeName", "NodeAffinity", "NodeResourcesFit"]
    assert JUDGED.filters[1] is SCHEDULER.filters[1]
    assert [(plugin.name, weight) for plugin, weight in JUDGED.scores] == [("NodeAffinity", 2), ("ImageLocality", 1)]


def test_who_judges_is_known() -> None:
    judges = {each.name: EXPLAINED.judge_of_filter(each.name) for each in JUDGED.filters}
    assert judges == {"NodeName": Judge.SCHEDULER, "NodeAffinity": Judge.BOTH, "NodeResourcesFit": Judge.KINDRED}
    assert EXPLAINED.judge_of_score("NodeAffinity") is Judge.SCHEDULER
    assert EXPLAINED.judge_of_score("ImageLocality") is Judge.KINDRED


def test_without_a_profile_of_the_scheduler_the_serving_profile_says_who_judges() -> None:
    unknown = ExplainProfile(full_profile(), REQUESTED, SchedulerRules("other"))
    assert unknown.configured is None
    assert unknown.judge_of_filter("NodeResourcesFit") is Judge.KINDRED
    assert unknown.judge_of_filter("NodeName") is Judge.SCHEDULER
    assert unknown.runs_in_scheduler("TaintToleration")


def test_what_is_off_is_said_and_is_not_the_same_as_what_was_not_judged() -> None:
    reported = summary(decision(pod_of(asking())), 5)
    assert reported.scheduler is not None
    assert reported.scheduler.filters_off == ["TaintToleration"]
    assert reported.scheduler.scores_off == ["TaintToleration"]
    assert [each.plugin for each in reported.not_judged] == ["Mine"]


def test_a_release_without_a_plugin_does_not_have_it_off() -> None:
    for minor, expected in ((34, ["TaintToleration"]), (37, ["TaintToleration", "NodeDeclaredFeatures"])):
        off = RULES.of_pod(ClusterMirror(), pod_of(asking())).under(rules_of(Release(1, minor))).off
        assert [each.name for each in off.filters] == expected


def test_the_rule_of_devices_is_off_for_the_pods_that_it_is_about() -> None:
    pod = Pod(uid="u", namespace="default", name="p", resource_claims=(PodResourceClaim("c", "c"),))
    reported = decision(pod)
    assert reported.scheduler is not None
    assert "DynamicResources" in reported.scheduler.filters_off
    assert "DynamicResources" not in {each.plugin for each in reported.not_judged}


def test_a_plugin_of_the_scheduler_wakes_by_its_events_and_a_refusal_of_kindred_by_any() -> None:
    by_scheduler = wakes(decision(pod_of(asking().node_selector({"disk": "hdd"}))))
    assert {each.plugin for each in by_scheduler} == {"NodeAffinity"}
    assert wakes(decision(pod_of(asking(cpu="9")))) == [ANY_EVENT]


def test_what_filter_returns_is_judged_by_kindreds_own_arguments() -> None:
    ignoring = parse_profile("filter:NodeResourcesFit", {"NodeResourcesFit": {"ignored_resources": ["x/gpu"]}})
    strict = parse_profile("filter:NodeResourcesFit")
    rules = SchedulerRules("mine", has_profile=True, filters=frozenset({"NodeResourcesFit"}))
    pod = pod_of(asking(**{"x/gpu": 1}))
    detail = node_detail(decision(pod, explained=ExplainProfile(ignoring, strict, rules)), 0, 5)
    assert (detail.fits, detail.answered) == (True, False)


def test_what_is_off_is_not_measured_either() -> None:
    rules = SchedulerRules("mine", has_profile=True, filters=frozenset({"NodeName"}), off=REQUESTED)
    explained = ExplainProfile(parse_profile("filter:NodeName"), REQUESTED, rules)
    found = decision(pod_of(asking(cpu="9")), explained=explained)
    reported = summary(found, 5)
    assert (reported.fit, reported.answered_fit) == (1, 0)
    assert not reported.amounts.resources
    assert not node_detail(found, 0, 5).amounts.resources


def test_a_sample_is_as_large_as_kube_scheduler_takes_it() -> None:
    assert RULES.state(5000).nodes_to_score == 1500
    assert RULES.state(200).nodes_to_score == 100
    assert RULES.state(7).nodes_to_score == 7


def test_nothing_is_said_of_a_scheduler_whose_configuration_is_unknown() -> None:
    assert decision(pod_of(asking()), explained=ExplainProfile(JUDGED, REQUESTED)).scheduler is None
    assert Profile((), ()) == SchedulerRules("other").off
