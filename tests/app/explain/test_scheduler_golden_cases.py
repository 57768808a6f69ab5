"""A configuration that equals the defaults explains the golden cases as no configuration does."""

import json
from typing import Any

import pytest

from app.explain.scheduler_profiles import SchedulerProfiles
from app.process.json_text import decode, encode
from app.settings.settings import Settings
from app.wiring.engine import create_profile, explained_profile
from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.explained_profile import ExplainProfile, Judge
from core.diagnosis.node_detail import node_detail
from core.diagnosis.summary import summary
from core.framework.interface import Code
from tests.app.explain.configured import config_of, configured, with_args
from tests.conformance.engine import decoded_pod
from tests.conformance.golden_files import Members
from tests.core.diagnosis.test_golden_cases import PARTS, mirror_of, names_of, part
from tests.depth import tries

FIT = "NodeResourcesFit"
_PASSED = {Code.SUCCESS, Code.SKIP}
some_parts = pytest.mark.parametrize("number", range(min(PARTS, tries(default=1, full=PARTS))))
OFF = {"plugins": {"multiPoint": {"disabled": [{"name": FIT}]}}}


def reported(decision: Diagnosis) -> Any:  # noqa: ANN401  # JSON
    """Return all that an explanation says, but for the scheduler and who judges."""
    details = [node_detail(decision, position, 3) for position in range(len(decision.batch))]
    return _without(decode(encode([summary(decision, 3), details])))


def _without(value: Any) -> Any:  # noqa: ANN401  # JSON
    if isinstance(value, list):
        return [_without(each) for each in value]
    if isinstance(value, dict):
        return {key: _without(each) for key, each in value.items() if key not in {"judged_by", "scheduler"}}
    return value


def decided(explained: ExplainProfile, case: Members) -> Diagnosis:
    """Decide in a mirror of its own: the counters of an earlier decision would list equal domains otherwise."""
    mirror = mirror_of(case)
    return Diagnosis(explained, mirror, decoded_pod(case["pod"]), mirror.batch(names_of(case)))


def profiles_of(document: dict[str, Any], case: Members, settings: Settings) -> ExplainProfile:
    """Return what is explained of the pod of a case by a configuration with one profile."""
    pod = decoded_pod(case["pod"])
    document["profiles"][0]["schedulerName"] = pod.scheduler_name or "default-scheduler"
    every = explained_profile(settings, create_profile(settings))
    return SchedulerProfiles(config_of(document), settings, every).of(pod)


def settings_of(case: Members) -> Settings:
    return Settings(profile="full", plugin_args=json.dumps({"InterPodAffinity": case.get("args") or {}}))


@some_parts
def test_defaults_that_are_written_explain_what_defaults_explain(number: int) -> None:
    for case in part(number):
        settings = settings_of(case)
        found = decided(profiles_of(with_args("InterPodAffinity", **(case.get("args") or {})), case, settings), case)
        assert reported(found) == reported(decided(explained_profile(settings, create_profile(settings)), case)), case[
            "name"
        ]
        assert found.scheduler is not None
        assert found.scheduler.filters_off == []
        assert {found.judge_of(each.name) for each in found.profile.filters} == {Judge.SCHEDULER}


@some_parts
def test_without_a_plugin_a_node_is_refused_by_the_others_alone(number: int) -> None:
    passed = 0
    for case in part(number):
        settings = Settings(profile="full")
        found = decided(profiles_of(configured({**OFF}), case, settings), case)
        with_it = decided(explained_profile(settings, create_profile(settings)), case)
        assert found.scheduler is not None
        assert found.scheduler.filters_off == [FIT]
        for position in range(len(found.batch)):
            rejected = {name for name, status in with_it.predicates(position) if status.code not in _PASSED}
            if rejected - {FIT}:
                assert found.verdicts.codes[position]
            elif not with_it.nominated_on(position):
                assert not found.verdicts.codes[position]
                passed += bool(rejected)
    assert passed
