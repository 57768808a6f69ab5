"""Whatever is in a scheduler's configuration: an error in a line, or each rule is judged or off."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from app.explain.scheduler_profiles import FILTERS, SCORES, SchedulerProfiles
from app.scheduler_configuration.scheduler_config import load_scheduler_config
from app.scheduler_configuration.schema import POINTS
from app.scheduler_configuration.validation import UnreadableError
from app.settings.settings import Settings
from app.wiring.engine import create_profile, explained_profile
from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.summary import summary
from core.profile import COMPOSITES
from tests.app.commands.doctor.registrations import DECIDE, DECIDING, FULL_OFFLOAD, NEXT_TO, SCORE_OFFLOAD
from tests.builders import make_node, make_pod
from tests.core.decoded import mirror_of, pod_of
from tests.depth import tries

POD = pod_of(make_pod("p").label("app", "web").requests(cpu=1))
NAMES = st.sampled_from(sorted({*FILTERS, *SCORES, "DynamicResources", "PrioritySort", "Outside", "*"}))
ENABLED = NAMES.filter(lambda name: name != "*")
SET = st.fixed_dictionaries(
    {},
    optional={
        "disabled": st.lists(st.fixed_dictionaries({"name": NAMES}), max_size=3),
        "enabled": st.lists(
            st.fixed_dictionaries(
                {"name": NAMES.filter(lambda name: name != "*")}, optional={"weight": st.integers(0, 9)}
            ),
            max_size=3,
        ),
    },
)
PLUGINS = st.dictionaries(st.sampled_from(POINTS), SET, max_size=4)
ARGS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"name": st.sampled_from(["InterPodAffinity", "NodeResourcesFit", "VolumeBinding", "Outside"])},
    optional={
        "args": st.sampled_from(
            [{}, None, [], "a", {"hardPodAffinityWeight": 3}, {"ignoredResources": ["x/y"]}, {"shape": []}, {1: 2}]
        )
    },
)
CHOSEN = [
    Settings(),
    Settings(profile="full", max_score=7),
    Settings(profile="GeneralPredicates,score:ImageLocality=3"),
    Settings.model_validate(DECIDING),
]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scheduler") / "scheduler.yaml"


@settings(deadline=None, max_examples=tries(default=25, full=100))
@given(st.data())
def test_every_rule_is_judged_or_off_and_never_both(file: Path, data: st.DataObject) -> None:
    document: dict[str, Any] = copy.deepcopy(data.draw(st.sampled_from([SCORE_OFFLOAD, FULL_OFFLOAD, NEXT_TO, DECIDE])))
    for profile in document["profiles"]:
        profile["plugins"] = data.draw(PLUGINS)
        profile["pluginConfig"] = data.draw(st.lists(ARGS, max_size=2))
    document["extenders"][0]["weight"] = data.draw(st.integers(0, 30))
    file.write_text(yaml.safe_dump(document), "utf-8")
    chosen = data.draw(st.sampled_from(CHOSEN))
    every = explained_profile(chosen, create_profile(chosen))
    try:
        profiles = SchedulerProfiles(load_scheduler_config(file), chosen, every)
    except UnreadableError:
        return
    mirror = mirror_of(make_node("n1").allocatable(cpu=4, pods=9), make_node("n2").allocatable(pods=9))
    for profile in document["profiles"]:
        pod = replace(POD, scheduler_name=profile["schedulerName"])
        explained = profiles.of(pod)
        reported = summary(Diagnosis(explained, mirror, pod, mirror.batch(["n1", "n2"])), 3).scheduler
        assert reported is not None
        assert reported.has_profile
        judged = {each.name for each in explained.profile.filters}
        assert len(judged) == len(explained.profile.filters)
        judged |= {part for each in judged for part in COMPOSITES.get(each, ())}
        off = set(reported.filters_off) - {"DynamicResources"}
        assert judged & off == set()
        assert explained.scheduler is not None
        assert judged | {each.name for each in explained.scheduler.off.filters} >= FILTERS
        assert all(weight > 0 for _, weight in explained.profile.scores)
