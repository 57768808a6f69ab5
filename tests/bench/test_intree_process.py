"""The in-tree plugin as a process. A stand-in implements its protocol."""

import sys

import pytest

from tests.bench.intree_process import Answer, Description, difference, running
from tests.bench.live import BenchError

STAND_IN = """
import json, sys
told = []
for line in sys.stdin:
    if line == "{}\\n":
        break
    told.append(json.loads(line))
described = {"go": "go1", "kubernetes": "v1", "gomaxprocs": 2, "parallelism": 16}
held = {f"{kind}s": sum(kind in each for each in told) for kind in ("node", "pod")}
print(json.dumps({**described, **held}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)["metadata"]["name"]
    print(json.dumps({"nanoseconds": 1500, "scores": {asked: len(told)}}), flush=True)
"""


def test_objects_are_sent_as_they_are_taken_and_each_pod_is_answered() -> None:
    objects = [{"metadata": {"name": name}} for name in ("a", "b")]
    with running([sys.executable, "-c", STAND_IN]) as in_tree:
        taken = [*in_tree.sent("node", objects), *in_tree.sent("pod", objects[:1])]
        described = in_tree.take_snapshot()
        answers = [in_tree.ask(each) for each in objects]
    assert taken == [*objects, objects[0]]
    assert described == Description("go1", "v1", gomaxprocs=2, parallelism=16, nodes=2, pods=1)
    assert answers == [Answer(1500, {"a": 3}), Answer(1500, {"b": 3})]
    assert [answer.seconds for answer in answers] == [1.5e-6, 1.5e-6]


def test_a_program_that_ends_before_its_answer_says_so_with_its_status() -> None:
    with (
        running([sys.executable, "-c", "raise SystemExit(3)"]) as in_tree,
        pytest.raises(BenchError, match="intree-affinity ended with status 3"),
    ):
        in_tree.take_snapshot()


def test_equal_answers_do_not_differ_in_whatever_order() -> None:
    assert not difference({"a": 1, "b": 0}, {"b": 0, "a": 1})


def test_answers_differ_in_scores_and_in_what_fits() -> None:
    told = difference({"a": 1, "b": 0, "c": 5}, {"a": 2, "c": 5, "d": 0})
    assert told == (
        "3 nodes differ: a in-tree 1, ours 2; b in-tree 0, ours does not fit; d in-tree does not fit, ours 0"
    )


def test_only_the_first_few_nodes_that_differ_are_shown() -> None:
    told = difference({f"node-{number}": 1 for number in range(9)}, {})
    assert told.startswith("9 nodes differ: node-0 ")
    assert told.count(";") == 2
