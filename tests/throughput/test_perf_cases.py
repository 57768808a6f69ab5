"""Workloads of scheduler_perf, and the configuration of the scheduler that runs them."""

from pathlib import Path
from typing import Any

import pytest

from tests.throughput.modes import DEFAULT_MODES, MODES
from tests.throughput.perf_cases import scheduler_config, single, workloads

TESTS: list[dict[str, Any]] = [
    {
        "name": "SchedulingPodAffinity",
        "defaultPodTemplatePath": "../templates/pod.yaml",
        "workloads": [
            {"name": "500Nodes", "params": {"initNodes": 500}},
            {"name": "5000Nodes", "threshold": 35, "params": {"initNodes": 5000}},
        ],
    },
    {"name": "SchedulingNodeAffinity", "workloads": [{"name": "5000Nodes"}]},
]


def test_workloads_are_chosen_by_patterns_in_the_order_of_the_file() -> None:
    assert workloads(TESTS, ["*/5000Nodes"]) == ["SchedulingPodAffinity/5000Nodes", "SchedulingNodeAffinity/5000Nodes"]
    assert workloads(TESTS, ["*NodeAff*/*", "*/500Nodes"]) == [
        "SchedulingPodAffinity/500Nodes",
        "SchedulingNodeAffinity/5000Nodes",
    ]
    assert workloads(TESTS, ["5000Nodes"]) == []


def test_a_workload_alone_has_no_threshold_and_names_the_configuration() -> None:
    assert single(TESTS, "SchedulingPodAffinity/5000Nodes", Path("/run/scheduler.yaml")) == [
        {
            "name": "SchedulingPodAffinity",
            "defaultPodTemplatePath": "../templates/pod.yaml",
            "workloads": [{"name": "5000Nodes", "params": {"initNodes": 5000}}],
            "schedulerConfigPath": "/run/scheduler.yaml",
        }
    ]
    assert TESTS[0]["workloads"][1]["threshold"] == 35, "what was read stays as it is"


@pytest.mark.parametrize("name", DEFAULT_MODES)
def test_the_pods_of_the_workloads_are_for_the_first_profile(name: str) -> None:
    config = scheduler_config(MODES[name], "http://127.0.0.1:1")
    names = [profile["schedulerName"] for profile in config["profiles"]]
    assert names[0] == "default-scheduler"
    assert len(set(names)) == len(names)
    assert [extender["urlPrefix"] for extender in config.get("extenders", [])] == (
        ["http://127.0.0.1:1"] if MODES[name].has_extender else []
    )
