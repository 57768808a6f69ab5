"""Devices are counted for the scores by resources as upstream's own table has it, and within a bound."""

from typing import Any, Final

import msgspec
import pytest

from app.objects.resources import RESOURCES
from core.events import Action, ClusterEvent, Kind
from core.mirror.cluster import ClusterMirror
from core.objects.devices import ResourceClaim, ResourceSlice
from core.objects.kinds import DeviceClass
from core.plugins import DEVICE_TOTALS
from core.plugins.dynamicresources import totals
from core.plugins.dynamicresources.inventory import Inventory
from tests.core.diagnosis.test_devices import mirror_of_case
from tests.core.plugins.dynamicresources.world import DRIVER, V1, claim, device, in_use, slice_of, world

GPU: Final = "example.com/gpu"
IMPLICIT: Final = "deviceclass.resource.kubernetes.io/gpu"
ANY: Final[V1] = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPU}}
LARGE: Final = (
    f'device.driver == "{DRIVER}" && device.capacity["{DRIVER}"].memory.compareTo(quantity("8Gi")) >= 0 '
    f'&& device.attributes["{DRIVER}"].model.startsWith("SOME-")'
)
ZONE: Final[V1] = {
    "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z0"]}]}]}
}


def selecting(expression: str) -> V1:
    """Return the class with a selector."""
    return {**ANY, "spec": {**ANY["spec"], "selectors": [{"cel": {"expression": expression}}]}}


def large(name: str, **fields: Any) -> V1:  # noqa: ANN401  # of any kind
    return device(name, {"model": {"string": f"SOME-{name}"}}, capacity={"memory": {"value": "16Gi"}}, **fields)


def devices(*names: str, **fields: Any) -> V1:  # noqa: ANN401  # of any kind
    return slice_of("s", [device(each) for each in names], **fields)


def shared(name: str) -> V1:
    return in_use(name, shareID="cab0ee4f-7b2f-4cf1-b1cc-2d1a1b7cd0d4")


PER_DEVICE: Final = slice_of(
    "p",
    [large("d1", nodeName="n0"), large("d2", nodeName="other"), large("d3", **ZONE), device("small", nodeName="n1")],
    perDeviceNodeSelection=True,
)


def mirror_of(
    slices: list[V1], *claims: V1, of_class: V1 = ANY, nodes: int = 1, release: str = "1.37"
) -> ClusterMirror:
    return mirror_of_case(world(slices, [*claims], nodes, release, deviceclasses=[of_class]))


def counted(mirror: ClusterMirror, resource: str = GPU) -> list[tuple[int, int]] | None:
    """Return for each node its devices, and those that are allocated."""
    found = DEVICE_TOTALS(mirror).of(resource, mirror.batch([*mirror.nodes.slots]))
    return None if found is None else [*zip(found[0].tolist(), found[1].tolist(), strict=True)]


@pytest.mark.parametrize(
    ("slices", "claims", "of_class", "resource", "expected"),
    [
        pytest.param([devices("d1")], [], ANY, GPU, (1, 0), id="explicit"),
        pytest.param([devices("d1")], [], {"metadata": {"name": "gpu"}, "spec": {}}, IMPLICIT, (1, 0), id="implicit"),
        pytest.param([], [], ANY, GPU, (0, 0), id="no-slices"),
        pytest.param([devices("d1", "d2")], [claim([], "a", in_use("d1"))], ANY, GPU, (2, 1), id="allocated"),
        pytest.param([devices("d1", "d2")], [claim([], "a", shared("d1"))], ANY, GPU, (2, 1), id="shared"),
        pytest.param(
            [devices("d1", "d2", "d3")],
            [claim([], "a", in_use("d1")), claim([], "b", shared("d2"))],
            ANY,
            GPU,
            (3, 2),
            id="mixed",
        ),
        pytest.param(
            [PER_DEVICE], [claim([], "a", in_use("d1", pool="pool"))], selecting(LARGE), GPU, (2, 1), id="per-device"
        ),
        pytest.param([devices("d1", nodeName="other")], [], ANY, GPU, (0, 0), id="other-node"),
        pytest.param(
            [devices("d1", allNodes=True), slice_of("t", [device("d2")], **ZONE)],
            [],
            ANY,
            GPU,
            (2, 0),
            id="of-all",
        ),
        pytest.param([devices("d1", count=7)], [], ANY, GPU, (1, 0), id="incomplete"),
        pytest.param([devices("d1"), slice_of("t", [large("d2")])], [], selecting(LARGE), GPU, (0, 0), id="error"),
        pytest.param([slice_of("t", [large("d2")])], [], selecting("false"), GPU, (0, 0), id="no-match"),
    ],
)
def test_devices_are_counted_as_upstream_s_table_has_it(
    slices: list[V1], claims: list[V1], of_class: V1, resource: str, expected: tuple[int, int]
) -> None:
    assert counted(mirror_of(slices, *claims, of_class=of_class), resource) == [expected]


