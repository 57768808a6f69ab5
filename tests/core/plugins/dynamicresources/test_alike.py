"""Which nodes are judged by one search, because what decides about the claims is equal there."""

from typing import Any

import pytest

from core.objects.devices import ResourceClaim
from core.plugins.dynamicresources.allocator import Search
from tests.core.plugins.dynamicresources.test_inventory import Life
from tests.core.plugins.dynamicresources.world import (
    DRIVER,
    FAILS,
    V1,
    alternative,
    claim,
    device,
    in_use,
    request,
    slice_of,
    verdict,
    world,
)

MODEL_A = {"cel": {"expression": f'device.attributes["{DRIVER}"].model == "a"'}}


def judged(monkeypatch: pytest.MonkeyPatch, case: V1) -> tuple[int, int]:
    """Return how many nodes fit, and how many were searched. The claim of the pod is the last one of the case."""
    run = Search.run
    searches: list[Search] = []

    def counted(search: Search) -> bool:
        searches.append(search)
        return run(search)

    with monkeypatch.context() as patched:
        patched.setattr(Search, "run", counted)
        return Life(case).fitting(), len(searches)


def nodes_of(*models: str, **values: Any) -> list[V1]:  # noqa: ANN401 - of any kind
    """Return a slice for each node; each letter is the model of a device."""
    return [
        slice_of(
            f"s{at}",
            [device(f"g{number}", {"model": {"string": each}, **values}) for number, each in enumerate(letters)],
            f"p{at}",
            nodeName=f"n{at}",
        )
        for at, letters in enumerate(models)
    ]


def test_devices_in_use_decide_only_where_all_are_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = [claim([request()], f"x{at}", in_use("g1", pool=f"p{at}")) for at in range(2)]
    one, every = (claim([request(selectors=[MODEL_A], **fields)]) for fields in ({}, {"allocationMode": "All"}))
    assert judged(monkeypatch, world(nodes_of("ab", "aa"), [*taken, one], nodes=2)) == (2, 1)
    del every["spec"]["devices"]["requests"][0]["exactly"]["count"]
    assert judged(monkeypatch, world(nodes_of("ab", "aa"), [*taken, every], nodes=2)) == (1, 2)
    looking = claim([request(selectors=[MODEL_A], count=2, adminAccess=True)])
    assert judged(monkeypatch, world(nodes_of("ab", "aa"), [*taken, looking], nodes=2)) == (1, 2)


def test_values_that_constraints_compare_decide_by_which_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = claim([request(count=2)], constraints=[{"matchAttribute": f"{DRIVER}/model"}])
    assert judged(monkeypatch, world(nodes_of("aa", "bb", "ab", "cd"), [pair], nodes=4)) == (2, 2)


def test_a_value_that_no_constraint_compares_is_like_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = claim([request(count=2)], constraints=[{"matchAttribute": f"{DRIVER}/m"}])
    slices = [
        slice_of(f"s{at}", [device(each, {"m": value}) for each in ("g0", "g1")], f"p{at}", nodeName=f"n{at}")
        for at, value in enumerate(({"int": 1}, {"ints": [1]}))
    ]
    assert judged(monkeypatch, world(slices, [pair], nodes=2)) == (1, 2)


def test_an_error_names_the_device_of_its_node() -> None:
    slices = [slice_of(f"s{at}", [device("g")], f"p{at}", nodeName=f"n{at}") for at in range(2)]
    case = world(slices, [claim([request(selectors=[FAILS])])], nodes=2)
    assert [f"{DRIVER}/p{at}/g" in verdict(case, f"n{at}") for at in range(2)] == [True, True]


def test_what_is_taken_on_one_node_is_known_there_alone() -> None:
    life = Life(world(nodes_of("a", "a", "a"), [claim([request(selectors=[MODEL_A])])], nodes=3))
    assert life.fitting() == 3
    assert life.tell(ResourceClaim, claim([request()], "x", in_use("g0", pool="p1"))) == 2
    other = {**MODEL_A, "cel": {"expression": MODEL_A["cel"]["expression"] + " && true"}}
    life.tell(ResourceClaim, claim([request(selectors=[other])]))
    assert life.fitting() == 2
    assert life.tell(ResourceClaim, claim([request()], "x"), "Delete") == 3


def test_a_search_without_an_end_is_not_made_again_for_the_same_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    alternatives = [alternative(f"s{of}") for of in range(32)]
    requests = [{"name": f"r{at}", "firstAvailable": alternatives} for at in range(32)]
    constraint = {"matchAttribute": f"{DRIVER}/none", "requests": ["r30"]}
    case = world(nodes_of(*["a" * 8] * 9), [claim(requests, constraints=[constraint])], nodes=9)
    fitting, searches = judged(monkeypatch, case)
    assert fitting == 9
    assert 5 <= searches <= 6
