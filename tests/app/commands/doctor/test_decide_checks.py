"""What has to hold where Kindred alone decides for a node."""

from typing import Any

import pytest

from app.commands.doctor.examination import REGISTRATION_CHECKS
from core.profile import full_profile
from tests.app.commands.doctor.registrations import (
    CLAIMS_IN_TREE,
    DECIDE,
    FULL_OFFLOAD,
    NEXT_TO,
    NOTHING_IN_TREE,
    OFF,
    SCORE_OFFLOAD,
    Case,
    assert_reported_apart,
    deciding,
    error,
    extenders,
    found,
    info,
    profile_changed,
    profiles,
    registration,
    warning,
)

OTHER = {"urlPrefix": "http://other", "nodeCacheCapable": True}
LISTED = {"decide": "listed-nodes"}
NAMES = ["kindred", "kindred-volumes", "kindred-groups"]
FIRST_ALONE = {"decide_claims_scheduler": "", "decide_groups_scheduler": ""}


def in_tree(point: str, name: str) -> dict[str, Any]:
    """Return the plugins of the profile `kindred` with one more enabled."""
    there = NOTHING_IN_TREE.get(point, {})
    return {**NOTHING_IN_TREE, point: {**there, "enabled": [*there.get("enabled", []), {"name": name}]}}


def without(*names: str) -> dict[str, Any]:
    """Return the plugins of the profile `kindred-volumes` with more of them off."""
    disabled = [*CLAIMS_IN_TREE["multiPoint"]["disabled"], *({"name": name} for name in names)]
    return {"multiPoint": {"disabled": disabled}}


WITH_PREEMPTION = {
    "multiPoint": {
        "disabled": [each for each in CLAIMS_IN_TREE["multiPoint"]["disabled"] if each["name"] != "DefaultPreemption"]
    }
}
NO_POST_FILTER = {
    "multiPoint": {
        "disabled": [{"name": "*"}],
        "enabled": [{"name": name} for name in ("PrioritySort", "SchedulingGates", "DefaultBinder")],
    }
}
NO_GATES = {
    "multiPoint": {
        "disabled": [{"name": "*"}],
        "enabled": [{"name": "PrioritySort"}, {"name": "DefaultBinder"}],
    }
}
SCHEDULERS = "decideSchedulers (KINDRED_DECIDE_SCHEDULERS)"
GROUPS = "decideGroupsScheduler (KINDRED_DECIDE_GROUPS_SCHEDULER)"
BUT_VOLUME_BINDING = ",".join(plugin.name for plugin in full_profile().filters if plugin.name != "VolumeBinding")


def switched_off(*names: str, at: str = "multiPoint") -> dict[str, Any]:
    return {at: {"disabled": [{"name": name} for name in names]}}


def waits(profile: int, plugin: str, **args: object) -> dict[str, Any]:
    another = {"name": "Mine", "args": ["of any form"]}
    return profile_changed(profile, pluginConfig=[another, {"name": plugin, "args": args}])


