"""Who is told of questions, alone and in the whole service."""

import json
import logging

import pytest

from app.process.logs import JsonLines
from app.settings.settings import Settings
from app.telemetry.request_log import observer
from app.verbs.request import Request
from app.wiring.main import create_service
from tests.app.asgi import ask
from tests.app.questions import by_name, shop
from tests.builders import make_pod


def test_one_that_fails_costs_a_line_of_the_log_and_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    counted: list[Request] = []

    def fail(_: Request) -> None:
        raise RuntimeError("no")

    request = Request()
    observer(counted.append, fail)(request)
    assert counted == [request]
    (record,) = caplog.records
    assert record.exc_info is not None


# The whole service.

QUESTION = by_name(make_pod("p").label("app", "intruder"), "a1", "b1")


def test_all_questions_have_a_line_at_level_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "kindred.questions")
    app = create_service(Settings(), shop(), None).app
    for verb in ("filter", "prioritize"):
        ask(app, "POST", f"/{verb}", QUESTION)
    reported = [
        json.loads(JsonLines().format(record)) for record in caplog.records if record.name == "kindred.questions"
    ]
    assert [(each["verb"], each["outcome"], each["pod"], each["nodes"], each["passed"]) for each in reported] == [
        ("filter", "fit", "default/p", 2, 1),
        ("prioritize", "fit", "default/p", 2, 2),
    ]
