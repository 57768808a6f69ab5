"""What the equivalence cache holds, over HTTP, and how a question tells and chooses where its answer is from."""

import json
from itertools import count

import pytest
from fastapi import FastAPI
from starlette.types import ASGIApp

from app.admin.equivalence_routes import equivalence_router
from app.process.long_work import LongWork
from app.settings.settings import Settings
from app.verbs.filter import Extender
from app.verbs.request import Request
from app.wiring.main import Service, create_service
from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.objects.pod import Pod
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from core.plugins.nodeunschedulable import NodeUnschedulable
from core.plugins.podtopologyspread.plugin import PodTopologySpread
from core.plugins.tainttoleration import TaintToleration
from core.profile import Profile
from tests.app.asgi import ask, bodies_of
from tests.app.questions import NEAR_WEB, ZONE, by_name, shop
from tests.builders import Object, PodBuilder, make_pod

NODES = ("a1", "a2", "b1", "c1")
VERBS = ("filter", "prioritize")
WANTS_WEB = make_pod("p").required_affinity(NEAR_WEB)
OF_A_CLASS = WANTS_WEB.owned_by("ReplicaSet", "rs", "rs-1")
TAINT = TaintToleration()
PROFILE = Profile(
    filters=(NodeUnschedulable(), TAINT, InterPodAffinity()),
    scores=((TAINT, 3), (InterPodAffinity(), 2), (PodTopologySpread(), 2)),
)


def service(mirror: ClusterMirror, **settings: object) -> Service:
    return create_service(Settings.model_validate({"admin": "127.0.0.1:0", **settings}), mirror, None)


def source(app: ASGIApp, pod: PodBuilder, verb: str = "filter") -> str:
    """Ask, and give the word in front of the hash in the header."""
    response = ask(app, "POST", f"/{verb}", by_name(pod, *NODES))
    assert response.status_code == 200
    stated: str = response.headers["kindred-equivalence"]
    word, _, equivalence_hash = stated.partition(" ")
    assert len(equivalence_hash) == (16 if word in {"hit", "partial", "miss"} else 0)
    return word


# Headers of questions.


@pytest.mark.parametrize("verb", VERBS)
def test_the_header_tells_how_much_of_the_answer_was_there(verb: str) -> None:
    mirror = shop()
    app = service(mirror).app
    pod = OF_A_CLASS.preferred_affinity(5, NEAR_WEB)
    assert [source(app, pod, verb) for _ in range(2)] == ["miss", "hit"]
    mirror.apply(ClusterEvent("Update", Node("a1", {ZONE: "a", "disk": "ssd"})))
    assert [source(app, pod, verb) for _ in range(2)] == ["partial", "hit"]


def test_a_question_can_be_answered_without_the_cache_which_does_not_hear_of_it() -> None:
    service_ = service(shop())
    body = by_name(OF_A_CLASS, *NODES)
    for expected in ("miss", "hit"):
        before = totals(service_)
        plain = {verb: ask(service_.app, "POST", f"/{verb}", body, {"Kindred-Cache": "off"}) for verb in VERBS}
        assert {each.headers["kindred-equivalence"] for each in plain.values()} == {"off"}
        assert before == totals(service_)
        assert {source(service_.app, OF_A_CLASS, verb) for verb in VERBS} == {expected}
        for verb, response in plain.items():
            assert response.content == ask(service_.app, "POST", f"/{verb}", body).content


@pytest.mark.parametrize("verb", VERBS)
def test_where_the_cache_is_off_there_is_no_header(verb: str) -> None:
    app = service(shop(), equivalence_cache=False).app
    for headers in ({}, {"Kindred-Cache": "off"}):
        response = ask(app, "POST", f"/{verb}", by_name(OF_A_CLASS, *NODES), headers)
        assert "kindred-equivalence" not in response.headers


