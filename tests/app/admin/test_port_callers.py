"""What reader, tenant and admin can do and learn, as docs/security.md has it: a test for each cell of its table."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
from fastapi import FastAPI

from app.admin.access import CALLER_HEADER
from app.main import create_service
from app.settings.settings import Settings
from core.mirror.cluster import ClusterMirror
from tests.app.admin.limited_callers import ReviewingServer, limited_service
from tests.app.asgi import ask
from tests.builders import labelled, make_node, make_pod, term
from tests.conformance.engine import load

WHY: Final = "/explain?node=node-1&limit=50"
SECRET: Final = "hidden-7f3a"  # noqa: S105  # a mark in every name that the requests do not have
NODE: Final = "node-1"
HOSTNAME: Final = "kubernetes.io/hostname"
ADMIN: Final = "the-t0ken-of-the-admin"
READER: Final = "the-t0ken-of-the-reader"
TENANT: Final = "the-t0ken-of-a-tenant"


@pytest.fixture
def admin_port(tmp_path: Path) -> FastAPI:
    """Serve the admin port for an admin and for a reader."""
    files = {"admin_token_file": ADMIN, "admin_read_token_file": READER}
    for name, token in files.items():
        (tmp_path / name).write_text(token)
    settings = Settings.model_validate({"admin": "127.0.0.1:0", **{name: tmp_path / name for name in files}})
    admin = create_service(settings, cluster(), None).admin
    assert admin is not None
    return admin


def cluster() -> ClusterMirror:
    """Return a cluster with a pod of a tenant that waits for pods of another one."""
    node = make_node(NODE).label(HOSTNAME, NODE)
    everywhere = term(HOSTNAME, labelled(app="web"), namespace_selector={})
    theirs = make_pod(f"theirs-{SECRET}").in_namespace("theirs").label("app", "web").on(NODE)
    ours = make_pod("ours").in_namespace("ours").required_anti_affinity(everywhere)
    return load([], [node.obj()], [theirs.obj(), ours.obj()])


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


CHANGES: Final = (("PUT", "/debug/partition", {"out": [NODE]}),)
"""All requests that change something."""


def changed(app: FastAPI, headers: Mapping[str, str]) -> list[int]:
    """Send the requests that change something, and return the statuses."""
    return [ask(app, method, path, json.dumps(body).encode(), headers).status_code for method, path, body in CHANGES]


def test_the_changes_of_the_admin_port_are_those_that_are_tried(admin_port: FastAPI) -> None:
    described = ask(admin_port, "GET", "/openapi.json", headers=bearer(ADMIN)).json()["paths"]
    reading = {"/explain", "/explain/nodes", "/explain/manifest"}
    changes = {
        (method.upper(), path)
        for path, operations in described.items()
        for method in operations
        if method not in {"get", "head"} and path not in reading
    }
    tried = {(method, path) for method, path, _ in CHANGES}
    assert changes == tried


def test_any_pod_gets_only_the_page_of_the_admin_port(admin_port: FastAPI) -> None:
    assert ask(admin_port, "GET", "/").status_code == 200
    for path in ("/readyz", "/version", "/cluster", "/pending", "/names", "/debug/mirror", "/debug/config"):
        assert ask(admin_port, "GET", path).status_code == 401, path
    assert changed(admin_port, {}) == [401] * len(CHANGES)


def test_the_admin_can_set_the_partition(admin_port: FastAPI) -> None:
    assert changed(admin_port, bearer(ADMIN)) == [200]
    assert ask(admin_port, "GET", "/debug/partition", headers=bearer(ADMIN)).json()["rule"]["out"] == [NODE]


def test_the_admin_learns_the_whole_mirror_and_the_settings(admin_port: FastAPI) -> None:
    assert SECRET in ask(admin_port, "GET", "/debug/mirror", headers=bearer(ADMIN)).text
    config = ask(admin_port, "GET", "/debug/config", headers=bearer(ADMIN)).text
    assert "admin_token_file" in config
    assert ADMIN not in config
    assert READER not in config


def test_the_reader_can_change_nothing(admin_port: FastAPI) -> None:
    before = ask(admin_port, "GET", "/debug/partition", headers=bearer(READER)).json()
    assert changed(admin_port, bearer(READER)) == [403] * len(CHANGES)
    assert before == ask(admin_port, "GET", "/debug/partition", headers=bearer(READER)).json()


def test_the_reader_learns_names_of_all_namespaces_and_the_settings_without_a_token(admin_port: FastAPI) -> None:
    for path in ("/debug/mirror", "/names?text=theirs"):
        assert SECRET in ask(admin_port, "GET", path, headers=bearer(READER)).text, path
    why = ask(admin_port, "POST", WHY, b'{"pod": "ours/ours"}', bearer(READER)).text
    assert f"theirs/theirs-{SECRET}" in why
    config = ask(admin_port, "GET", "/debug/config", headers=bearer(READER)).text
    assert ADMIN not in config
    assert READER not in config


@pytest.fixture
def tenants_port() -> FastAPI:
    """Serve the admin port with `explain_access: review` to a tenant who may list the pods of `ours`."""
    return limited_service(cluster(), ReviewingServer({TENANT: ("ours",)})).admin


def test_the_tenant_can_explain_their_pods_and_change_nothing(tenants_port: FastAPI) -> None:
    caller = {CALLER_HEADER: TENANT}
    assert ask(tenants_port, "POST", WHY, b'{"pod": "ours/ours"}', caller).status_code == 200
    assert ask(tenants_port, "POST", "/explain", b'{"pod": "theirs/other"}', caller).status_code == 403
    assert changed(tenants_port, caller) == [403] * len(CHANGES)


def test_the_tenant_learns_names_of_the_namespaces_whose_pods_they_may_list(tenants_port: FastAPI) -> None:
    caller = {CALLER_HEADER: TENANT}
    told = ask(tenants_port, "POST", WHY, b'{"pod": "ours/ours"}', caller).text
    assert "a pod of another namespace" in told
    for path in ("/names", "/pending", "/cluster", "/readyz", "/version", "/openapi.json"):
        response = ask(tenants_port, "GET", path, headers=caller)
        told += response.text
        assert response.status_code == 200, path
    assert "ours/ours" in told
    assert SECRET not in told
    for path in ("/debug/mirror", "/debug/config", "/debug/decisions"):
        assert ask(tenants_port, "GET", path, headers=caller).status_code == 403, path
