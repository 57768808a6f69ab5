"""What has to hold where all in-tree filters judge the members of scheduling groups."""

from typing import Any

import pytest

from tests.app.commands.doctor.registrations import (
    Case,
    assert_told_apart,
    deciding,
    error,
    info,
    profile_changed,
    warning,
)

SCHEDULERS = "decideSchedulers (KINDRED_DECIDE_SCHEDULERS)"
GROUPS = "decideGroupsScheduler (KINDRED_DECIDE_GROUPS_SCHEDULER)"


def off(*names: str, at: str = "multiPoint") -> dict[str, Any]:
    return {at: {"disabled": [{"name": name} for name in names]}}


def waits(profile: int, plugin: str, **args: object) -> dict[str, Any]:
    return profile_changed(profile, pluginConfig=[{"name": plugin, "args": args}])


CASES = {
    "no-scheduler-for-groups": info(
        "decide-groups", GROUPS, deciding(settings={"decide_groups_scheduler": ""}), deciding()
    ),
    "a-scheduler-for-groups-that-is-no-profile": warning(
        "decide-groups", GROUPS, deciding(settings={"decide_groups_scheduler": "groups"}), deciding()
    ),
    "a-filter-off": error(
        "decide-groups",
        "profiles[2].plugins",
        deciding(profile_changed(2, plugins=off("InterPodAffinity", at="filter"))),
        deciding(profile_changed(2, plugins=off("InterPodAffinity", at="score"))),
    ),
    "the-minimum-off": error(
        "decide-groups",
        "profiles[2].plugins",
        deciding(profile_changed(2, plugins=off("GangScheduling"))),
        deciding(profile_changed(2, plugins=off("ImageLocality"))),
    ),
    "another-process": error(
        "decide-groups-process",
        SCHEDULERS,
        deciding(settings={"decide_schedulers": ["kindred", "b"]}),
        deciding(),
    ),
    "volumes-that-wait-for-longer": error(
        "decide-waits",
        "profiles[1].pluginConfig",
        deciding(waits(1, "VolumeBinding", bindTimeoutSeconds=900)),
        deciding(waits(1, "VolumeBinding", bindTimeoutSeconds=900), {"assumed_pod_ttl": 1000}),
    ),
    "devices-that-wait-for-longer": error(
        "decide-waits",
        "profiles[2].pluginConfig",
        deciding(waits(2, "DynamicResources", bindingTimeout="11m")),
        deciding(waits(2, "DynamicResources", bindingTimeout="10m")),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_is_found_where_it_is_wrong_and_nowhere_else(case: Case) -> None:
    assert_told_apart(case)
