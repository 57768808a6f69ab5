"""What questions get while the mirror cannot be trusted, on the wire."""

from collections.abc import Callable

import pytest

from app.feeds.freshness import Freshness, ResourceState
from app.objects.resources import RESOURCES
from app.settings.settings import Settings
from app.verbs.admission import ServingState
from app.verbs.request import Request
from app.verbs.wire_out import filter_error, prioritize_error
from app.wiring.engine import create_extender
from core.objects.node import Node
from core.objects.pod import Pod
from tests.app.asgi import ask
from tests.app.questions import NEAR_WEB, by_name, decoded, shop
from tests.app.verbs.receptions import extender_app, reception
from tests.builders import make_pod

QUESTION = by_name(make_pod("p").required_affinity(NEAR_WEB), "a1", "c1")
STALE_AFTER = 10.0


class Followed:
    """The verbs over a mirror that follows nodes and pods, as far as the test says."""

    def __init__(self, *, names: bool = True) -> None:
        self.now = 100.0
        self.stale: list[str] = []
        """The verbs that met a mirror that is not fresh."""
        self.nodes, self.pods = ResourceState(RESOURCES[Node]), ResourceState(RESOURCES[Pod])
        freshness = Freshness([self.nodes, self.pods], STALE_AFTER, lambda: self.now)
        mirror = shop()
        desk = reception(observe=self._observe, state=ServingState(freshness=freshness, names=names))
        self.app = extender_app(create_extender(Settings(), mirror), mirror, desk)

    def _observe(self, request: Request) -> None:
        if not request.is_fresh:
            self.stale.append(request.verb)

    def sync(self, *states: ResourceState) -> None:
        for state in states:
            state.synced, state.followed_at = True, self.now


def test_a_fresh_mirror_is_answered_from_without_a_word() -> None:
    followed = Followed()
    followed.sync(followed.nodes, followed.pods)
    followed.now += STALE_AFTER
    response = ask(followed.app, "POST", "/filter", QUESTION)
    assert decoded(response.content)["NodeNames"] == ["a1"]
    assert "kindred-stale" not in response.headers
    assert followed.stale == []


@pytest.mark.parametrize(("verb", "error"), [("filter", filter_error), ("prioritize", prioritize_error)])
def test_a_mirror_that_was_never_complete_is_refused(verb: str, error: Callable[[str], bytes]) -> None:
    followed = Followed()
    followed.sync(followed.nodes)
    response = ask(followed.app, "POST", f"/{verb}", QUESTION)
    assert response.status_code == 200
    assert error("the mirror is not synced: pods: not synced") == response.content
    assert followed.stale == [verb]


def test_filter_refuses_a_stale_mirror_and_names_every_resource() -> None:
    followed = Followed()
    followed.sync(followed.nodes, followed.pods)
    followed.now += STALE_AFTER + 2
    followed.pods.problem = "Connection refused"
    expected = "the mirror is stale: nodes: stale for 12 s; pods: stale for 12 s (Connection refused)"
    response = ask(followed.app, "POST", "/filter", QUESTION)
    assert filter_error(expected) == response.content
    assert "kindred-stale" not in response.headers
    assert followed.stale == ["filter"]


def test_prioritize_scores_by_a_stale_mirror_and_says_so_in_a_header() -> None:
    followed = Followed()
    followed.sync(followed.nodes, followed.pods)
    fresh = ask(followed.app, "POST", "/prioritize", QUESTION)
    followed.now += STALE_AFTER + 2
    followed.sync(followed.nodes)
    followed.pods.problem = "réponse\u2028\n"
    stale = ask(followed.app, "POST", "/prioritize", QUESTION)
    assert fresh.content == stale.content
    assert stale.headers["kindred-stale"] == "pods: stale for 12 s (r\\xe9ponse\\u2028\\n)"
    assert followed.stale == ["prioritize"]


def test_a_resource_that_is_followed_again_ends_the_refusals() -> None:
    followed = Followed()
    followed.sync(followed.nodes, followed.pods)
    followed.now += STALE_AFTER + 1
    assert ask(followed.app, "POST", "/filter", QUESTION).json()["Error"]
    followed.sync(followed.nodes, followed.pods)
    assert ask(followed.app, "POST", "/filter", QUESTION).json()["Error"] == ""


def test_a_port_that_names_nothing_says_only_that_the_mirror_is_stale() -> None:
    followed = Followed(names=False)
    followed.pods.problem = "403 at https://10.0.0.1"
    never = ask(followed.app, "POST", "/filter", QUESTION)
    assert decoded(never.content)["Error"] == "the mirror is not synced"
    followed.sync(followed.nodes, followed.pods)
    followed.now += STALE_AFTER + 1
    rejected, scored = (ask(followed.app, "POST", f"/{verb}", QUESTION) for verb in ("filter", "prioritize"))
    assert decoded(rejected.content)["Error"] == "the mirror is stale"
    assert scored.headers["kindred-stale"] == "the mirror is stale"
