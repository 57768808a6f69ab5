"""An extender between kube-scheduler and Kindred: it notes what is said, and misbehaves for the pods it is told of."""

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, Final

import httpx
import msgspec

from tests.http_server import Handler, http_server

_PATIENCE: Final = 30.0  # seconds


class Fault(msgspec.Struct, frozen=True):
    """How a question is answered wrongly: late, with a status, with other bytes, or not at all."""

    seconds: float = 0.0
    status: int = HTTPStatus.OK
    body: bytes | None = None
    """In place of Kindred's answer; if None, Kindred is asked."""
    cut: bool = False
    """Close the connection in place of an answer."""


class Call(msgspec.Struct, frozen=True):
    """A question and what Kindred has answered. None if it was not asked."""

    pod: str
    question: Any
    response: Any


class Relay:
    """Hands on what is asked, in threads of its own."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        """Ask Kindred at a URL, with further headers."""
        self.faults: dict[tuple[str, str], Fault] = {}
        """(verb, name of a pod) -> what goes wrong, as long as it is there."""
        self.calls: defaultdict[str, list[Call]] = defaultdict(list)  # verb -> its calls
        limits = httpx.Limits(keepalive_expiry=None)  # as in `Api`
        self.kindred: Final = httpx.Client(base_url=url, headers=headers, timeout=_PATIENCE, limits=limits)
        self.url = ""

    def calls_for(self, verb: str, pod: str) -> int:
        """Count the calls of a verb for a pod."""
        return sum(1 for call in self.calls[verb] if call.pod == pod)

    def serve(self, request: Handler) -> None:
        """Answer one question."""
        verb = request.path.removeprefix("/")
        body = request.body()
        question = json.loads(body)
        pod: str = question["PodName"] if verb == "bind" else question["Pod"]["metadata"]["name"]
        fault = self.faults.get((verb, pod), Fault())
        response, sent = None, fault.body
        if sent is None:
            sent = self.kindred.post(request.path, content=body).raise_for_status().content
            response = json.loads(sent)
        self.calls[verb].append(Call(pod, question, response))
        time.sleep(fault.seconds)
        if fault.cut:
            request.close_connection = True
            return
        request.reply(fault.status, sent)


@contextmanager
def relay_to(url: str, headers: Mapping[str, str] | None = None) -> Iterator[Relay]:
    """Run a relay before Kindred, which adds headers to what is asked."""
    relay = Relay(url, headers)

    class Relayed(Handler):
        def respond(self) -> None:
            relay.serve(self)

    with relay.kindred, http_server(Relayed) as port:
        relay.url = f"http://127.0.0.1:{port}"
        yield relay


def rejected(calls: list[Call]) -> Mapping[str, str]:
    """Return the nodes that answers of `filter` have refused, and why: POD on NODE -> message."""
    return {
        f"{call.pod} on {name}": message
        for call in calls
        for nodes in (call.response["FailedNodes"], call.response["FailedAndUnresolvableNodes"])
        for name, message in (nodes or {}).items()
    }
