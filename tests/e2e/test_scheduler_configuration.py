"""Random plugin sets, merged by kube-scheduler itself (--write-config-to): the same plugins, order and weights."""

import random
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from app.scheduler_configuration.scheduler_config import load_scheduler_config
from app.scheduler_configuration.schema import API_VERSION, KIND, Point, Profile
from core.plugins import DEFAULTS
from tests.e2e.binaries import SCHEDULER, chosen_minor

POINTS: Final[tuple[Point, ...]] = ("multiPoint", "filter", "score", "preFilter", "preScore")
NEEDED: Final = {"PrioritySort", "DefaultBinder"}
"""Plugins without which kube-scheduler does not start."""
BY_RELEASE: Final = {"NodeName", "DynamicResources"}
"""The place of the first, and the weight of the second, differ between releases."""
SINCE: Final = {("NodeDeclaredFeatures", point): 35 for point in ("multiPoint", "filter", "preFilter")} | {
    ("DynamicResources", "score"): 35
}
"""A plugin at a point -> the minor release from which on kube-scheduler starts with it; all others are older."""
KUBECONFIG: Final = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "none", "cluster": {"server": "http://127.0.0.1:1"}}],
    "contexts": [{"name": "none", "context": {"cluster": "none", "user": "none"}}],
    "users": [{"name": "none", "user": {}}],
    "current-context": "none",
}
CASES: Final = 8


def plugin_set(chance: random.Random, point: Point, minor: int) -> dict[str, Any]:
    """Give a set of plugins that have something for the point in a release, in which some may be on and off."""
    there = [
        name
        for name, plugin in DEFAULTS.items()
        if name not in NEEDED and (point == "multiPoint" or point in plugin.points)
        if (name, point) != ("VolumeBinding", "score")  # only behind a gate
        if SINCE.get((name, point), 0) <= minor
    ]
    made: dict[str, Any] = {}
    for side in chance.sample(["enabled", "disabled"], chance.randint(1, 2)):
        names = chance.sample(there, min(len(there), chance.randint(1, 4)))
        made[side] = [
            {"name": name, **({"weight": chance.randint(1, 9)} if side == "enabled" and chance.random() < 0.5 else {})}
            for name in names
        ]
    if point != "multiPoint" and chance.random() < 0.2:
        made["disabled"] = [{"name": "*"}]
    return made


def merged(folder: Path, binaries: Mapping[str, Path], plugins: Mapping[Point, Any]) -> tuple[Profile, Profile, Any]:
    """Return a profile as it is read here, as it is read of what kube-scheduler wrote, and that document."""
    (folder / "kubeconfig").write_text(yaml.safe_dump(KUBECONFIG), "utf-8")
    document = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "clientConnection": {"kubeconfig": str(folder / "kubeconfig")},
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": "mine", "plugins": plugins}],
    }
    ours, theirs = folder / "ours.yaml", folder / "theirs.yaml"
    ours.write_text(yaml.safe_dump(document), "utf-8")
    command: list[str | Path] = [
        binaries[SCHEDULER],
        "--config",
        ours,
        "--write-config-to",
        theirs,
        "--secure-port",
        "0",
    ]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603  # ours
    assert theirs.exists(), ended.stderr[-2000:]
    (profile,) = load_scheduler_config(ours).profiles
    (written,) = load_scheduler_config(theirs).profiles  # so what kube-scheduler writes is read, too
    return profile, written, yaml.safe_load(theirs.read_text("utf-8"))["profiles"][0]["plugins"]


def names_of(plugins: list[str]) -> list[str]:
    return [name for name in plugins if name in DEFAULTS and name not in BY_RELEASE]


@pytest.mark.parametrize("seed", range(CASES))
def test_plugin_sets_are_merged_as_kube_scheduler_merges_them(
    binaries: Mapping[str, Path], tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311  # of a test
    minor = chosen_minor()
    plugins = {point: plugin_set(chance, point, minor) for point in chance.sample(POINTS, chance.randint(1, 4))}
    ours, theirs, written = merged(tmp_path, binaries, plugins)
    expected = names_of([each["name"] for each in written["multiPoint"]["enabled"]])
    assert [name for name in names_of(ours.at_multi_point()) if name in {*expected}] == expected, plugins
    for point in POINTS[1:]:
        there = names_of(theirs.order(point))
        assert [name for name in names_of(ours.order(point)) if name in {*there}] == there, (point, plugins)
    weights: dict[str, int] = {}
    for each in (*written["score"].get("enabled", ()), *written["multiPoint"]["enabled"]):
        weights.setdefault(each["name"], each["weight"] or 1)
    assert {name: ours.weight(name) for name in names_of([*weights])} == {
        name: weights[name] for name in names_of([*weights])
    }
