"""Random cases are the same for the same seed, and an API server would accept their objects."""

from collections.abc import Iterator
from itertools import islice
from random import Random

import pytest

from tests.conformance.golden_files import read
from tests.parity.__main__ import Cases
from tests.parity.generator import KINDS, case_of
from tests.parity.golden import newest
from tests.parity.mutation import Mutator, mended
from tests.parity.random_nodes import V1

SEED = 7
EACH = 30


@pytest.fixture(scope="module", params=newest(), ids=lambda file: str(file.name.partition(".")[0]))
def golden(request: pytest.FixtureRequest) -> list[V1]:
    return [dict(line.content) for line in islice(read(request.param), 40)]


def made(kind: str) -> Iterator[V1]:
    return (case_of(SEED, kind, number) for number in range(EACH))


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_makes_the_same_cases(kind: str) -> None:
    assert [*made(kind)] == [*made(kind)]


@pytest.mark.parametrize("kind", KINDS)
def test_another_number_makes_another_case(kind: str) -> None:
    assert len({str({**case, "name": ""}) for case in made(kind)}) == EACH


@pytest.mark.parametrize("kind", KINDS)
def test_every_pod_is_on_a_node_of_the_case_and_has_a_name_of_its_own(kind: str) -> None:
    for case in made(kind):
        assert_whole(case)


def test_a_mutated_case_is_whole(golden: list[V1]) -> None:
    mutator = Mutator(golden)
    for number in range(EACH):
        assert_whole(mutator.case(Random(number)))  # noqa: S311  # no secret


def test_most_mutated_cases_are_none_of_the_golden_ones(golden: list[V1]) -> None:
    mutator = Mutator(golden)
    inputs = [
        {name: case[name] for name in case if name not in ("name", "tags", "note", "expected")} for case in golden
    ]
    changed = [mutator.case(Random(number)) for number in range(EACH)]  # noqa: S311  # no secret
    assert sum(case not in inputs for case in changed) > EACH / 2


def test_golden_cases_stay_as_they_are(golden: list[V1]) -> None:
    before = str(golden)
    mutator = Mutator(golden)
    for number in range(EACH):
        mutator.case(Random(number))  # noqa: S311  # no secret
    assert str(golden) == before


def test_a_pod_of_a_node_that_is_gone_is_on_another_one() -> None:
    case = {"nodes": [node("n0")], "pods": [pod("p", "gone")], "pod": pod("incoming", "")}
    assert [each["spec"]["nodeName"] for each in mended(Random(0), case)["pods"]] == ["n0"]  # noqa: S311


def test_without_a_node_there_is_no_pod() -> None:
    case: V1 = {"nodes": [], "pods": [pod("p", "gone")], "pod": pod("incoming", "")}
    assert mended(Random(0), case)["pods"] == []  # noqa: S311  # no secret


def test_of_two_pods_with_the_same_name_or_uid_the_first_stays() -> None:
    pods = [pod("p", "n0"), pod("p", "n0"), pod("incoming", "n0")]
    case = {"nodes": [node("n0"), node("n0")], "pods": pods, "pod": pod("incoming", "")}
    assert [each["metadata"]["name"] for each in mended(Random(0), case)["pods"]] == ["p"]  # noqa: S311


def test_a_host_port_of_a_node_has_one_pod_where_pods_are_preempted() -> None:
    pods = [pod(name, "n0") for name in ("p", "q")]
    for each in pods:
        each["spec"]["containers"] = [{"name": "c", "ports": [{"hostPort": 80}]}]
    case = {"nodes": [node("n0")], "pods": pods, "pod": pod("incoming", ""), "pdbs": []}
    assert ["ports" in each["spec"]["containers"][0] for each in mended(Random(0), case)["pods"]] == [True, False]  # noqa: S311


def test_every_kind_comes_up_in_its_share() -> None:
    cases = Cases(SEED, ["plugins", "mutated"]).all()
    assert [kind for kind, _ in (next(cases) for _ in range(8))] == ["plugins"] * 6 + ["mutated"] * 2


def node(name: str) -> V1:
    return {"metadata": {"name": name}}


def pod(name: str, on: str) -> V1:
    return {"metadata": {"name": name, "namespace": "a", "uid": name}, "spec": {"containers": [], "nodeName": on}}


def assert_whole(case: V1) -> None:
    nodes = {each["metadata"]["name"] for each in case["nodes"]}
    assert all(each["spec"]["nodeName"] in nodes for each in case["pods"])
    pods = [*case["pods"], *case.get("nominated", ()), case["pod"]]
    names = {(each["metadata"].get("namespace"), each["metadata"]["name"]) for each in pods}
    assert len(names) == len(pods)
