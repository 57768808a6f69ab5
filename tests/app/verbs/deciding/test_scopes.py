"""Which pods are decided for, by the setting."""

from dataclasses import replace
from typing import Literal

import pytest
from pydantic import ValidationError

from app.settings.settings import Settings
from app.verbs.scopes import DecideScope, decide_scopes
from app.wiring.main import create_service
from tests.app.asgi import ask
from tests.app.questions import by_name, mirror_of
from tests.builders import make_node, make_pod


def test_nothing_is_decided_unless_it_is_set() -> None:
    assert decide_scopes(Settings()) is None
    assert decide_scopes(Settings(decide_schedulers=("a",), decide_claims_scheduler="b")) is None


@pytest.mark.parametrize("word", ["any-node", "listed-nodes"])
def test_one_scope_is_that_of_all_schedulers(word: Literal["any-node", "listed-nodes"]) -> None:
    scopes = decide_scopes(Settings(decide=word))
    assert scopes is not None
    assert {scopes.of(name) for name in ("", "a", "b")} == {DecideScope(word)} == scopes.all


def test_schedulers_that_are_not_named_get_all_nodes() -> None:
    scopes = decide_scopes(Settings(decide="any-node", decide_schedulers=("a", "b")))
    assert scopes is not None
    found = {name: scopes.of(name) for name in ("a", "b", "c")}
    assert found == {"a": DecideScope.ANY_NODE, "b": DecideScope.ANY_NODE, "c": None}


@pytest.mark.parametrize("named", [(), ("a",), ("a", "claims", "groups")])
def test_the_schedulers_that_keep_filters_get_a_choice_among_the_listed_nodes(named: tuple[str, ...]) -> None:
    keeping = {"decide_claims_scheduler": "claims", "decide_groups_scheduler": "groups"}
    scopes = decide_scopes(Settings.model_validate({"decide": "any-node", "decide_schedulers": named, **keeping}))
    assert scopes is not None
    found = {name: scopes.of(name) for name in ("a", "claims", "groups")}
    listed = DecideScope.LISTED_NODES
    assert found == {"a": DecideScope.ANY_NODE, "claims": listed, "groups": listed}
    assert scopes.all == set(DecideScope)


def test_a_pod_of_another_scheduler_is_answered_with_all_nodes_that_fit() -> None:
    nodes = [make_node(name).allocatable(pods=10) for name in ("n1", "n2")]
    settings = Settings(decide="listed-nodes", decide_schedulers=("a",), profile="full")
    app = create_service(settings, mirror_of(*nodes), None).app
    responded = {}
    for scheduler in "ab":
        pod = replace(make_pod("p"), spec={"schedulerName": scheduler})
        responded[scheduler] = len(ask(app, "POST", "/filter", by_name(pod, "n1", "n2")).json()["NodeNames"])
    assert responded == {"a": 1, "b": 2}


def test_a_pod_that_is_decided_for_is_judged_in_a_bypassed_namespace_too() -> None:
    """Its scheduler has no filters: without a verdict, kube-scheduler would place it on any node of its list."""
    nodes = [make_node("n1").unschedulable(), make_node("n2").allocatable(pods=10)]
    settings = Settings(
        decide="listed-nodes",
        decide_schedulers=("a",),
        profile="full",
        bypass_namespaces=("shop",),
        bypass_schedulers=("c",),
    )
    app = create_service(settings, mirror_of(*nodes), None).app
    responded = {}
    for scheduler in "abc":
        pod = replace(make_pod("p").in_namespace("shop"), spec={"schedulerName": scheduler})
        responded[scheduler] = ask(app, "POST", "/filter", by_name(pod, "n1", "n2")).json()["NodeNames"]
    assert responded == {"a": ["n2"], "b": ["n1", "n2"], "c": ["n1", "n2"]}


@pytest.mark.parametrize("key", ["decide_schedulers", "decide_claims_scheduler", "decide_groups_scheduler"])
def test_a_scheduler_is_decided_for_or_passes(key: str) -> None:
    value = ("a",) if key == "decide_schedulers" else "a"
    named = {"profile": "full", "bypass_schedulers": ("a", "b"), key: value}
    assert Settings.model_validate(named).decide == "off"
    with pytest.raises(ValidationError, match="a: Kindred decides for its pods"):
        Settings.model_validate({**named, "decide": "any-node"})
