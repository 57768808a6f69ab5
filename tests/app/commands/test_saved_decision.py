"""A decision that was told of is the same one when it is read back, and asked again it is answered the same."""

import json

import msgspec
import pytest
from fastapi import FastAPI

from app.admin.decisions_routes import decisions_router
from app.commands.saved_decision import decode_decision
from app.explain.conformance_case.case import CaseArgs
from app.explain.replay import Replayer
from app.long_work import LongWork
from app.objects.decode import DecodeError
from app.settings import Settings
from app.wiring.engine import create_extender
from tests.app.asgi import ask
from tests.app.explain.noted_decisions import Asking
from tests.app.questions import by_name, by_object, shop
from tests.builders import make_node, make_pod

INTRUDER = make_pod("in").uid("u").label("app", "intruder")
LARGE = by_name(INTRUDER, *(f"n{number}" for number in range(2000)))


def told(asking: Asking, number: int = 1) -> bytes:
    app = FastAPI()
    replayer = Replayer(asking.mirror, lambda _: create_extender(Settings(), asking.mirror))
    app.include_router(decisions_router(asking.mirror, asking.decisions, replayer, CaseArgs(), LongWork()))
    answer: bytes = ask(app, "GET", f"/debug/decisions/{number}").content
    return answer


@pytest.mark.parametrize(
    ("body", "verb"),
    [
        pytest.param(by_name(INTRUDER, "a1", "b1"), "filter", id="filter"),
        pytest.param(by_name(INTRUDER, "a1", "b1"), "prioritize", id="prioritize"),
        pytest.param(by_object(INTRUDER, make_node("x")), "filter", id="whole-nodes"),
        pytest.param(LARGE, "filter", id="too-large-to-be-kept"),
        pytest.param(b'{"Nod":1}', "filter", id="bad-request"),
    ],
)
def test_a_decision_comes_back_as_it_was(body: bytes, verb: str) -> None:
    asking = Asking(shop())
    asking.ask(body, verb)
    decision = asking.decisions.get(1)
    assert decision is not None
    assert decision == decode_decision(told(asking))


def test_it_comes_back_also_where_it_was_written_anew() -> None:
    asking = Asking(shop())
    asking.ask(by_name(INTRUDER, "a1", "b1"))
    decision = asking.decisions.get(1)
    assert decision is not None
    found = decode_decision(json.dumps(json.loads(told(asking)), indent=2).encode())
    assert decision._replace(pod=b"", request=b"", response=b"") == found._replace(pod=b"", request=b"", response=b"")
    assert [json.loads(each) for each in (decision.pod, decision.request, decision.response)] == [
        json.loads(each) for each in (found.pod, found.request, found.response)
    ]


@pytest.mark.parametrize(
    ("members", "field"),
    [
        pytest.param({"at": "noon"}, "decision.at", id="time"),
        pytest.param({"at": 7}, "decision.at", id="time-as-number"),
        pytest.param({"nodes": "two"}, "decision.nodes", id="number"),
        pytest.param({"outcome": "perhaps"}, "decision.outcome", id="outcome"),
    ],
)
def test_what_is_wrong_is_named(members: dict[str, object], field: str) -> None:
    asking = Asking(shop())
    asking.ask(by_name(INTRUDER, "a1"))
    detail = json.loads(told(asking))
    detail["decision"].update(members)
    with pytest.raises(DecodeError) as refused:
        decode_decision(msgspec.json.encode(detail))
    assert refused.value.field == field
