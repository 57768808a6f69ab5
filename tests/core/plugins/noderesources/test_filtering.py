"""The filter: which resources a node has too little of, in which order they are told, and what preemption can do.

Source of the rules: fit.go (fitsRequest, Filter) and fit_test.go of k8s.io/kubernetes v1.34.1.
"""

from collections.abc import Sequence
from itertools import product
from typing import Final

import numpy as np
import pytest

from core.events import ClusterEvent
from core.framework.interface import SUCCESS, Code, Status, Verdicts
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array
from core.objects.pod import Pod
from core.plugins.noderesources.columns import ResourceColumns
from core.plugins.noderesources.fit import MAX_TOLD, NodeResourcesFit
from tests.core.plugins.noderesources.values import DISK, GPU, Amounts, asking, mirror_of, offering, stranger

NODE: Final = {"cpu": 4000, "memory": 100, DISK: 50, GPU: 2}
ISSUES: Final = "kubernetes.io/batch"
"""A name that is scalar, but no extended resource."""


def resolvable(*reasons: str) -> Status:
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def verdicts(mirror: ClusterMirror, pod: Pod, batch: NodeBatch, plugin: NodeResourcesFit | None = None) -> Verdicts:
    plugin = plugin or NodeResourcesFit()
    status, state = plugin.pre_filter(mirror, pod)
    assert status == SUCCESS
    return plugin.filter(state, batch)


def verdict(
    node: Amounts, there: Sequence[Amounts], incoming: Amounts, plugin: NodeResourcesFit | None = None
) -> Status:
    pods = [asking(f"p{number}", amounts, "n") for number, amounts in enumerate(there)]
    mirror = mirror_of(offering("n", node), *pods)
    return verdicts(mirror, asking("incoming", incoming), mirror.batch(["n"]), plugin).status(0)


@pytest.mark.parametrize(
    ("names", "groups", "incoming", "expected"),
    [
        pytest.param([GPU], [], {GPU: 9}, SUCCESS, id="by-name"),
        pytest.param([], ["example.com"], {GPU: 9}, SUCCESS, id="by-group"),
        pytest.param(["example.com/x"], ["example"], {GPU: 9}, unresolvable(f"Insufficient {GPU}"), id="others"),
        pytest.param([GPU], [], {GPU: 9, "cpu": 9000}, unresolvable("Insufficient cpu"), id="but-not-the-rest"),
        pytest.param(["cpu"], ["cpu"], {"cpu": 9000}, unresolvable("Insufficient cpu"), id="cpu-cannot-be-ignored"),
        pytest.param(
            ["hugepages-2Mi"],
            ["hugepages-2Mi"],
            {"hugepages-2Mi": 1},
            unresolvable("Insufficient hugepages-2Mi"),
            id="huge-pages-cannot-be-ignored",
        ),
        pytest.param(
            [ISSUES], ["kubernetes.io"], {ISSUES: 1}, unresolvable(f"Insufficient {ISSUES}"), id="nor-what-is-native"
        ),
    ],
)
def test_ignored_extended_resources_are_not_looked_at(
    names: list[str], groups: list[str], incoming: Amounts, expected: Status
) -> None:
    plugin = NodeResourcesFit(ignored_resources=names, ignored_resource_groups=groups)
    assert expected == verdict(NODE, [], incoming, plugin)


def test_nodes_that_lack_the_same_share_a_status() -> None:
    kinds = [*product((1000, 3000), (10, 30), (1, 2))]
    nodes = [
        offering(f"n{number}", dict(zip(("cpu", "memory", GPU), kinds[number % 8], strict=True)))
        for number in range(400)
    ]
    mirror = mirror_of(*nodes)
    found = verdicts(mirror, asking("p", {"cpu": 2000, "memory": 20, GPU: 2}), mirror.batch([n.name for n in nodes]))
    assert found.statuses[0] == SUCCESS
    assert len(set(found.statuses)) == len(found.statuses) == 8
    for number, (cpu, memory, gpu) in enumerate(kinds):
        lacking = [("cpu", cpu < 2000), ("memory", memory < 20), (GPU, gpu < 2)]
        reasons = [f"Insufficient {resource}" for resource, lacks in lacking if lacks]
        assert found.status(number) == (unresolvable(*reasons) if reasons else SUCCESS)
        assert len(np.unique(found.codes[number::8])) == 1


def test_code_0_is_success_though_every_node_fails() -> None:
    mirror = mirror_of(offering("a", {"cpu": 1}), offering("b", {"cpu": 1, "pods": 0}))
    found = verdicts(mirror, asking("p", {"cpu": 2}), mirror.batch(["a", "b"]))
    assert (found.statuses[0], found.codes.tolist()) == (SUCCESS, [1, 2])


