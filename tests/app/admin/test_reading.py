"""Which requests only read: every route of the admin port is one or the other."""

import re
from typing import Final

import pytest

from app.admin.access import is_reading
from app.admin.openapi import describe
from app.main import create_service
from app.settings.settings import Settings
from tests.app.questions import shop

CHANGING: Final = {("PUT", "/debug/partition")}


def test_every_route_but_these_only_reads() -> None:
    admin = create_service(Settings(admin="127.0.0.1:0"), shop(), None).admin
    assert admin is not None
    paths = describe(admin)["paths"]
    routes = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert len(routes) > 15
    assert {(method, path) for method, path in routes if not is_reading(method, re.sub("{.*?}", "7", path))} == CHANGING


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/debug/partition"), ("POST", "/explain/x"), ("PATCH", "/explain"), ("POST", "/"), ("OPTIONS", "/")],
    ids=lambda value: value,
)
def test_what_is_not_known_to_read_is_taken_to_change(method: str, path: str) -> None:
    assert not is_reading(method, path)
