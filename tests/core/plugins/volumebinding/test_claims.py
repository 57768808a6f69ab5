"""The claims of a pod: which let it be scheduled at all, what they can reach, and how much storage they take.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/volumebinding/volume_binding.go (PreFilter, podHasPVCs, Score)
and binder.go (GetPodVolumeClaims).
"""

from random import Random
from typing import Final

import pytest
from msgspec.structs import replace

from core.events import Object
from core.framework.claims import ClaimError
from core.framework.interface import Code, Status
from core.objects.affinity import Expression, NodeSelector, parse_node_selector
from core.objects.kinds import ControllerRef
from core.objects.pod import Pod, PodClaim
from core.objects.volumes import StorageClass
from core.plugins.volumebinding.claims import UNBOUND_IMMEDIATE, ByTopology, Storage, claims_of, label_keys, score_of
from tests.core.plugins.values import mirror_of
from tests.core.plugins.volumebinding.values import bound, pod_with, unbound, waiting, within

NO_MODE: Final = StorageClass(name="no-mode", provisioner="p")
IMMEDIATE: Final = StorageClass(name="now", provisioner="p", volume_binding_mode="Immediate")
NO_MODE_ERROR: Final = Status(Code.ERROR, ('VolumeBindingMode not set for StorageClass "no-mode"',))
EPHEMERAL: Final = PodClaim("incoming-v", ephemeral=True)


def unresolvable(reason: str) -> Status:
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))


def test_claims_are_told_apart_in_the_order_of_the_volumes() -> None:
    mirror = mirror_of(waiting(), *(bound(name, "pv") for name in "ad"), *(unbound(name) for name in "bc"))
    bound_claims, unbound_claims = claims_of(mirror, pod_with("d", "c", "a", "b"))
    assert [claim.name for claim in bound_claims] == ["d", "a"]
    assert [claim.name for claim in unbound_claims] == ["c", "b"]


def test_an_ephemeral_claim_that_was_made_for_the_pod_is_one_of_its_claims() -> None:
    mirror = mirror_of(waiting(), unbound(EPHEMERAL.name, controller=ControllerRef("Pod", "incoming", "incoming")))
    assert [claim.name for claim in claims_of(mirror, pod_with(EPHEMERAL))[1]] == [EPHEMERAL.name]


@pytest.mark.parametrize(
    ("pod", "objects", "expected"),
    [
        pytest.param(pod_with("a"), [], unresolvable('persistentvolumeclaim "a" not found'), id="missing"),
        pytest.param(
            pod_with(EPHEMERAL),
            [],
            unresolvable('waiting for ephemeral volume controller to create the persistentvolumeclaim "incoming-v"'),
            id="ephemeral-not-made-yet",
        ),
        pytest.param(
            pod_with(EPHEMERAL),
            [unbound(EPHEMERAL.name, controller=ControllerRef("Pod", "incoming", "an-earlier-uid"))],
            unresolvable("PVC default/incoming-v was not created for pod default/incoming (pod is not owner)"),
            id="ephemeral-of-an-earlier-pod-of-the-name",
        ),
        pytest.param(
            pod_with("a"),
            [replace(bound("a", "pv"), phase="Lost")],
            unresolvable('persistentvolumeclaim "a" bound to non-existent persistentvolume "pv"'),
            id="lost",
        ),
        pytest.param(
            pod_with("a"),
            [replace(bound("a", "pv"), deleting=True)],
            unresolvable('persistentvolumeclaim "a" is being deleted'),
            id="being-deleted",
        ),
        pytest.param(pod_with("a"), [IMMEDIATE, unbound("a", "now")], UNBOUND_IMMEDIATE, id="immediate"),
        pytest.param(pod_with("a"), [unbound("a", "")], UNBOUND_IMMEDIATE, id="no-class"),
        pytest.param(pod_with("a"), [unbound("a", "gone")], UNBOUND_IMMEDIATE, id="class-missing"),
        pytest.param(
            pod_with("a"), [waiting(), unbound("a", volume="pv")], UNBOUND_IMMEDIATE, id="volume-not-yet-bound-to-it"
        ),
        pytest.param(
            pod_with("a"),
            [waiting(), unbound("a", bind_completed=True, volume="pv", phase="Lost")],
            unresolvable('persistentvolumeclaim "a" bound to non-existent persistentvolume "pv"'),
            id="bound-and-lost",
        ),
        pytest.param(pod_with("a"), [NO_MODE, unbound("a", "no-mode")], NO_MODE_ERROR, id="no-binding-mode"),
        pytest.param(
            pod_with("a", "b"),
            [NO_MODE, unbound("a", ""), unbound("b", "no-mode")],
            NO_MODE_ERROR,
            id="an-error-comes-before-immediate-claims",
        ),
        pytest.param(
            pod_with("a", "gone"),
            [NO_MODE, unbound("a", "no-mode")],
            unresolvable('persistentvolumeclaim "gone" not found'),
            id="a-missing-claim-comes-before-all-else",
        ),
    ],
)
def test_a_pod_fails_on_all_nodes_for_a_claim_that_none_can_help(
    pod: Pod, objects: list[Object], expected: Status
) -> None:
    with pytest.raises(ClaimError) as caught:
        claims_of(mirror_of(*objects), pod)
    assert caught.value.status == expected