def test_more_resources_than_an_int64_has_bits_are_told_apart() -> None:
    names = [f"example.com/{number:03}" for number in range(90)]
    mirror = mirror_of(offering("none", {}), offering("all", dict.fromkeys(names, 1)), offering("last", {names[-1]: 1}))
    found = verdicts(mirror, asking("p", dict.fromkeys(names, 1)), mirror.batch(["none", "all", "last"]))
    reasons = [f"Insufficient {name}" for name in names]
    assert found.status(0) == unresolvable(*reasons)
    assert found.status(1) == SUCCESS
    assert found.status(2) == unresolvable(*reasons[:-1])
    assert len(found.statuses) == 3


@pytest.mark.parametrize(
    ("node", "incoming", "expected"),
    [
        pytest.param({"cpu": 4000}, {"cpu": 4000}, SUCCESS, id="fits"),
        pytest.param({"cpu": 4000}, {"cpu": 4001}, unresolvable("Insufficient cpu"), id="too-small"),
        pytest.param({"pods": 0}, {}, resolvable("Too many pods"), id="no-place"),
    ],
)
def test_a_node_that_the_mirror_does_not_know_is_judged_from_the_whole_node(
    node: Amounts, incoming: Amounts, expected: Status
) -> None:
    mirror, batch = stranger(node)
    assert expected == verdicts(mirror, asking("p", incoming), batch).status(0)


def test_no_nodes_have_no_verdicts() -> None:
    mirror = mirror_of()
    assert len(verdicts(mirror, asking("p", {"cpu": 1}), mirror.batch([])).codes) == 0


def test_of_very_many_resources_the_first_are_told_by_name() -> None:
    names = [f"example.com/{number:04}" for number in range(1000)]
    mirror = mirror_of(offering("none", {}), offering("all", dict.fromkeys(names, 1)), offering("last", {names[-1]: 1}))
    batch = mirror.batch(["none", "all", "last"])
    found = verdicts(mirror, asking("p", dict.fromkeys(names, 1)), batch)
    reasons = [f"Insufficient {name}" for name in names[:MAX_TOLD]]
    assert found.status(0) == unresolvable(*reasons, "Insufficient other resources")
    assert found.status(1) == SUCCESS
    assert found.status(2) == unresolvable(*reasons, "Insufficient other resources")
    assert len(found.statuses) == 2
    mirror.apply(ClusterEvent("Add", asking("there", dict.fromkeys(names, 1), "all")))
    assert verdicts(mirror, asking("p", dict.fromkeys(names, 1)), batch).status(1) == resolvable(
        *reasons, "Insufficient other resources"
    )


def test_a_resource_that_no_node_offers_is_short_without_a_look_at_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"example.com/{number:04}" for number in range(1000)]
    mirror = mirror_of(offering("n", {"cpu": 1}), asking("there", dict.fromkeys(names[:500], 1), "n"))
    looks: list[str] = []
    whole = ResourceColumns.requested_of

    def requested_of(columns: ResourceColumns, resource: str, batch: NodeBatch) -> Int64Array:
        looks.append(resource)
        return whole(columns, resource, batch)

    monkeypatch.setattr(ResourceColumns, "requested_of", requested_of)
    found = verdicts(mirror, asking("p", dict.fromkeys(names, 1)), mirror.batch(["n"]))
    assert looks == ["pods"]
    assert found.status(0).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_what_only_a_stranger_offers_is_there_for_it_alone() -> None:
    mirror = mirror_of(offering("n", {"cpu": 1}))
    batch = mirror.batch(["n", "new"], {1: offering("new", {GPU: 2})})
    found = verdicts(mirror, asking("p", {GPU: 2}), batch)
    assert [found.status(0), found.status(1)] == [unresolvable(f"Insufficient {GPU}"), SUCCESS]


def test_a_sum_that_has_overflowed_leaves_something_of_a_resource_that_no_node_offers() -> None:
    # As in Go: 2^63-1 and 2^63-1 are -2, and 0 less -2 is enough for 1, but not for 3.
    there = [asking(name, {GPU: 2**63 - 1}, "n") for name in "ab"]
    mirror = mirror_of(offering("n", {}), *there)
    found = [verdicts(mirror, asking("p", {GPU: amount}), mirror.batch(["n"])).status(0) for amount in (1, 3)]
    assert found == [SUCCESS, unresolvable(f"Insufficient {GPU}")]
