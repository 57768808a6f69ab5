"""Nodes of the scheduler for claims are ranked by the score of devices, over HTTP. Nothing else depends on devices."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from app.feeds.freshness import OF_A_DUMP, Freshness, of_a_dump
from app.settings.settings import Settings
from app.wiring.engine import create_profile, followed_kinds
from app.wiring.main import create_service
from core.events import ClusterEvent, Missing
from core.mirror.cluster import ClusterMirror
from core.objects.devices import DeviceTaintRule, ResourceClaim, ResourceSlice
from core.plugins import DEVICES
from core.releases.release import RELEASES, Release
from tests.app.asgi import ask
from tests.app.verbs.deciding.test_devices import CLAIMS, PLAIN, chosen, decides
from tests.conformance.golden_files import read
from tests.core.diagnosis.test_devices import mirror_of_case
from tests.core.plugins.dynamicresources.world import NEWEST, V1
from tests.core.test_device_ranking import case_of

DATA: Final = Path(__file__).parents[3] / "conformance" / "data"
DEFAULT_GATES: Final[dict[str, Any]] = {"feature_gates": {}}
LACKS_CLAIMS: Final = of_a_dump({ResourceClaim: Missing("resourceclaims: not synced")})


def with_room(case: V1) -> V1:
    """Return a case in which n0 has more free cpu than n1."""
    for node, cpu in zip(case["nodes"], ("10", "8"), strict=True):
        node["status"] = {"allocatable": {"cpu": cpu, "memory": "9Gi", "pods": "9"}}
    return case


def response_of(
    mirror: ClusterMirror,
    case: V1,
    *names: str,
    verb: str = "filter",
    scheduler: str = CLAIMS,
    freshness: Freshness = OF_A_DUMP,
    **settings: Any,  # noqa: ANN401  # fields of Settings
) -> Any:  # noqa: ANN401  # JSON
    """Ask a service of a dump about the pod of a case, which requests some cpu."""
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    spec = {"containers": [container], **case["pod"]["spec"], "schedulerName": scheduler}
    body = {"Pod": {**case["pod"], "spec": spec}, "Nodes": None, "NodeNames": names}
    service = create_service(Settings.model_validate(settings), mirror, None, freshness=freshness)
    return ask(service.app, "POST", f"/{verb}", json.dumps(body).encode()).json()


@pytest.mark.parametrize("scope", ["any-node", "listed-nodes"])
@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_the_node_with_the_better_alternative_is_chosen_since_1_35(release: Release, scope: str) -> None:
    case = with_room(case_of(str(release)))
    response = response_of(mirror_of_case(case), case, "n0", "n1", **decides(scope, release, **DEFAULT_GATES))
    assert chosen(response) == ("n0" if release == Release(1, 34) else "n1")


def test_it_is_chosen_among_the_nodes_of_the_request() -> None:
    case = with_room(case_of())
    assert chosen(response_of(mirror_of_case(case), case, "n0", **decides("any-node"))) == "n0"


def test_without_the_objects_of_devices_the_other_scores_decide() -> None:
    case = with_room(case_of())
    response = response_of(mirror_of_case(case), case, "n0", "n1", freshness=LACKS_CLAIMS, **decides("any-node"))
    assert chosen(response) == "n0"


def test_a_scheduler_without_the_plugin_gets_no_node() -> None:
    case = with_room(case_of())
    response = response_of(mirror_of_case(case), case, "n0", "n1", scheduler=PLAIN, **decides("any-node"))
    assert "DynamicResources" in response["Error"]


def test_prioritize_does_not_score_devices_because_kube_scheduler_does() -> None:
    case = with_room(case_of())
    for settings in (decides("any-node", max_score=100), {"profile": "full", "kubernetes": NEWEST, "max_score": 100}):
        mirror = mirror_of_case(case)
        scores = [response_of(mirror, case, "n0", "n1", verb="prioritize", **settings)]
        for name in ("s0", "s1"):
            mirror.apply(ClusterEvent("Delete", mirror.objects(ResourceSlice)[name]))
        scores.append(response_of(mirror, case, "n0", "n1", verb="prioritize", **settings))
        assert scores[0] == scores[1]


@pytest.mark.parametrize("folder", ["v1.36", "v1.37"])
def test_no_verdict_depends_on_devices(folder: str) -> None:
    """Ask about each node alone, with all devices and without any, and about all nodes."""
    release = Release(1, 36) if folder == "v1.36" else Release(1, 37)
    settings = decides("listed-nodes", release, **DEFAULT_GATES)
    for line in [*read(DATA / folder / "devices_random.jsonl.gz")][:12]:
        case, names = dict(line.content), [each["metadata"]["name"] for each in line.content["nodes"]]
        bare = {**case, "resourceslices": [], "devicetaintrules": []}
        responses = []
        for each in (case, bare):
            mirror = mirror_of_case(each)
            alone = [response_of(mirror, case, name, **settings) for name in names]
            responses.append((alone, bool(chosen(response_of(mirror, case, *names, **settings)))))
        assert responses[0] == responses[1], case["name"]


@pytest.mark.parametrize(
    ("decide", "claims", "ranked"), [("off", "", False), ("any-node", "", False), ("any-node", "x", True)]
)
def test_objects_of_devices_are_followed_to_rank_nodes_and_no_request_waits_for_them(
    decide: str, claims: str, *, ranked: bool
) -> None:
    settings = Settings.model_validate({"profile": "full", "decide": decide, "decide_claims_scheduler": claims})
    kinds = followed_kinds(settings, create_profile(settings))
    of_devices = (ResourceClaim, ResourceSlice, DeviceTaintRule)
    assert {*of_devices} < {*DEVICES.kinds}
    assert [kinds.get(each) for each in of_devices] == [False if ranked else None] * 3
