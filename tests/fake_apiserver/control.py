"""The fake API server's own verbs, below /_control/, for use as a separate process.

    GET  /_control/stats            cpu_seconds of the process, version, events sent, events of the churn
    POST /_control/churn            {"rate": 1000, "seconds": 10}; without seconds until stopped; rate 0 stops it
    GET  /_control/quiet?seconds=30 waits until no churn runs and all is sent; 504 when that takes longer
    POST /_control/faults           [{"action": "Cut", "fields": {"after": 3}, "path": ..., "kinds": [...], "times": 1}]
    POST /_control/disturb          {"action": "End", "fields": {}, "path": ...}: the watches that run
    POST /_control/clear            switches all faults off
    POST /_control/refuse           {"seconds": 2, "drop": true}: refuses connections for a time
    POST /_control/objects          [{"verb": "create", "path": ..., "object": {...}}]; delete has name and namespace
    POST /_control/compact          {"path": ...}
    POST /_control/behaviour        fields of `Behaviour`

An action is the name of a class in `faults`, or {"action": "refuse", "fields": {"answer": "unavailable"}} with a name
of `ANSWERS`. Every response is a JSON object. An invalid request gets 400 with `error`.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, cast

import msgspec

from tests.fake_apiserver import faults, statuses
from tests.fake_apiserver.bench_data import Churn
from tests.fake_apiserver.server import FakeApiServer
from tests.fake_apiserver.store import Object
from tests.fake_apiserver.wire import Connection, Request, send_whole

RESPONSES: Final[Mapping[str, Callable[[], faults.Response]]] = {
    "unauthorized": faults.reject_token,
    "expired": lambda: faults.refuse(statuses.expired_watch(1, 2)),
    "overloaded": faults.overloaded,
    "internal-error": lambda: faults.refuse(statuses.internal_error()),
    "unavailable": lambda: faults.refuse(statuses.unavailable()),
}
_RESPONSE_FIRST: Final = 0.05  # seconds for a response to reach its client before the connection is reset
_POLL: Final = 0.01  # seconds


class Control:
    """Handles requests below /_control/ of one server. `close` ends the tasks that it started."""

    def __init__(self, server: FakeApiServer, churn: Churn | None) -> None:
        self._server = server
        self._churn = churn
        self._churning: asyncio.Task[None] | None = None
        self._refusing: asyncio.Task[None] | None = None

    async def handle(self, request: Request, connection: Connection) -> None:
        """Respond to a request."""
        try:
            response = await self._response(request)
            status = 504 if response.get("quiet") is False else 200
        except (msgspec.DecodeError, AttributeError, LookupError, TypeError, ValueError) as error:
            status, response = 400, {"error": f"{type(error).__name__}: {error}"}
        body = msgspec.json.encode(response)
        await send_whole(connection, status, {"Content-Type": "application/json"}, body)

    async def close(self) -> None:
        """End churn, and refusing connections."""
        tasks = [task for task in (self._churning, self._refusing) if task is not None]
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def start_churn(self, rate: float, seconds: float | None = None) -> None:
        """Start churn in place of the running one. Rate 0 only stops it. Raises ValueError without a bench cluster."""
        if self._churning is not None:
            self._churning.cancel()
            self._churning = None
        if rate:
            if self._churn is None:
                raise ValueError("churn needs a bench cluster of at least 50 pods")
            self._churning = asyncio.create_task(self._churn.run(rate, seconds))

    async def _response(self, request: Request) -> Object:
        verb = request.path.removeprefix("/_control/")
        given = msgspec.json.decode(request.body) if request.body else {}
        match request.method, verb:
            case "GET", "stats":
                return self._stats()
            case "GET", "quiet":
                return await self._quiet(float(request.query.get("seconds", "30")))
            case "POST", _:
                self._change(verb, given)
                return {"version": self._server.store.version}
        raise LookupError(f"{request.method} {request.path}")

    def _change(self, verb: str, given: Any) -> None:  # noqa: ANN401 - decoded JSON
        server = self._server
        match verb:
            case "churn":
                self.start_churn(given["rate"], given.get("seconds"))
            case "faults" | "disturb":
                self._add_faults(verb, given)
            case "clear":
                server.faults.clear()
            case "refuse":
                self._refusing = asyncio.create_task(self._refuse(given["seconds"], drop=given.get("drop", False)))
            case "objects":
                for each in given:
                    self._change_object(each)
            case "compact":
                server.compact(given["path"])
            case "behaviour":
                for name, value in given.items():
                    setattr(server.behaviour, name, set(value) if name in {"forbidden", "absent"} else value)
            case _:
                raise LookupError(verb)

    def _add_faults(self, verb: str, given: Any) -> None:  # noqa: ANN401 - decoded JSON
        if verb == "disturb":
            self._server.disturb(cast("faults.StreamAction", _action(given)), given.get("path"))
            return
        for each in given:
            kinds: Sequence[faults.Kind] = each.get("kinds", ())
            self._server.faults.add(_action(each), each.get("path"), *kinds, times=each.get("times", 1))

    def _change_object(self, given: Object) -> None:
        match given["verb"]:
            case "create":
                self._server.create(given["path"], given["object"])
            case "update":
                self._server.update(given["path"], given["object"])
            case "delete":
                self._server.delete(given["path"], given["name"], given.get("namespace", ""))
            case verb:
                raise LookupError(verb)

    async def _refuse(self, seconds: float, *, drop: bool) -> None:
        await asyncio.sleep(_RESPONSE_FIRST)
        async with self._server.refusing_connections(drop=drop):
            await asyncio.sleep(seconds)

    async def _quiet(self, seconds: float) -> Object:
        deadline = time.monotonic() + seconds
        quiet = self._is_quiet()
        while not quiet and time.monotonic() < deadline:
            await asyncio.sleep(_POLL)  # sockets do not report when they have been read
            quiet = self._is_quiet()
        return {"quiet": quiet, **self._stats()}

    def _is_quiet(self) -> bool:
        return (self._churning is None or self._churning.done()) and self._server.all_sent()

    def _stats(self) -> Object:
        server = self._server
        return {
            "cpu_seconds": time.process_time(),
            "version": server.store.version,
            "events_sent": sum(logged.events for logged in server.requests),
            "churn_events": self._churn.done if self._churn is not None else 0,
        }


def _action(given: Object) -> faults.Action:
    fields = given.get("fields", {})
    if given["action"] == "refuse":
        return RESPONSES[fields["answer"]]()
    if given["action"] == "StreamError" and isinstance(fields.get("status"), str):
        fields = {**fields, "status": msgspec.json.decode(RESPONSES[fields["status"]]().body)}
    if given["action"] == "SendLine":
        fields = {**fields, "line": fields["line"].encode()}
    action: faults.Action = getattr(faults, given["action"])(**fields)
    return action
