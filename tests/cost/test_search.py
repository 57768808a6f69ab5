"""The search finds a planted fault: work that grows with the square of a pod's tolerations."""

import random

import pytest

from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from core.plugins.tainttoleration import TaintToleration
from tests.cost.attack import Attack
from tests.cost.forked import forked
from tests.cost.forms import FORMS
from tests.cost.laboratory import Laboratory
from tests.cost.report import POD_BYTES, Row
from tests.cost.search import Cell, Search, Tried, dominating_member

_MAX_TRIED = 300
_TRIED_IN_VAIN = 30
_WORK = 200  # for each pair of tolerations


@pytest.fixture
def quadratic(monkeypatch: pytest.MonkeyPatch) -> Laboratory:
    """Make a service whose TaintToleration compares each pair of tolerations."""
    right = TaintToleration.pre_filter

    def planted(self: TaintToleration, mirror: ClusterMirror, pod: Pod) -> object:
        sum(1 for one in pod.tolerations for other in pod.tolerations for _ in range(_WORK) if one is other)
        return right(self, mirror, pod)

    monkeypatch.setattr(TaintToleration, "pre_filter", planted)
    return Laboratory(50, 500)


def _search(laboratory: Laboratory, most: int) -> tuple[Search, list[tuple[Cell, Tried]]]:
    """Search from small pods, which are cheap."""

    def measure(attack: Attack) -> Row:
        body = laboratory.args(attack.document)
        steps = forked(lambda recorder: recorder.step("filter", lambda: laboratory.ask("/filter", body)), 3)
        return Row("fuzz", "", attack.way, attack.size, steps)

    seeds = [FORMS[name].attack(2000) for name in ("tolerations-keys", "node-fields", "labels")]
    search = Search(measure, seeds, random.Random(3), POD_BYTES)  # noqa: S311 - to be the same each time
    found = []
    for each in search.run(lambda: search.tried < most):
        found.append(each)
        break
    return search, found


def test_a_planted_quadratic_cost_is_found(quadratic: Laboratory) -> None:
    _, found = _search(quadratic, _MAX_TRIED)
    assert [cell.member for cell, _ in found] == ["spec.tolerations"]


def test_without_it_nothing_is_found() -> None:
    search, found = _search(Laboratory(50, 500), _TRIED_IN_VAIN)
    assert (search.tried, found) == (_TRIED_IN_VAIN, [])


def test_the_member_that_takes_the_most_bytes_names_the_attack() -> None:
    assert dominating_member(FORMS["anti-topology-keys"].attack(4000)) == "spec.affinity.podAntiAffinity"
    assert dominating_member(FORMS["nodes-labels"].attack(4000)) == "Node"
