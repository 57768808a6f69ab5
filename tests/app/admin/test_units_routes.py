"""`GET /units` of a service: the groups of pods that are placed together."""

from fastapi import FastAPI

from app.admin.units_routes import units_router
from app.main import create_service
from app.settings import Settings
from core.mirror.cluster import ClusterMirror
from tests.app.asgi import ask
from tests.core.gangs.gang_setting import GangSetting, member, node


def app_of(setting: GangSetting) -> FastAPI:
    app = FastAPI()
    app.include_router(units_router(setting.gangs, lambda: setting.now))
    return app


def test_units_are_listed_with_their_members_by_state() -> None:
    setting = GangSetting(node("n0"))
    pods = [member("a"), member("b"), member("x", group="other").in_namespace("shop")]
    setting.see(*pods)
    setting.ask(pods[0])
    setting.now = 7.0
    other, train = sorted(ask(app_of(setting), "GET", "/units").json()["units"], key=lambda each: each["members"])
    assert (other["unit"], other["status"], other["reason"]) == (
        "shop/other",
        "pending",
        "waits for 1 more member of 2",
    )
    assert (train["unit"], train["status"], train["reason"]) == ("default/train", "reserved", "")
    assert [train[name] for name in ("minimum", "members", "bound", "assumed", "reserved")] == [2, 2, 0, 1, 1]
    assert (train["asked"], train["reserved_since"], train["timeout"]) == (7.0, 7.0, 60.0)


def test_a_namespace_is_asked_for_by_name() -> None:
    setting = GangSetting()
    setting.see(member("a"), member("x").in_namespace("def"))
    app = app_of(setting)
    assert [each["unit"] for each in ask(app, "GET", "/units?namespace=def").json()["units"]] == ["def/train"]
    assert ask(app, "GET", "/units?namespace=none").json() == {"units": []}
    assert ask(app, "GET", "/units?namespace=").status_code == 422
    assert ask(app, "GET", "/units?name=shop").status_code == 422


def test_a_service_that_places_nothing_together_says_what_that_needs() -> None:
    app = create_service(Settings(admin_port=0), ClusterMirror(), None).admin
    assert app is not None
    response = ask(app, "GET", "/units")
    assert (response.status_code, response.json()["detail"]) == (
        404,
        "groups: off, because they need `answer: decide` and a cluster",
    )
