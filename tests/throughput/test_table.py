"""The tables of a run."""

import msgspec

from tests.throughput.runs import RUN
from tests.throughput.table import tables

EXPECTED = """\
5,000 nodes, 50,000 pods there before, kube-scheduler v1.36.3

| pods per second | in-tree | decide-any-node | ceiling | decide-any-node to ceiling |
| --- | --- | --- | --- | --- |
| affinity | 20.0 | 200 (10.00) | 400 (20.00) | 0.50 |
| plain | 50.0 | - | 1,000 (20.00) | - |

| CPU, ms a pod: kube-scheduler / Kindred / kube-apiserver | in-tree | decide-any-node | ceiling |
| --- | --- | --- | --- |
| affinity | 67 / - / 2.5 | 5.0 / 1.2 / 2.5 | 2.5 / - / 2.5 |
| plain | 20 / - / 2.5 | - / - / - | 1.0 / - / 2.5 |

| scheduling_algorithm_duration, mean, ms | in-tree | decide-any-node | ceiling |
| --- | --- | --- | --- |
| affinity | 33.3 | 2.50 | 1.25 |
| plain | 10.0 | - | 0.500 |

affinity, decide-any-node: 3 attempts failed beside 300 pods.

Measured on 2026-01-02 by `python -m tests.e2e.throughput` at 0123abcd: CPU one, CPUs 2."""


def test_each_shape_has_a_row_with_multiples_of_in_tree_and_the_share_of_the_ceiling() -> None:
    assert tables(RUN) == EXPECTED


def test_without_in_tree_and_a_ceiling_there_is_nothing_to_compare_with() -> None:
    run = msgspec.structs.replace(RUN, cells=[cell for cell in RUN.cells if cell.mode == "decide-any-node"])
    assert "| pods per second | decide-any-node |\n| --- | --- |\n| affinity | 200 |\n" in tables(run)


def test_settings_that_were_given_are_told() -> None:
    run = msgspec.structs.replace(RUN, settings={"KINDRED_EQUIVALENCE_MODE": "spec"})
    assert "at 0123abcd, with KINDRED_EQUIVALENCE_MODE=spec: CPU one" in tables(run)