@pytest.mark.parametrize(("mode", "expected"), [("controller", ["none", "none"]), ("spec", ["miss", "hit"])])
def test_a_pod_without_controller_has_a_class_only_by_its_spec(mode: str, expected: list[str]) -> None:
    app = service(shop(), equivalence_mode=mode).app
    assert expected == [source(app, WANTS_WEB) for _ in expected]


# The debug route: totals and classes.


def get(app: ASGIApp, query: str = "", status: int = 200) -> Object:
    response = ask(app, "GET", f"/debug/equivalence{query}")
    assert response.status_code == status
    assert response.headers["content-type"] == "application/json"
    content: Object = response.json()
    return content


def totals(service_: Service) -> Object:
    assert service_.admin is not None
    found: Object = get(service_.admin)["totals"]
    return found


class Rendered:
    """A cache over a mirror with several plugins, its extender, and its debug route, with a clock that is set."""

    def __init__(self, mirror: ClusterMirror | None = None) -> None:
        self.now = 100.0
        self.mirror = mirror or shop()
        self.cache = EquivalenceCache(self.mirror, PROFILE.plugins, CacheOptions(mode="spec"), clock=lambda: self.now)
        self.extender = Extender(PROFILE, self.mirror, self.cache)
        self.app = FastAPI()
        self.app.include_router(equivalence_router(self.cache, lambda: self.now, LongWork()))

    def filter(self, pod: PodBuilder, *nodes: str) -> str:
        """Ask about a pod, and give its class."""
        return self.extender.filter(Request(by_name(pod, *(nodes or NODES)))).source[-16:]

    def prioritize(self, pod: PodBuilder, *nodes: str) -> str:
        """Ask about a pod, and give its class."""
        return self.extender.prioritize(Request(by_name(pod, *(nodes or NODES)))).source[-16:]


def test_totals_are_those_of_all_classes() -> None:
    rendered = Rendered()
    for pod in (WANTS_WEB, WANTS_WEB, WANTS_WEB, make_pod("q")):
        rendered.filter(pod)
    rendered.mirror.apply(ClusterEvent("Update", Node("a1", {ZONE: "a"}, unschedulable=True)))
    found = get(rendered.app)["totals"]
    assert found["classes"] == 2
    assert found["bytes"] == rendered.cache.nbytes
    assert found["questions"] == {"hit": 2, "partial": 0, "miss": 2, "none": 0}
    assert found["cells"]["hit"] == 24
    assert found["cells"]["miss"]["new_class"] == 24
    assert found["hit_rate"] == 0.5
    expected = {"plugin": "NodeUnschedulable", "kind": "Node", "operation": "UPDATE", "count": 1}
    assert found["invalidations"] == [expected]


def test_a_class_tells_of_itself() -> None:
    rendered = Rendered()
    equivalence_hash = rendered.filter(WANTS_WEB)
    rendered.now += 5
    for name in ("second", "third"):
        assert rendered.filter(make_pod(name).required_affinity(NEAR_WEB)) == equivalence_hash
    rendered.prioritize(WANTS_WEB)
    rendered.now += 2.5
    (entry,) = rendered.cache
    of_the_class = get(rendered.app, f"?class={equivalence_hash}")
    assert of_the_class == {
        "hash": equivalence_hash,
        "first_pod": "default/p",
        "questions": 4,
        "hits": 24,
        "misses": 20,
        "hit_rate": 0.5455,
        "age_seconds": 7.5,
        "seconds_since_last_question": 2.5,
        "bytes": entry.nbytes,
        "rows": [
            {"plugin": "InterPodAffinity", "side": "filter", "state": "cells", "cells": 4},
            {"plugin": "NodeUnschedulable", "side": "filter", "state": "cells", "cells": 4},
            {"plugin": "TaintToleration", "side": "filter", "state": "cells", "cells": 4},
            {"plugin": "first failing filter", "side": "filter", "state": "cells", "cells": 4},
            {"plugin": "InterPodAffinity", "side": "score", "state": "Skip", "cells": 0},
            {"plugin": "TaintToleration", "side": "score", "state": "cells", "cells": 4},
        ],
    }
    assert get(rendered.app)["classes"] == [of_the_class]
    assert get(rendered.app, f"?class={equivalence_hash.upper()}") == of_the_class