def test_an_error_of_a_device_matters_on_its_nodes_only() -> None:
    assert counted(mirror_of([PER_DEVICE], of_class=selecting(LARGE), nodes=2)) == [(2, 0), (0, 0)]


@pytest.mark.parametrize("expression", ["device.allowMultipleAllocations == true", '"%x".format([255]) == "ff"'])
def test_what_cannot_be_evaluated_is_not_known(expression: str) -> None:
    assert counted(mirror_of([devices("d1")], of_class=selecting(expression))) is None


def test_devices_do_not_count_before_1_36_nor_for_a_resource_without_a_class() -> None:
    assert counted(mirror_of([devices("d1")], release="1.35")) is None
    assert counted(mirror_of([devices("d1")]), "example.com/other") is None


def test_events_change_what_is_counted() -> None:
    mirror = mirror_of([devices("d1", "d2")], nodes=2)

    def apply(action: Action, kind: Kind, written: V1) -> list[tuple[int, int]] | None:
        mirror.apply(ClusterEvent(action, RESOURCES[kind].decode(msgspec.json.encode(written))))
        return counted(mirror)

    assert counted(mirror) == [(2, 0), (0, 0)]
    assert apply("Add", ResourceClaim, claim([], "a", in_use("d1"))) == [(2, 1), (0, 0)]
    assert apply("Update", ResourceSlice, devices("d1")) == [(1, 1), (0, 0)]
    assert apply("Update", ResourceSlice, devices("d1", "d2", "d3", nodeName="n1")) == [(0, 0), (3, 1)]
    assert apply("Update", DeviceClass, selecting("false")) == [(0, 0), (0, 0)]
    assert apply("Update", DeviceClass, ANY) == [(0, 0), (3, 1)]
    assert apply("Delete", ResourceClaim, claim([], "a", in_use("d1"))) == [(0, 0), (3, 0)]
    assert apply("Delete", ResourceSlice, devices("d1")) == [(0, 0), (0, 0)]


def test_one_request_looks_at_a_bounded_number_of_devices() -> None:
    slices = [slice_of(f"t{at}", [device(f"d{each}") for each in range(100)], f"pool{at}") for at in range(50)]
    mirror = mirror_of(slices)
    assert [counted(mirror) for _ in range(4)] == [None, None, [(5_000, 0)], [(5_000, 0)]]


def test_a_resource_is_counted_once_for_all_scores_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the second score would be without devices where the first one takes more than half of the bound."""
    monkeypatch.setattr(totals, "_MAX_LOOKS", 15)
    mirror = mirror_of([devices("d1", "d2")])
    batch, amounts = mirror.batch([*mirror.nodes.slots]), DEVICE_TOTALS(mirror)
    found = [amounts.of(GPU, batch) for _ in range(20)]
    assert found[0] is not None
    assert all(each is found[0] for each in found)
    other = amounts.of(GPU, mirror.batch(["n0", "unknown"]))
    assert other is not None
    assert [each.tolist() for each in other] == [[2, 0], [0, 0]], "of another batch"


def test_what_could_not_be_counted_is_not_tried_again_in_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = mirror_of([devices("d1", "d2")])
    batch, amounts = mirror.batch([*mirror.nodes.slots]), DEVICE_TOTALS(mirror)
    monkeypatch.setattr(totals, "_MAX_LOOKS", 2)
    assert amounts.of(GPU, batch) is None
    monkeypatch.undo()
    assert amounts.of(GPU, batch) is None
    assert counted(mirror) == [(2, 0)], "the next request"


def test_too_many_slices_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(totals, "_MAX_LOOKS", 2)
    mirror = mirror_of([slice_of(f"t{at}", [], f"pool{at}") for at in range(3)])
    assert counted(mirror) is None
    assert not mirror.derived(Inventory).matching


def test_no_slice_that_comes_back_has_the_count_of_an_earlier_one() -> None:
    """The number of changes of its pool begins again, so that the pools of nodes that are gone are not kept."""
    mirror = mirror_of([devices("d1", "d2")])
    inventory = mirror.derived(Inventory)

    def apply(action: Action, kind: Kind, written: V1) -> None:
        mirror.apply(ClusterEvent(action, RESOURCES[kind].decode(msgspec.json.encode(written))))

    for name, has in (("d1", True), ("d2", False)):
        apply("Add", ResourceSlice, devices("d1", "d2"))
        apply("Add", ResourceClaim, claim([], "a", in_use(name)))
        assert counted(mirror) == [(2, 1)]
        apply("Delete", ResourceSlice, devices("d1", "d2"))
        assert not inventory.uses
        if has:
            apply("Delete", ResourceClaim, claim([], "a", in_use(name)))
            assert not inventory.uses, "a pool without slices is not counted"
    apply("Delete", ResourceClaim, claim([], "a", in_use("d2")))
    apply("Add", ResourceSlice, devices("d1", "d2"))
    assert counted(mirror) == [(2, 0)]
