"""Which pods are decided for, by the setting."""

from dataclasses import replace

import pytest

from app.main import create_service
from app.settings import Settings, SettingsError
from app.verbs.deciding.scopes import DecideScope, decide_scopes
from core.objects.pod import Pod
from tests.app.asgi import ask
from tests.app.questions import by_name, mirror_of
from tests.builders import make_node, make_pod


def pod_of_scheduler(name: str) -> Pod:
    return Pod("u", "default", "p", scheduler_name=name)


def test_nothing_is_decided_unless_it_is_set() -> None:
    assert decide_scopes(Settings()) is None
    assert decide_scopes(Settings(decide_scope="nonsense")) is None


@pytest.mark.parametrize("scope", DecideScope)
def test_one_scope_is_that_of_all_schedulers(scope: DecideScope) -> None:
    scopes = decide_scopes(Settings(answer="decide", decide_scope=f" {scope.value} "))
    assert scopes is not None
    assert {scopes.of(pod_of_scheduler(name)) for name in ("", "a", "b")} == {scope} == scopes.all


def test_schedulers_that_are_not_named_get_all_nodes() -> None:
    scopes = decide_scopes(Settings(answer="decide", decide_scope="a=any-node, b = question"))
    assert scopes is not None
    found = {name: scopes.of(pod_of_scheduler(name)) for name in ("a", "b", "c")}
    assert found == {"a": DecideScope.ANY_NODE, "b": DecideScope.QUESTION, "c": None}
    assert scopes.all == set(DecideScope)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "expected question or any-node", id="empty"),
        pytest.param("all", "got 'all'", id="no-scope"),
        pytest.param("a=all", "got 'all'", id="no-scope-of-one"),
        pytest.param("a=question,any-node", "got ''", id="one-without-a-name"),
        pytest.param("=question", "names no scheduler", id="no-name"),
        pytest.param("a=question,a=any-node", "names a scheduler twice", id="twice"),
    ],
)
def test_a_scope_that_is_none_is_refused_by_name(text: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=f"KINDRED_DECIDE_SCOPE={text!r}: .*{problem}"):
        decide_scopes(Settings(answer="decide", decide_scope=text))


def test_a_pod_of_another_scheduler_is_answered_with_all_nodes_that_fit() -> None:
    nodes = [make_node(name).allocatable(pods=10) for name in ("n1", "n2")]
    settings = Settings(answer="decide", decide_scope="a=question", profile="full")
    app = create_service(settings, mirror_of(*nodes), None).app
    answered = {}
    for scheduler in "ab":
        pod = replace(make_pod("p"), spec={"schedulerName": scheduler})
        answered[scheduler] = len(ask(app, "POST", "/filter", by_name(pod, "n1", "n2")).json()["NodeNames"])
    assert answered == {"a": 1, "b": 2}
