"""Workloads of upstream's scheduler_perf: which there are, and one alone for a scheduler of ours."""

import fnmatch
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.throughput.modes import Mode

_SCHEDULER_NAME: Final = "default-scheduler"  # what the pods of the workloads ask for


def workloads(tests: Sequence[Mapping[str, Any]], patterns: Sequence[str]) -> list[str]:
    """Return the workloads `TEST/WORKLOAD` that a pattern matches, in the order of the file."""
    names = [f"{test['name']}/{workload['name']}" for test in tests for workload in test["workloads"]]
    return [name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]


def single(tests: Sequence[Mapping[str, Any]], case: str, config: Path) -> list[dict[str, Any]]:
    """Return the tests with one workload alone, without its threshold; `config` is the scheduler's configuration."""
    name, _, workload_name = case.partition("/")
    (test,) = (test for test in tests if test["name"] == name)
    (workload,) = (workload for workload in test["workloads"] if workload["name"] == workload_name)
    chosen = {key: value for key, value in workload.items() if key != "threshold"}
    return [{**test, "workloads": [chosen], "schedulerConfigPath": str(config)}]


def scheduler_config(mode: Mode, extender_url: str) -> dict[str, Any]:
    """Return a mode's configuration, with its first profile for the pods of the workloads."""
    config = mode.config(extender_url)
    first, *others = config.get("profiles") or [{}]
    return {**config, "profiles": [{**first, "schedulerName": _SCHEDULER_NAME}, *others]}
