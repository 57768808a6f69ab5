"""`filter` passes on a sample of the nodes that fit, if it is told to; what it says of the others stays."""

import pytest

from app.settings.settings import Settings
from app.verbs.filter import Extender
from app.verbs.request import Request
from app.wiring.engine import create_profile
from app.wiring.main import create_service
from core.mirror.cluster import ClusterMirror
from core.scheduling_cycle import ADAPTIVE, ALL
from tests.app.asgi import ask
from tests.app.questions import ANTI_AFFINITY_RULES, by_name, by_object, decoded, mirror_of
from tests.builders import labelled, make_node, make_pod, term

HOSTNAME = "kubernetes.io/hostname"
NODES = [make_node(f"n{number:03}").label(HOSTNAME, f"n{number:03}") for number in range(200)]
NAMES = [node.obj()["metadata"]["name"] for node in NODES]
REPELLED = NAMES[::4]


def cluster() -> ClusterMirror:
    return mirror_of(*NODES, *(make_pod(f"web-{name}").label("app", "web").on(name) for name in REPELLED))


def extender(percentage: int) -> Extender:
    return Extender(create_profile(Settings()), cluster(), percentage_of_nodes_to_score=percentage)


LONER = make_pod("p").required_anti_affinity(term(HOSTNAME, labelled(app="web")))


@pytest.mark.parametrize(("percentage", "passed"), [(ALL, 150), (60, 120), (ADAPTIVE, 100)])
def test_so_many_are_passed_on_in_the_order_asked_and_all_refusals_told(percentage: int, passed: int) -> None:
    result = decoded(extender(percentage).filter(Request(by_name(LONER, *NAMES))).body)
    assert len(result["NodeNames"]) == passed
    assert result["NodeNames"] == sorted(set(NAMES) - set(REPELLED))[:passed]
    assert result["FailedNodes"] == dict.fromkeys(REPELLED, ANTI_AFFINITY_RULES)


def test_whole_nodes_are_passed_on_likewise() -> None:
    requested = extender(ADAPTIVE)
    result = decoded(requested.filter(Request(by_object(LONER, *NODES))).body)
    names = [item["metadata"]["name"] for item in result["Nodes"]["items"]]
    assert names == sorted(set(NAMES) - set(REPELLED))[:100]


def test_it_is_a_setting_of_the_service() -> None:
    app = create_service(Settings(percentage_of_nodes_to_score=ADAPTIVE), cluster(), None).app
    assert len(ask(app, "POST", "/filter", by_name(LONER, *NAMES)).json()["NodeNames"]) == 100
