"""The judge of the end-to-end tests finds what is wrong, and nothing else."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.e2e.api import Manifest
from tests.e2e.shapes import HOSTNAME, ZONE, node, on, pod, required, term
from tests.e2e.violations import violations

NODES = [node(index, zones=2) for index in range(4)]  # node-0000 and node-0002 are of zone-0
WEB = {"app": "web"}


def placed(name: str, index: int, affinity: Mapping[str, Any] | None = None, namespace: str = "e2e") -> Manifest:
    made = on(pod(name, WEB, affinity=affinity), f"node-{index:04}")
    return {**made, "metadata": {**made["metadata"], "namespace": namespace}}


@pytest.mark.parametrize(
    ("pods", "count"),
    [
        pytest.param([placed("a", 0, required("podAntiAffinity", term(WEB, HOSTNAME)))], 0, id="alone"),
        pytest.param(
            [placed("a", 0, required("podAntiAffinity", term(WEB, HOSTNAME))), placed("b", 0)], 1, id="on its node"
        ),
        pytest.param(
            [placed("a", 0, required("podAntiAffinity", term(WEB, HOSTNAME))), placed("b", 2)], 0, id="on another node"
        ),
        pytest.param(
            [placed("a", 0, required("podAntiAffinity", term(WEB, ZONE))), placed("b", 2)], 1, id="in its zone"
        ),
        pytest.param(
            [placed("a", 0, required("podAntiAffinity", term(WEB, HOSTNAME))), placed("b", 0, namespace="other")],
            0,
            id="of another namespace",
        ),
        pytest.param([placed("a", 0, required("podAffinity", term(WEB, ZONE)))], 0, id="the first of its kind"),
        pytest.param([placed("a", 0, required("podAffinity", term(WEB, ZONE))), placed("b", 2)], 0, id="near another"),
        pytest.param(
            [placed("a", 0, required("podAffinity", term(WEB, ZONE))), placed("b", 1)], 1, id="far from all others"
        ),
        pytest.param(
            [placed("a", 0, required("podAffinity", term({"app": "none"}, ZONE)))], 1, id="without any that it wants"
        ),
    ],
)
def test_each_broken_rule_is_found_once(pods: list[Manifest], count: int) -> None:
    assert len(violations(NODES, pods)) == count


def spread(name: str, index: int, max_skew: int = 1, key: str = ZONE) -> Manifest:
    constraint = {"maxSkew": max_skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    made = placed(name, index)
    return {
        **made,
        "spec": {**made["spec"], "topologySpreadConstraints": [{**constraint, "labelSelector": {"matchLabels": WEB}}]},
    }


@pytest.mark.parametrize(
    ("pods", "count"),
    [
        pytest.param([spread("a", 0), spread("b", 1)], 0, id="even"),
        pytest.param([spread("a", 0)], 0, id="one more than none"),
        pytest.param([spread("a", 0), spread("b", 2)], 1, id="two in one zone"),
        pytest.param([spread("a", 0, 2), spread("b", 2, 2)], 0, id="two which it allows"),
        pytest.param([spread("a", 0), placed("b", 2)], 1, id="two, one without the constraint"),
        pytest.param([spread("a", 0), placed("b", 2, namespace="other")], 0, id="two of two namespaces"),
        pytest.param([spread("a", 0, key=HOSTNAME), spread("b", 2, key=HOSTNAME)], 0, id="on two nodes"),
        pytest.param([spread("a", 0, key=HOSTNAME), spread("b", 0, key=HOSTNAME)], 1, id="on one node"),
    ],
)
def test_a_skew_that_is_too_great_is_found_once(pods: list[Manifest], count: int) -> None:
    assert len(violations(NODES, pods)) == count


def test_pods_that_want_each_other_are_found_in_two_domains_though_none_is_alone() -> None:
    near = required("podAffinity", term(WEB, ZONE))
    pods = [placed(f"p-{index}", index, near) for index in range(4)]
    assert violations(NODES, pods) == ["p-0 and 3 like it parted: ['zone-0', 'zone-1']"]


def test_a_constraint_that_it_cannot_read_is_an_error() -> None:
    pod_with_more = spread("a", 0)
    pod_with_more["spec"]["topologySpreadConstraints"][0]["minDomains"] = 3
    with pytest.raises(ValueError, match="cannot read"):
        violations(NODES, [pod_with_more])


def test_a_term_that_it_cannot_read_is_an_error() -> None:
    wide = required("podAntiAffinity", term(WEB, HOSTNAME, namespaceSelector={}))
    with pytest.raises(ValueError, match="cannot read"):
        violations(NODES, [placed("a", 0, wide), placed("b", 0)])
