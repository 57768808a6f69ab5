"""`GET /pending` of a service."""

from fastapi import FastAPI

from app.main import create_service
from app.settings import Settings
from tests.app.asgi import ask
from tests.builders import make_node, make_pod
from tests.conformance.engine import load


def admin() -> FastAPI:
    mirror = load(
        [],
        [make_node("n1").allocatable(cpu=1, pods=10).obj()],
        [make_pod("large").requests(cpu=2).obj(), make_pod("other").in_namespace("shop").requests(cpu=1).obj()],
    )
    app = create_service(Settings(admin_port=0, listen_port=0), mirror, None).admin
    assert app is not None
    return app


def test_pending_pods_are_judged_by_every_rule_though_affinity_alone_is_served() -> None:
    told = ask(admin(), "GET", "/pending").json()
    assert [(each["pod"], each["class"], each["state"]) for each in told["pods"]] == [
        ("default/large", 0, "unschedulable"),
        ("shop/other", 1, "fits"),
    ]
    reason = told["classes"][0]["reasons"][0]
    assert (reason["reason"], reason["judged_by"]) == ("Insufficient cpu", "kube-scheduler")


def test_a_namespace_is_asked_for_by_name() -> None:
    app = admin()
    assert [each["pod"] for each in ask(app, "GET", "/pending?namespace=shop").json()["pods"]] == ["shop/other"]
    assert ask(app, "GET", "/pending?namespace=").status_code == 422
    assert ask(app, "GET", "/pending?name=shop").status_code == 422
