"""`GET /units` of a service: the groups of pods that are placed together."""

from typing import Any, Final

from fastapi import FastAPI

from app.admin.cluster_routes import units_router
from app.api_server.cluster_access import ClusterAccess
from app.api_server.credentials import Credentials
from app.main import create_service
from app.settings.settings import Settings
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.groups import GroupCondition, SchedulingGroup
from tests.app.asgi import ask
from tests.app.questions import mirror_of
from tests.builders import make_node, make_pod
from tests.core.gangs.gang_setting import GangSetting, member, node


def app_of(setting: GangSetting) -> FastAPI:
    app = FastAPI()
    app.include_router(units_router(lambda: setting.gangs.unit_statuses(setting.now)))
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


CONDITION: Final = GroupCondition("PodGroupInitiallyScheduled", "False", "Unschedulable", "0/1 nodes", "2026-01-01")


def with_scheduling_group() -> ClusterMirror:
    """Return a mirror with a group of kube-scheduler between two groups of Kindred."""
    upstream = [make_pod(f"m{number}").in_scheduling_group("team") for number in range(2)]
    mirror = mirror_of(make_node("n0"), *(make_pod(name).of_group(name, 2) for name in ("a", "z")), *upstream)
    group = SchedulingGroup(namespace="default", name="team", minimum=3, conditions=(CONDITION,))
    mirror.apply(ClusterEvent("Add", group))
    return mirror


def listed(settings: Settings, credentials: Credentials | None = None) -> list[dict[str, Any]]:
    admin = create_service(settings, with_scheduling_group(), credentials).admin
    assert admin is not None
    found: list[dict[str, Any]] = ask(admin, "GET", "/units").json()["units"]
    return found


def test_groups_of_kube_scheduler_are_in_the_same_list_by_name() -> None:
    credentials = Credentials(ClusterAccess("test", "http://127.0.0.1:1", None), None)
    found = listed(Settings(decide="listed-nodes", admin="127.0.0.1:0"), credentials)
    assert [(each["unit"], each["placed_by"]) for each in found] == [
        ("default/a", "kindred"),
        ("default/team", "kube-scheduler"),
        ("default/z", "kindred"),
    ]
    team = found[1]
    assert (team["status"], team["reason"]) == ("pending", "waits for 1 more member of 3")
    assert [team[name] for name in ("minimum", "members", "pending", "packing")] == [3, 2, 2, None]
    assert team["conditions"] == [
        {
            "type": "PodGroupInitiallyScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/1 nodes",
            "since": "2026-01-01",
        }
    ]


def test_a_service_that_places_nothing_together_lists_the_groups_of_kube_scheduler() -> None:
    assert [each["unit"] for each in listed(Settings(admin="127.0.0.1:0"))] == ["default/team"]


def test_a_podgroup_that_could_not_be_read_yet_is_not_said_to_be_missing() -> None:
    mirror = mirror_of(make_pod("m").in_scheduling_group("team"))
    credentials = Credentials(ClusterAccess("test", "http://127.0.0.1:1", None), None)
    admin = create_service(Settings(admin="127.0.0.1:0"), mirror, credentials).admin
    assert admin is not None
    (unit,) = ask(admin, "GET", "/units").json()["units"]
    assert unit["reason"] == "its minimum is unknown: podgroups.scheduling.k8s.io: not synced"


def test_without_groups_the_list_is_empty() -> None:
    admin = create_service(Settings(admin="127.0.0.1:0"), ClusterMirror(), None).admin
    assert admin is not None
    assert ask(admin, "GET", "/units").json() == {"units": []}
