"""Devices behind extended resources, over HTTP: no node for a pod whose device nobody allocates."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from app.settings.settings import Settings, SettingsError
from app.verbs.scopes import device_schedulers
from app.wiring.main import create_service
from core.events import ClusterEvent
from core.objects.kinds import DeviceClass
from core.releases.release import RELEASES, Release
from tests.app.asgi import ask
from tests.app.explain.configured import config_of, configured
from tests.app.feeds.following import scenario
from tests.app.questions import by_name, mirror_of
from tests.app.verbs.binding.binding_setting import Scheduler, scheduling, until
from tests.builders import PodBuilder, make_node, make_pod
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.resources import DEVICE_CLASSES

GPU: Final = "example.com/gpu"
BY_ITS_NAME: Final = "deviceclass.resource.kubernetes.io/gpu"
NAMED: Final = DeviceClass(name="gpu", extended_resource=GPU)
NODES: Final = [
    make_node("absent").allocatable(pods=10),
    make_node("zero").allocatable(pods=10, **{GPU: 0}),
    make_node("plugin").allocatable(pods=10, **{GPU: 4}),
]
NAMES: Final = ["absent", "zero", "plugin"]
PLAIN, CLAIMS = "kindred", "kindred-volumes"
LACKS: Final = (
    f"Insufficient {GPU} (devices of DeviceClass gpu need the in-tree plugin DynamicResources: give the pod "
    f"spec.schedulerName: {CLAIMS})"
)
SCOPES: Final = pytest.mark.parametrize("scope", ["listed-nodes", "any-node"])
OF_RELEASES: Final = pytest.mark.parametrize("release", RELEASES, ids=str)
OFF: Final = {"plugins": {"multiPoint": {"disabled": [{"name": "DynamicResources"}]}}}


def decides(scope: str, release: Release = RELEASES[-1], **other: object) -> dict[str, Any]:
    """Return settings as those of the overlays, with the rules of devices on."""
    gates = {"DRAExtendedResource": True} if release < Release(1, 37) else {}
    return {
        "profile": "full",
        "decide": scope,
        "decide_schedulers": [PLAIN],
        "decide_claims_scheduler": CLAIMS,
        "kubernetes": str(release),
        "feature_gates": gates,
        **other,
    }


def left(release: Release) -> set[str]:
    """Return the nodes that NodeResourcesFit leaves to devices in a release."""
    return {"absent"} if release == Release(1, 34) else {"absent", "zero"}


def requesting(scheduler: str, **amounts: int) -> PodBuilder:
    return make_pod("p").scheduler(scheduler).requests(**amounts)


def of_dump(pod: PodBuilder, settings: Mapping[str, Any], *classes: DeviceClass, names: list[str] = NAMES) -> Any:  # noqa: ANN401  # JSON
    """Ask a service of a dump."""
    mirror = mirror_of(*NODES)
    for each in classes:
        mirror.apply(ClusterEvent("Add", each))
    service = create_service(Settings.model_validate(settings), mirror, None)
    return ask(service.app, "POST", "/filter", by_name(pod, *names)).json()


def chosen(response: Any) -> str:  # noqa: ANN401  # JSON
    """Return the one node of an answer, in either form. Empty if there is none."""
    assert response["Error"] == ""
    names = response["NodeNames"] or [
        item["metadata"]["name"] for item in (response["Nodes"] or {"items": []})["items"]
    ]
    assert len(names) <= 1
    return str(names[0]) if names else ""


def reasons(response: Any) -> set[str]:  # noqa: ANN401  # JSON
    return {*response["FailedNodes"].values(), *response["FailedAndUnresolvableNodes"].values()}


@SCOPES
@OF_RELEASES
def test_a_pod_whose_device_nobody_allocates_gets_no_node_and_the_scheduler_to_use(
    scope: str, release: Release
) -> None:
    settings = decides(scope, release)
    for amounts in ({GPU: 5}, {GPU: 5, BY_ITS_NAME: 0}):
        response = of_dump(requesting(PLAIN, **amounts), settings, NAMED)
        assert chosen(response) == ""
        whole = LACKS if scope == "listed-nodes" else f"decision of kindred: {LACKS}"
        assert reasons(response) == {whole}
    assert chosen(of_dump(requesting(PLAIN, **{BY_ITS_NAME: 1}), settings, NAMED)) == ""


def test_a_class_that_comes_later_is_told_in_the_next_refusal() -> None:
    mirror = mirror_of(*NODES)
    settings = Settings.model_validate(decides("any-node", equivalence_mode="spec"))
    service, texts = create_service(settings, mirror, None), []
    for _ in range(6):
        texts.append(
            reasons(ask(service.app, "POST", "/filter", by_name(requesting(PLAIN, **{GPU: 5}), *NAMES)).json())
        )
        if len(texts) == 3:
            mirror.apply(ClusterEvent("Add", NAMED))
    assert texts == [{f"decision of kindred: Insufficient {GPU}"}] * 3 + [{f"decision of kindred: {LACKS}"}] * 3


@SCOPES
@OF_RELEASES
def test_a_node_whose_device_plugin_has_enough_is_chosen(scope: str, release: Release) -> None:
    settings = decides(scope, release)
    assert chosen(of_dump(requesting(PLAIN, **{GPU: 4}), settings, NAMED)) == "plugin"
    response = of_dump(requesting(PLAIN, **{GPU: 4}), settings, NAMED, names=["absent", "zero"])
    assert chosen(response) == ("" if scope == "listed-nodes" else "plugin")


@OF_RELEASES
def test_the_scheduler_for_claims_gets_the_nodes_that_are_left_to_devices(release: Release) -> None:
    settings = decides("listed-nodes", release)
    for name in NAMES:
        response = of_dump(requesting(CLAIMS, **{GPU: 5}), settings, NAMED, names=[name])
        assert (chosen(response) == name) is (name in left(release))
        assert chosen(of_dump(requesting(CLAIMS, **{BY_ITS_NAME: 1}), settings, NAMED, names=[name])) == name
    response = of_dump(requesting(CLAIMS, **{GPU: 5}), settings, NAMED, names=["plugin"])
    assert reasons(response) == {f"Insufficient {GPU}"}


@pytest.mark.parametrize("release", [Release(1, 34), Release(1, 35)], ids=str)
def test_a_class_is_not_named_where_the_gate_is_off(release: Release) -> None:
    response = of_dump(requesting(PLAIN, **{GPU: 5}), decides("listed-nodes", release, feature_gates={}), NAMED)
    assert (chosen(response), reasons(response)) == ("", {f"Insufficient {GPU}"})


def test_a_resource_without_a_class_and_another_reason_have_no_remedy() -> None:
    pod = requesting(PLAIN, **{"example.com/disk": 1, GPU: 4, "cpu": 9})
    response = of_dump(pod, decides("listed-nodes"), NAMED, names=["plugin"])
    assert reasons(response) == {"Insufficient cpu, Insufficient example.com/disk"}


def test_with_no_scheduler_for_claims_the_reason_says_what_kind_to_name() -> None:
    settings = decides("listed-nodes", decide_schedulers=[], decide_claims_scheduler="")
    for scheduler in (PLAIN, CLAIMS):
        response = of_dump(requesting(scheduler, **{GPU: 5}), settings, NAMED)
        (reason,) = reasons(response)
        assert reason.endswith("DynamicResources: name a scheduler whose profile keeps that plugin)")


def test_a_service_that_does_not_decide_leaves_them_to_the_scheduler() -> None:
    settings = {"profile": "full", "kubernetes": "1.37"}
    assert of_dump(requesting(PLAIN, **{GPU: 5}), settings, NAMED)["NodeNames"] == ["absent", "zero"]


@pytest.mark.parametrize(
    "configuration",
    [
        pytest.param(configured({"schedulerName": PLAIN, **OFF}), id="all"),
        pytest.param(
            configured({"schedulerName": PLAIN, "plugins": {"reserve": OFF["plugins"]["multiPoint"]}}), id="reserve"
        ),
    ],
)
def test_a_configuration_whose_profile_disables_the_plugin_leaves_it_nothing(
    tmp_path: Path, configuration: dict[str, Any]
) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(yaml.safe_dump(configuration), "utf-8")
    settings = {"profile": "full", "kubernetes": "1.37", "scheduler_config": str(file)}
    assert of_dump(requesting(PLAIN, **{GPU: 5}), settings, NAMED)["NodeNames"] == []
    assert of_dump(requesting("other", **{GPU: 5}), settings, NAMED)["NodeNames"] == ["absent", "zero"]
    file.write_text("kind: Pod", "utf-8")
    with pytest.raises(SettingsError, match="KINDRED_SCHEDULER_CONFIG"):
        of_dump(requesting(PLAIN, **{GPU: 5}), settings, NAMED)


@pytest.mark.parametrize(
    ("settings", "have", "lack"),
    [
        pytest.param({}, {"", PLAIN, CLAIMS}, set(), id="answers-all-nodes"),
        pytest.param(decides("listed-nodes"), {CLAIMS, "other"}, {PLAIN}, id="named"),
        pytest.param(decides("any-node", decide_schedulers=[]), {CLAIMS}, {PLAIN, "", "other"}, id="all"),
        pytest.param(
            decides("listed-nodes", decide_schedulers=["default-scheduler"], decide_claims_scheduler=""),
            {PLAIN},
            {"", "default-scheduler"},
            id="default-scheduler",
        ),
    ],
)
def test_only_schedulers_with_the_plugin_allocate_devices(
    settings: dict[str, Any], have: set[str], lack: set[str]
) -> None:
    found = device_schedulers(Settings.model_validate(settings))
    assert {name for name in have | lack if found.have(name)} == have


def test_a_scheduler_for_claims_without_the_plugin_is_not_advised() -> None:
    config = config_of(configured({"schedulerName": CLAIMS, **OFF}))
    for named in ([], [PLAIN]):
        found = device_schedulers(Settings.model_validate(decides("listed-nodes", decide_schedulers=named)), config)
        assert (found.have(CLAIMS), found.advised) == (False, "")


@SCOPES
@OF_RELEASES
@scenario()
async def test_a_class_that_comes_or_goes_between_two_requests_does_not_matter(
    server: FakeApiServer, scope: str, release: Release
) -> None:
    async with scheduling(server, *NODES, bind=False, **decides(scope, release)) as scheduler:
        greedy = await scheduler.pending(make_pod("greedy").scheduler(PLAIN).requests(**{GPU: 5}))
        devices = await scheduler.pending(make_pod("devices").scheduler(CLAIMS).requests(**{GPU: 5}))
        for there in (False, True, False):
            await _with_class(scheduler, there=there)
            assert chosen(await _response(scheduler, greedy)) == ""
            assert not scheduler.is_assumed(greedy)
            assert (chosen(await _response(scheduler, devices)) in left(release)) is there
        modest = await scheduler.pending(make_pod("modest").scheduler(PLAIN).requests(**{GPU: 3}))
        assert chosen(await _response(scheduler, modest)) == "plugin"
        assert scheduler.is_assumed(modest)
        last = await scheduler.pending(make_pod("last").scheduler(PLAIN).requests(**{GPU: 2}))
        await _with_class(scheduler, there=True)
        assert chosen(await _response(scheduler, last)) == ""
        one = await scheduler.pending(make_pod("one").scheduler(PLAIN).requests(**{GPU: 1}))
        assert chosen(await _response(scheduler, one)) == "plugin"


async def _response(scheduler: Scheduler, pod: dict[str, Any]) -> Any:  # noqa: ANN401  # JSON
    return json.loads((await scheduler.ask("filter", pod, *NAMES)).content)


async def _with_class(scheduler: Scheduler, *, there: bool) -> None:
    """Create or delete the class, and wait until the watch has shown that."""
    is_there = bool(scheduler.server.objects(DEVICE_CLASSES.path))
    if there and not is_there:
        scheduler.server.create(
            DEVICE_CLASSES.path, {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPU}}
        )
    elif is_there and not there:
        scheduler.server.delete(DEVICE_CLASSES.path, "gpu")
    await until(lambda: bool(scheduler.mirror.objects(DeviceClass)) is there)


@scenario()
async def test_a_group_whose_device_nobody_allocates_is_told_the_scheduler_to_use(server: FakeApiServer) -> None:
    async with scheduling(server, *NODES, bind=False, **decides("listed-nodes")) as scheduler:
        await _with_class(scheduler, there=True)
        for name in ("a", "b"):
            member = make_pod(name).of_group("train", 2).scheduler(PLAIN).requests(**{GPU: 3})
            pod = await scheduler.pending(member)
        response = await _response(scheduler, pod)
        assert chosen(response) == ""
        (reason,) = reasons(response)
        assert f"Insufficient {GPU}" in reason
        assert reason.endswith(f" ({LACKS.partition(' (')[2]}")
