"""The comparison with in-tree, with the naive reference instead of in-tree, so that it needs no Go."""

import sys
from pathlib import Path

import pytest

from tests.bench import cluster
from tests.bench.command import Size
from tests.bench.intree import AFRESH, COLD_FASTER, IN_TREE, KNOWN, KNOWN_FASTER, Samples, measure
from tests.bench.live import BenchError

ROOT = Path(__file__).parents[2]
SIZE = Size(nodes=60, pods=600, effort=0.05)
NAIVE = """
import json, sys
from tests.reference.naive import NaiveCluster
held = {"namespace": [], "node": [], "pod": []}
for line in sys.stdin:
    if line == "{}\\n":
        break
    for kind, each in json.loads(line).items():
        held[kind].append(each)
cluster = NaiveCluster(*held.values())
counts = {"nodes": len(held["node"]), "pods": len(held["pod"]) - MISSING}
print(json.dumps({"go": "go1", "kubernetes": "v1", "gomaxprocs": 2, "parallelism": 16, **counts}), flush=True)
for line in sys.stdin:
    scores = {name: score + WRONG for name, score in cluster.decision(json.loads(line)).items()}
    print(json.dumps({"nanoseconds": 1, "scores": scores}), flush=True)
"""


def stand_in(wrong: int = 0, missing: int = 0) -> list[str]:
    """Return the command of a program that answers with scores that are too high, and has too few pods."""
    return [sys.executable, "-c", NAIVE.replace("WRONG", str(wrong)).replace("MISSING", str(missing))]


@pytest.fixture(autouse=True)
def in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # the stand-in imports its modules from here


def test_every_kind_of_pods_is_measured_and_agrees() -> None:
    section, described = measure(stand_in(), SIZE)
    assert [row.name for row in section.rows] == [*cluster.KINDS]
    assert [row.times[IN_TREE].p50 for row in section.rows] == pytest.approx([1e-6] * len(section.rows))
    assert {(row.times[IN_TREE].samples, row.times[KNOWN].samples) for row in section.rows} == {(5, 25)}
    assert described == {"Go": "go1", "Kubernetes": "v1", "GOMAXPROCS": "2", "parallelism of in-tree": "16"}


def test_only_kinds_with_terms_have_bounds() -> None:
    section, _ = measure(stand_in(), SIZE)
    assert {line.split(":")[1].strip() for line in section.missed} == {*cluster.KINDS} - {"plain"}


def test_another_answer_is_an_error_that_names_the_pod() -> None:
    with pytest.raises(BenchError, match=r"in-plain-000: 60 nodes differ: node-00000 in-tree 1, ours 0; "):
        measure(stand_in(wrong=1), SIZE)


def test_a_cluster_that_did_not_arrive_whole_is_an_error() -> None:
    with pytest.raises(BenchError, match=r"\(nodes, pods\): \(60, 600\) here, .* pods=599"):
        measure(stand_in(missing=1), SIZE)


def test_ratios_say_how_many_times_faster_than_in_tree_and_the_noise_by_rounds() -> None:
    samples = Samples()
    for seconds in (0.1, 0.2):
        samples.begin_round()
        for heading in samples.of:
            samples.add(heading, [0.001])
        samples.of[IN_TREE][-1] = [seconds]
    row = samples.row("kind", has_terms=True)
    assert {name: (ratio.low, ratio.high, ratio.at_least) for name, ratio in row.ratios.items()} == {
        "in-tree to cold class": (100, 200, COLD_FASTER),
        "in-tree to known class": (100, 200, KNOWN_FASTER),
        "in-tree to known, no cache": (100, 200, None),
        "in-tree to cold, from names": (100, 200, None),
        "in-tree to known, from names": (100, 200, None),
    }
    assert row.times[AFRESH].samples == 2