def test_looking_changes_nothing() -> None:
    rendered = Rendered()
    equivalence_hash = rendered.filter(WANTS_WEB)
    rendered.mirror.apply(ClusterEvent("Update", Node("a1", {ZONE: "b"})))
    queries = ("", f"?class={equivalence_hash}")
    assert [get(rendered.app, query) for query in queries] == [get(rendered.app, query) for query in queries]


def test_three_thousand_classes_are_sent_in_chunks() -> None:
    rendered = Rendered()
    for number in range(3000):
        rendered.cache.evaluation(Pod("u", "shop", "web", {"number": str(number)}))
    bodies = bodies_of(rendered.app, "/debug/equivalence")
    assert len(bodies) > 5
    assert max(map(len, bodies)) < 80_000
    assert len(json.loads(b"".join(bodies))["classes"]) == 3000


def test_a_limit_leaves_those_classes_that_were_asked_about_last() -> None:
    rendered = Rendered()
    for name in "xyz":
        rendered.filter(make_pod(name).label("app", name))
    named = [
        [each["first_pod"] for each in get(rendered.app, query)["classes"]] for query in ("?limit=2", "?limit=0", "")
    ]
    assert named == [["default/z", "default/y"], [], ["default/z", "default/y", "default/x"]]
    assert get(rendered.app, "?limit=0")["totals"]["classes"] == 3
    assert ask(rendered.app, "GET", "/debug/equivalence?limit=-1").status_code == 422


def test_a_class_that_is_evicted_while_the_list_is_sent_is_left_out() -> None:
    rendered = Rendered()
    numbers = count()

    def clock() -> float:
        if next(numbers) == 1:  # the second class of three is being told
            rendered.cache.clear()
        return 0.0

    for name in "xyz":
        rendered.filter(make_pod("p").label("app", name))
    app = FastAPI()
    app.include_router(equivalence_router(rendered.cache, clock, LongWork()))
    assert len(get(app)["classes"]) == 2


def test_a_class_that_is_not_there_is_named() -> None:
    detail = "class 0123456789ABCDEF: not in the cache"
    assert get(Rendered().app, "?class=0123456789ABCDEF", 404) == {"detail": detail}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        pytest.param("?class=", ["query", "class", 0], id="empty"),
        pytest.param("?class=0123456789abcdeg", ["query", "class", 0], id="no-hexadecimal-digit"),
        pytest.param("?class=0123456789abcdef&class=0123456789abcdef", ["query", "class"], id="class-twice"),
        pytest.param("?hash=0123456789abcdef", ["query", "hash"], id="unknown-parameter"),
    ],
)
def test_a_query_that_is_not_clear_is_refused_by_its_field(query: str, field: list[object]) -> None:
    (problem, *_) = get(Rendered().app, query, 422)["detail"]
    assert problem["loc"] == field


@pytest.mark.parametrize("query", ["", "?class=0123456789abcdef"])
def test_a_cache_that_is_off_cannot_be_looked_at(query: str) -> None:
    admin = service(shop(), equivalence_cache=False).admin
    assert admin is not None
    assert get(admin, query, 409) == {"detail": "the equivalence cache is off (KINDRED_EQUIVALENCE_CACHE)"}


def test_the_service_shows_its_own_cache_on_the_admin_port_and_nowhere_else() -> None:
    service_ = service(shop())
    assert service_.admin is not None
    ask(service_.app, "POST", "/filter", by_name(OF_A_CLASS, *NODES))
    (found,) = get(service_.admin)["classes"]
    assert found["first_pod"] == "default/p"
    assert 0 <= found["seconds_since_last_question"] <= found["age_seconds"] < 60
    assert ask(service_.app, "GET", "/debug/equivalence").status_code == 404
