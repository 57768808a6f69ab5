"""The pods that are debugged, over HTTP."""

import pytest
from fastapi import FastAPI

from app.admin.debug_pods_routes import debug_pods_router
from app.telemetry.debugged_pods import MAX_PODS, DebuggedPods
from tests.app.asgi import ask
from tests.app.telemetry.passing_time import Clock

NOON = 1_763_812_800.0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pods(clock: Clock) -> DebuggedPods:
    return DebuggedPods(clock)


@pytest.fixture
def app(pods: DebuggedPods) -> FastAPI:
    served = FastAPI()
    served.include_router(debug_pods_router(pods, lambda: NOON))
    return served


def test_a_pod_is_put_shown_and_deleted(app: FastAPI, pods: DebuggedPods, clock: Clock) -> None:
    assert ask(app, "GET", "/debug/pods").json() == {"pods": []}
    put = ask(app, "PUT", "/debug/pods/shop/web-1.a?for=600")
    assert put.status_code == 200
    assert put.json() == {"pod": "shop/web-1.a", "seconds_left": 600, "until": "2025-11-22T12:10:00Z"}
    assert pods.left() == {"shop/web-1.a": 600}
    clock.pass_by(60)
    (shown,) = ask(app, "GET", "/debug/pods").json()["pods"]
    assert (shown["pod"], shown["seconds_left"]) == ("shop/web-1.a", 540)
    assert ask(app, "DELETE", "/debug/pods/shop/web-1.a").status_code == 204
    assert pods.left() == {}
    again = ask(app, "DELETE", "/debug/pods/shop/web-1.a")
    assert (again.status_code, again.json()["detail"]) == (
        404,
        "pod shop/web-1.a: its requests are not logged in full",
    )


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("shop/web", id="no-time"),
        pytest.param("shop/web?for=0", id="no-time-at-all"),
        pytest.param("shop/web?for=86401", id="more-than-a-day"),
        pytest.param("shop/web?for=nan", id="no-number"),
        pytest.param("shop/Web?for=60", id="no-name"),
        pytest.param("shop.x/web?for=60", id="no-namespace"),
        pytest.param(f"shop/{'a' * 254}?for=60", id="long-name"),
    ],
)
def test_what_is_not_allowed_changes_nothing(path: str, app: FastAPI, pods: DebuggedPods) -> None:
    assert ask(app, "PUT", f"/debug/pods/{path}").status_code == 422
    assert pods.left() == {}


def test_a_time_that_is_over_at_once_is_no_fault(app: FastAPI) -> None:
    put = ask(app, "PUT", "/debug/pods/shop/web?for=5e-324")
    assert (put.status_code, put.json()["seconds_left"]) == (200, 0)


def test_too_many_are_a_conflict(app: FastAPI) -> None:
    for number in range(MAX_PODS):
        assert ask(app, "PUT", f"/debug/pods/shop/web-{number}?for=60").status_code == 200
    refused = ask(app, "PUT", "/debug/pods/shop/other?for=60")
    assert (refused.status_code, refused.json()["detail"]) == (409, "100 pods are logged already")
