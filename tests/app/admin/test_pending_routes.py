"""`GET /pending` of a service."""

import asyncio

from fastapi import FastAPI

from app.admin.cluster_routes import pieces_of
from app.explain.pending import PendingPods
from app.main import create_service
from app.process.json_text import decode, encode
from app.settings.settings import Settings
from tests.app.asgi import ask
from tests.app.explain.test_pending import cluster, explainer_of
from tests.builders import make_node, make_pod
from tests.conformance.engine import load


def admin() -> FastAPI:
    mirror = load(
        [],
        [make_node("n1").allocatable(cpu=1, pods=10).obj()],
        [make_pod("large").requests(cpu=2).obj(), make_pod("other").in_namespace("shop").requests(cpu=1).obj()],
    )
    app = create_service(Settings(admin="127.0.0.1:0", listen="127.0.0.1:0"), mirror, None).admin
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


def test_the_response_is_written_pod_by_pod_as_its_struct_is() -> None:
    pods = [make_pod(f"p{number}").requests(cpu=9) for number in range(20)]
    explainer = explainer_of(cluster(*pods[1:], pods[0].in_scheduling_group("team")))
    judged = asyncio.run(explainer.judge())
    pieces = [*pieces_of(explainer.view(judged))]
    text = b"".join(pieces)
    assert max(each.count(b'"uid":') for each in pieces) == 1
    assert encode(explainer.view(judged).told()) == text
    found = decode(text, PendingPods)
    assert (len(found.pods), len(found.units)) == (20, 1)
