"""The scheduler configurations name verbs that exist and obey the extender contract.

docs/register.md agrees with them about the full profile. tests/manifests checks the overlays.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.routing import Route

from app.settings.settings import Settings
from app.wiring.main import create_service
from core.mirror.cluster import ClusterMirror
from core.objects.node import NodeMetrics
from core.plugins import PLUGINS
from core.profile import full_profile
from core.releases.differences import rules_of
from core.releases.release import Release

REGISTER = Path("docs/register.md").read_text("utf-8")
CONFIGURATIONS = {path.stem: path for path in sorted(Path("manifests/scheduler").glob("*.yaml"))}
each_configuration = pytest.mark.parametrize("name", CONFIGURATIONS)


def configuration(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(CONFIGURATIONS[name].read_text("utf-8"))
    return loaded


def switched_off(config: dict[str, Any], point: str) -> set[str]:
    """Return the plugins that the first profile disables at a point."""
    profile = config.get("profiles", [{}])[0]
    return {plugin["name"] for plugin in profile.get("plugins", {}).get(point, {}).get("disabled", [])}


def profile_of(scheduler: str) -> dict[str, Any]:
    """Return a profile of decide."""
    found: dict[str, Any]
    (found,) = (each for each in configuration("decide")["profiles"] if each["schedulerName"] == scheduler)
    return found


@each_configuration
def test_every_verb_is_served(name: str) -> None:
    served = {
        route.path.removeprefix("/")
        for route in create_service(Settings(), ClusterMirror(), None).app.routes
        if isinstance(route, Route) and "POST" in (route.methods or ())
    }
    (extender,) = configuration(name)["extenders"]
    verbs = {value for key, value in extender.items() if key.endswith("Verb")}
    assert verbs
    assert verbs <= served


@each_configuration
def test_names_are_sent_and_every_node_is_seen_where_the_extender_alone_decides_a_hard_rule(name: str) -> None:
    config = configuration(name)
    (extender,) = config["extenders"]
    assert extender["nodeCacheCapable"] is True
    if "InterPodAffinity" in switched_off(config, "multiPoint") | switched_off(config, "filter"):
        assert config["percentageOfNodesToScore"] == 100
        assert not extender.get("ignorable", False)
        assert "filterVerb" in extender


def test_only_the_full_offload_takes_the_hard_rules_and_finds_victims() -> None:
    assert {"score-offload", "full-offload", "decide"} == set(CONFIGURATIONS)
    for name in CONFIGURATIONS:
        config = configuration(name)
        takes = "InterPodAffinity" in switched_off(config, "multiPoint")
        assert (takes, "preemptVerb" in config["extenders"][0]) == (name == "full-offload",) * 2


def test_with_decide_a_profile_without_any_filter_leaves_the_node_to_kindred() -> None:
    plugins = profile_of("kindred")["plugins"]
    assert plugins == {
        "multiPoint": {
            "disabled": [{"name": "*"}],
            # Without the first and the last, kube-scheduler does not start. The second holds back gated pods. The third
            # keeps nominations while victims terminate.
            "enabled": [
                {"name": name} for name in ("PrioritySort", "SchedulingGates", "DefaultPreemption", "DefaultBinder")
            ],
        }
    }


def test_with_decide_a_second_profile_keeps_the_plugins_that_have_to_filter_for_a_binding() -> None:
    plugins = profile_of("kindred-volumes")["plugins"]
    assert set(plugins) == {"multiPoint"}
    assert set(plugins["multiPoint"]) == {"disabled"}
    profile = full_profile()
    of_kindred = {plugin.name for plugin in (*profile.filters, *(plugin for plugin, _ in profile.scores))}
    of_volumes = {"VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"}
    assert {plugin["name"] for plugin in plugins["multiPoint"]["disabled"]} == {
        *(of_kindred - of_volumes),
        "DefaultPreemption",
    }


def test_with_decide_the_extender_filters_alone_for_schedulers_of_its_own_that_bind_faster_than_they_schedule() -> None:
    config = configuration("decide")
    # Where any node may be chosen, the scheduler names a few.
    requested = {profile["schedulerName"]: profile["percentageOfNodesToScore"] for profile in config["profiles"]}
    assert list(requested.items()) == [("kindred", 1), ("kindred-volumes", 100), ("kindred-groups", 100)]
    (extender,) = config["extenders"]
    assert {key for key in extender if key.endswith("Verb")} == {"filterVerb"}
    assert "weight" not in extender
    assert extender["ignorable"] is False
    assert config["leaderElection"]["resourceName"] != "kube-scheduler"
    connection = config["clientConnection"]
    assert min(connection["qps"], connection["burst"]) >= 2000


def test_the_second_scheduler_is_score_offload_by_another_name() -> None:
    first = configuration("score-offload")
    second = yaml.safe_load(Path("manifests/second-scheduler/scheduler.yaml").read_text("utf-8"))
    of_its_own = {key: second.pop(key) for key in ("profiles", "leaderElection")}
    (profile,) = first.pop("profiles")
    assert of_its_own["profiles"] == [{**profile, "schedulerName": "kindred"}]
    assert {key: value for key, value in first.items() if key != "clientConnection"} == second


def test_what_the_full_profile_needs_is_enough_for_every_list_of_plugins() -> None:
    read = {kind for make in PLUGINS.values() for kind in make().kinds}
    assert read - {NodeMetrics} <= set(full_profile().kinds), "which is not watched"


def test_the_docs_switches_off_the_scores_of_the_full_profile() -> None:
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", REGISTER, re.MULTILINE | re.DOTALL)
    config = {"profiles": [{"plugins": yaml.safe_load(block)}]}
    scores = {plugin.name for plugin, _ in full_profile().scores}
    assert scores == switched_off(config, "score")
    assert scores - {"ImageLocality"} == switched_off(config, "preScore"), "ImageLocality has no PreScore upstream"


def test_the_docs_weighs_kindred_as_what_it_stands_for() -> None:
    for release, steps in ((Release(1, 36), 60), (Release(1, 37), 65)):
        weights = sum(weight for _, weight in full_profile().under(rules_of(release)).scores)
        assert re.search(rf"100 \* {weights} += up to {100 * weights}$", REGISTER, re.MULTILINE)
        assert f"maxScore: {steps}, weight: 2            {steps} * 2 * 10 = up to {20 * steps}, the same" in REGISTER
        assert 100 * weights == steps * 2 * 10


def test_the_docs_names_every_plugin_of_the_full_profile_once_for_its_filter_and_once_for_its_score() -> None:
    rows = re.findall(r"^\| (scores|filters) of ([^|]+) \|", REGISTER, re.MULTILINE)
    named = [(side, name) for side, names in rows for name in re.findall(r"`(\w+)`", names)]
    profile = full_profile()
    filters = {("filters", plugin.name) for plugin in profile.filters} - {("filters", "VolumeBinding")}
    assert sorted(filters | {("scores", plugin.name) for plugin, _ in profile.scores}) == sorted(named)
