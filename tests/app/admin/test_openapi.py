"""The OpenAPI description: complete, and true of real questions and answers."""

from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from fastapi import FastAPI

from app import __version__
from app.admin.openapi import describe
from app.settings.settings import Settings
from app.wiring.main import create_service
from core.mirror.cluster import ClusterMirror
from tests.app.asgi import ask
from tests.app.questions import shop


def described_responses() -> Mapping[str, jsonschema_rs.Draft202012Validator]:
    """Return the description of the response of each verb, by path."""
    description = describe(create_service(Settings(), ClusterMirror(), None).app)
    return {
        path: jsonschema_rs.Draft202012Validator(
            operations["post"]["responses"]["200"]["content"]["application/json"]["schema"]
            | {"components": description["components"]}
        )
        for path, operations in description["paths"].items()
        if "post" in operations
    }


def apps() -> tuple[FastAPI, FastAPI]:
    service = create_service(Settings(admin="127.0.0.1:0", preempt="verb", bind=True), shop(), None)
    assert service.admin is not None
    return service.app, service.admin


def described(app: FastAPI) -> Any:  # noqa: ANN401 - decoded JSON
    return msgspec.json.decode(msgspec.json.encode(describe(app)))


def operations(app: FastAPI) -> Iterator[tuple[str, str, Any]]:
    for path, methods in describe(app)["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


@pytest.mark.parametrize("index", [0, 1], ids=["extender", "admin"])
def test_each_port_serves_its_own_description(index: int) -> None:
    app = apps()[index]
    served = ask(app, "GET", "/openapi.json")
    assert served.status_code == 200
    assert served.headers["content-type"] == "application/json"
    assert described(app) == served.json()
    jsonschema_rs.meta.validate(served.json()["components"])
    assert served.json()["openapi"].startswith("3.1.")
    assert served.json()["info"]["version"] == __version__


def test_every_operation_of_both_ports_is_described() -> None:
    extender, admin = ({f"{method} {path}" for method, path, _ in operations(app)} for app in apps())
    assert {
        "post /filter",
        "post /prioritize",
        "post /bind",
        "post /preempt",
        "get /readyz",
        "get /metrics",
    } <= extender
    assert {"get /debug/mirror", "get /debug/equivalence", "post /explain"} <= admin
    assert not any(path.startswith("get /debug") for path in extender)


def test_every_answer_of_an_operation_is_described() -> None:
    for app in apps():
        for method, path, operation in operations(app):
            for status, response in operation["responses"].items():
                for content in response.get("content", {}).values():
                    assert content["schema"], f"{method} {path}: {status}; enter it in app/admin/openapi.py"


def test_answers_that_kube_scheduler_could_not_use_are_not_known() -> None:
    described = described_responses()
    assert not described["/filter"].is_valid({"NodeNames": ["a1"]})
    assert not described["/prioritize"].is_valid([{"Host": "a1", "Score": 101}])
    assert not described["/prioritize"].is_valid({"Error": ""})
    assert not described["/preempt"].is_valid({"NodeNameToMetaVictims": None})


def test_a_port_without_verbs_has_none_described() -> None:
    assert not {"/filter", "/prioritize", "/bind", "/preempt"} & {path for _, path, _ in operations(apps()[1])}
    assert "ExtenderArgs" not in describe(apps()[1])["components"]["schemas"]