PREEMPT = "extenders[0].preemptVerb"
BIND = "extenders[0].bindVerb"
OTHER_BINDER = {"urlPrefix": "http://other", "bindVerb": "bind"}
CASES = {
    "the-cluster-s-own-scheduler-waits-for-kindred": error(
        "decide-scheduler",
        "profiles[0].schedulerName",
        deciding(profile_changed(0, schedulerName="default-scheduler"), {"decide_schedulers": []}),
        deciding(profile_changed(0, schedulerName="another"), {"decide_schedulers": []}),
    ),
    "the-cluster-s-own-scheduler-holds-the-lease": error(
        "decide-scheduler",
        "leaderElection.resourceName",
        deciding({**DECIDE, "leaderElection": {}}),
        deciding({**DECIDE, "leaderElection": {"leaderElect": False}}),
    ),
    "a-filter-in-tree-beside-any-node": error(
        "decide-filters",
        "profiles[0].plugins.filter",
        deciding(profile_changed(0, plugins=in_tree("multiPoint", "NodeAffinity"))),
        deciding(profile_changed(0, plugins=in_tree("multiPoint", "ImageLocality"))),
    ),
    "a-plugin-of-others-that-may-filter-beside-any-node": warning(
        "decide-filters",
        "profiles[0].plugins.multiPoint.enabled",
        deciding(profile_changed(0, plugins=in_tree("multiPoint", "Mine"))),
        deciding(profile_changed(0, plugins=in_tree("multiPoint", "Mine")), LISTED),
    ),
    "any-node-within-a-profile-with-all-its-filters": error(
        "decide-filters",
        "profiles[0].plugins.filter",
        deciding(profile_changed(0, plugins={})),
        deciding(profile_changed(0, plugins={"filter": {"disabled": [{"name": "*"}]}})),
    ),
    "a-sample-within-the-question": error(
        "sampling",
        "profiles[1].percentageOfNodesToScore",
        deciding(profile_changed(1, percentageOfNodesToScore=50)),
        deciding(),
    ),
    "another-filters": error(
        "other-extenders",
        "extenders[0].filterVerb",
        deciding(extenders(DECIDE, {**OTHER, "filterVerb": "filter"})),
        deciding(extenders(DECIDE, {**OTHER, "prioritizeVerb": "prioritize", "weight": 1})),
    ),
    "no-scheduler-for-claims": info(
        "decide-claims",
        "decideClaimsScheduler (KINDRED_DECIDE_CLAIMS_SCHEDULER)",
        deciding(settings={"decide_claims_scheduler": ""}),
        deciding(),
    ),
    "a-scheduler-for-claims-that-is-no-profile": warning(
        "decide-claims",
        "decideClaimsScheduler (KINDRED_DECIDE_CLAIMS_SCHEDULER)",
        deciding(settings={"decide_claims_scheduler": "volumes"}),
        deciding(),
    ),
    "claims-that-nobody-binds": error(
        "decide-claims",
        "profiles[1].plugins",
        deciding(profile_changed(1, plugins=without("VolumeBinding"))),
        deciding(profile_changed(1, plugins=without("NodeVolumeLimits"))),
    ),
    "resource-claims-that-nobody-reserves": error(
        "decide-claims",
        "profiles[1].plugins",
        deciding(
            profile_changed(1, plugins=CLAIMS_IN_TREE | {"reserve": {"disabled": [{"name": "DynamicResources"}]}})
        ),
        deciding(profile_changed(1, plugins=CLAIMS_IN_TREE | {"score": {"disabled": [{"name": "DynamicResources"}]}})),
    ),
    "preemption-without-filters": warning(
        "decide-preemption",
        "profiles[1].plugins.postFilter",
        deciding(profile_changed(1, plugins=WITH_PREEMPTION)),
        deciding(),
    ),
    "nominations-that-are-cleared": warning(
        "decide-preemption",
        "profiles[0].plugins.postFilter",
        deciding(profile_changed(0, plugins=NO_POST_FILTER)),
        deciding(profile_changed(0, plugins={**NO_POST_FILTER, "postFilter": {"enabled": [{"name": "Own"}]}})),
    ),
    "several-that-may-decide": info(
        "replicas",
        "leaderElection (KINDRED_LEADER_ELECTION)",
        deciding(settings={"leader_election": "off"}),
        deciding(),
    ),
    "a-rule-that-neither-keeps": error(
        "filter-by-nobody",
        "profiles[0].plugins",
        deciding(profile_changed(1, plugins={}), {"profile": "NodeAffinity,VolumeBinding", **LISTED}),
        deciding(settings=LISTED),
    ),
    "a-rule-for-bound-claims-that-neither-keeps": error(
        "filter-by-nobody",
        "profiles[0].plugins",
        deciding(settings={"profile": BUT_VOLUME_BINDING, **LISTED}),
        deciding(settings=LISTED),
    ),
    "nobody-preempts": warning(
        "filter-by-nobody", "profiles[1].plugins.postFilter", deciding(settings={"preempt": "off"}), deciding()
    ),
    "gates-that-nobody-keeps": error(
        "filter-by-nobody",
        "profiles[0].plugins.preEnqueue",
        deciding(profile_changed(0, plugins=NO_GATES)),
        deciding(),
    ),
    "the-gap-of-a-profile-that-is-not-decided-for": error(
        "gap",
        "extenders[0].bindVerb",
        deciding(settings=FIRST_ALONE),
        deciding(),
    ),
    "no-scheduler-for-groups": info(
        "decide-groups", GROUPS, deciding(settings={"decide_groups_scheduler": ""}), deciding()
    ),
    "a-scheduler-for-groups-that-is-no-profile": warning(
        "decide-groups", GROUPS, deciding(settings={"decide_groups_scheduler": "groups"}), deciding()
    ),
    "a-filter-off": error(
        "decide-groups",
        "profiles[2].plugins",
        deciding(profile_changed(2, plugins=switched_off("InterPodAffinity", at="filter"))),
        deciding(profile_changed(2, plugins=switched_off("InterPodAffinity", at="score"))),
    ),
    "the-minimum-off": error(
        "decide-groups",
        "profiles[2].plugins",
        deciding(profile_changed(2, plugins=switched_off("GangScheduling"))),
        deciding(profile_changed(2, plugins=switched_off("ImageLocality"))),
    ),
    "another-process": error(
        "decide-groups",
        SCHEDULERS,
        deciding(settings={"decide_schedulers": ["kindred", "b"]}),
        deciding(),
    ),
    "volumes-that-wait-for-longer": error(
        "decide-waits",
        "profiles[1].pluginConfig",
        deciding(waits(1, "VolumeBinding", bindTimeoutSeconds=900)),
        deciding(waits(1, "VolumeBinding", bindTimeoutSeconds=900), {"stale_after": 900}),
    ),
    "devices-that-wait-for-longer": error(
        "decide-waits",
        "profiles[2].pluginConfig",
        deciding(waits(2, "DynamicResources", bindingTimeout="11m")),
        deciding(waits(2, "DynamicResources", bindingTimeout="10m")),
    ),
    "the-gap": error("gap", BIND, registration(FULL_OFFLOAD, bindVerb=None), registration(FULL_OFFLOAD)),
    "the-gap-where-another-binds": error(
        "gap",
        "extenders[1].bindVerb",
        registration(extenders(FULL_OFFLOAD, OTHER_BINDER), bindVerb=None),
        registration(extenders(NEXT_TO, OTHER_BINDER)),
    ),
    "a-verb-that-binds-no-pod": error(
        "bind-off", BIND, registration(FULL_OFFLOAD, settings={"bind": False}), registration(FULL_OFFLOAD)
    ),
    "a-verb-that-others-can-use": info(
        "bind-off", BIND, registration(settings={"bind": True}), registration(settings={"bind": False})
    ),
    "several-that-may-bind": info(
        "replicas",
        "leaderElection (KINDRED_LEADER_ELECTION)",
        registration(FULL_OFFLOAD, settings={"leader_election": "off"}),
        registration(FULL_OFFLOAD),
    ),
    "a-verb-that-drops-every-node": error(
        "preempt",
        PREEMPT,
        registration(FULL_OFFLOAD, settings={"preempt": "off"}),
        registration(FULL_OFFLOAD, settings={"preempt": "evict"}),
    ),
    "victims-without-regard-to-what-kindred-filters": warning(
        "preempt", PREEMPT, registration(FULL_OFFLOAD, preemptVerb=None), registration(SCORE_OFFLOAD)
    ),
    "evicts-and-does-not-bind": error(
        "evict",
        BIND,
        registration(FULL_OFFLOAD, bindVerb=None, settings={"preempt": "evict"}),
        registration(FULL_OFFLOAD, bindVerb=None),
    ),
    "evicts-after-a-sample-of-a-profile": error(
        "evict",
        "profiles[0].percentageOfNodesToScore",
        registration(
            profiles(FULL_OFFLOAD, {"multiPoint": OFF}, percentageOfNodesToScore=50), settings={"preempt": "evict"}
        ),
        registration(
            profiles(
                {**FULL_OFFLOAD, "percentageOfNodesToScore": 0}, {"multiPoint": OFF}, percentageOfNodesToScore=100
            ),
            settings={"preempt": "evict"},
        ),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_is_found_where_it_is_wrong_and_nowhere_else(case: Case) -> None:
    assert_reported_apart(case)


@pytest.mark.parametrize("settings", [pytest.param({}, id="any-node"), pytest.param(LISTED, id="listed-nodes")])
def test_of_a_right_one_nothing_is_said(settings: dict[str, Any]) -> None:
    document = DECIDE if not settings else profile_changed(0, percentageOfNodesToScore=100)
    stated = [found(deciding(document, settings), check.id) for check in REGISTRATION_CHECKS]
    assert [findings for findings in stated if findings] == []


def test_without_decide_none_of_it_is_looked_at() -> None:
    checks = [check.id for check in REGISTRATION_CHECKS if check.id.startswith("decide-")]
    assert len(checks) == 6
    assert [found(registration(FULL_OFFLOAD), check) for check in checks] == [[]] * len(checks)


def test_who_preempts_besides_is_said() -> None:
    document = profile_changed(1, plugins=WITH_PREEMPTION)
    (both,) = found(deciding(document), "decide-preemption")
    (alone,) = found(deciding(document, {"preempt": "off"}), "decide-preemption")
    assert "while Kindred preempts, too" in both.message
    assert "preempt: evict (KINDRED_PREEMPT)" in alone.fix