VALUES: Final = ("a", "b", "c")
KEYS: Final = ("host", "zone")


def random_selector(random: Random) -> NodeSelector | None:
    if random.random() < 0.1:
        return None
    expressions: list[Expression] = [
        *((key, "In", random.sample(VALUES, random.randint(1, 2))) for key in KEYS),
        *((key, "NotIn", [random.choice(VALUES)]) for key in KEYS),
        ("zone", "Exists", ()),
        ("zone", "Gt", ["1"]),
    ]
    terms = [(random.sample(expressions, random.randint(0, 2)), ()) for _ in range(random.randint(0, 3))]
    return parse_node_selector(terms)


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_missed_and_the_order_is_kept(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - no secret; the same in every run
    things = [(number, random_selector(random)) for number in range(20)]
    indexed = ByTopology(things)
    for host in (*VALUES, None):
        for zone in (*VALUES, "7", None):
            labels = {key: value for key, value in zip(KEYS, (host, zone), strict=True) if value is not None}
            expected = [number for number, selector in things if selector is None or selector.matches(labels)]
            assert list(indexed.reached(labels)) == expected


def test_the_keys_are_those_that_any_of_them_reads() -> None:
    greater = parse_node_selector([([("rank", "Gt", ["1"])], [])])
    assert ByTopology([("a", within("zone", "a")), ("b", greater), ("c", None)]).keys == {"zone", "rank"}
    assert label_keys(None) == set()


@pytest.mark.parametrize("seed", range(10))
def test_what_is_reached_from_a_place_on_is_the_rest(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - no secret; the same in every run
    things = [(number, random_selector(random)) for number in range(20)]
    indexed = ByTopology(things)
    even = indexed.anywhere(lambda number: number % 2 == 0)
    for labels in ({}, {"host": "a"}, {"host": "b", "zone": "c"}, {"zone": "7"}):
        reached = list(indexed.reached(labels))
        assert list(indexed.reached(labels, start=9)) == [number for number in reached if number >= 9]
        some = list(indexed.reached(labels, anywhere=even))
        assert [number for number in some if number % 2 == 0] == [number for number in reached if number % 2 == 0]
        assert set(some) <= set(reached)
    assert (list(indexed), indexed.loose) == ([*range(20)], len(indexed.anywhere(lambda _: True)))


def storage(*claims: tuple[int, int]) -> Storage:
    made = Storage()
    for requested, capacity in claims:
        made.add(requested, capacity)
    return made


@pytest.mark.parametrize(
    ("by_class", "expected"),
    [
        pytest.param({}, 0, id="no-class"),
        pytest.param({"a": storage((0, 100))}, 100, id="nothing-asked"),
        pytest.param({"a": storage((30, 100))}, 70, id="a-share"),
        pytest.param({"a": storage((1, 3))}, 67, id="the-share-is-rounded-down"),
        pytest.param({"a": storage((100, 100))}, 0, id="everything"),
        pytest.param({"a": storage((101, 100))}, 0, id="more-than-there-is"),
        pytest.param({"a": storage((0, 0))}, 0, id="nothing-there"),
        pytest.param({"a": storage((10, 100), (30, 100))}, 80, id="claims-of-a-class-together"),
        pytest.param({"a": storage((0, 1)), "b": storage((55, 100))}, 73, id="the-mean-is-rounded-up-from-a-half"),
    ],
)
def test_the_score_is_the_mean_over_the_classes(by_class: dict[str, Storage], expected: int) -> None:
    assert score_of(by_class) == expected


def test_sums_overflow_as_go_s_do() -> None:
    assert storage((2**62, 2**62), (2**62, 2**62)).score == 100  # -2^63 of -2^63, which times 100 is 0
