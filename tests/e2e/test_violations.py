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


def test_a_term_that_it_cannot_read_is_an_error() -> None:
    wide = required("podAntiAffinity", term(WEB, HOSTNAME, namespaceSelector={}))
    with pytest.raises(ValueError, match="cannot read"):
        violations(NODES, [placed("a", 0, wide), placed("b", 0)])
