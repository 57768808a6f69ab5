"""Locust's simulated schedulers: each calls `filter` with all nodes, then `prioritize` with the nodes that passed.

`python -m tests.load` runs them against a new service. Against any other, with locust's web UI:

    python -m locust -f tests/load/locustfile.py --host http://127.0.0.1:8888 [NodeNamesUser] [WholeNodesUser]

The service must mirror the bench cluster of that size, or all nodes fail as unknown. With `--request FILE`
(ExtenderArgs, such as app/demo/requests/web.json) it gets the requests of the files. Users of one locust wait for each
other, and the times include this wait. For ratios of latencies use `make bench`.
"""

import gc
import itertools
import json
import logging
import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

from geventhttpclient.client import HTTPClientPool
from locust import FastHttpUser, constant, events, task
from locust.argument_parser import LocustArgumentParser
from locust.env import Environment
from locust.event import EventHook
from locust.runners import MasterRunner, WorkerRunner
from locust.stats import RequestStats

from tests.bench.live import say
from tests.load.answers import WrongResponseError, check_scores, check_shed, check_status, passed_nodes
from tests.load.client_tls import client_tls
from tests.load.questions import Form, Question, RequestFileError, cluster_questions, file_questions

log = logging.getLogger(__name__)

_JSON: Final = {"Content-Type": "application/json"}
_CLOSE: Final = {"Connection": "close"}
_HTTP_TIMEOUT: Final = 5.0  # seconds; kube-scheduler's for an extender, if nothing else is configured
_POOL: Final[dict[str, Any]] = {
    "block_size": 64 * 1024,  # bytes per read; with 4 KB, the client's default, 32 MB take a third longer
    "concurrency": 1_000,
    "connection_timeout": _HTTP_TIMEOUT,
    "network_timeout": _HTTP_TIMEOUT,
}
_AFTER_FAILURE: Final = 0.1  # seconds
_LEASE: Final = 10.0  # seconds of churn per request, so that churn ends with this process
T = TypeVar("T")


class PreparedUser(FastHttpUser):
    """A user class with a preparation before its first user begins."""

    abstract = True

    @classmethod
    def prepare(cls, options: Namespace) -> str:
        """Prepare. Return why the class cannot run, or an empty text. Raises RequestFileError."""
        raise NotImplementedError


class SchedulerUser(PreparedUser):
    """One scheduler: one cycle after the other, without pause."""

    abstract = True
    wait_time = constant(0)
    client_pool = HTTPClientPool(**_POOL)
    form: ClassVar[Form]
    questions: ClassVar[Iterator[Question]]
    responses: ClassVar[Iterator[int]]
    requested: ClassVar[Iterator[int]] = itertools.count()
    check_every: ClassVar[int]
    reconnect_every: ClassVar[int]
    sheds_allowed: ClassVar[bool]
    sheds: ClassVar[Counter[str]] = Counter()
    """Verb and reason -> shed requests, if shedding is allowed."""

    @classmethod
    def prepare(cls, options: Namespace) -> str:
        """Make the requests. Return why there are none, or an empty text. Raises RequestFileError."""
        cls.responses, cls.check_every = itertools.count(), options.check_every
        cls.reconnect_every, cls.sheds_allowed = options.reconnect_every, options.sheds_allowed
        if options.ca:
            tls = client_tls(options.ca, options.client_cert, options.client_key)
            cls.client_pool = HTTPClientPool(**_POOL, insecure=False, ssl_context_factory=lambda **_: tls)
        if not options.request:
            cls.questions = cluster_questions(cls.form, options.nodes, options.pods)
            return ""
        found = [requested for form, requested in map(file_questions, map(Path, options.request)) if form == cls.form]
        cls.questions = itertools.chain.from_iterable(zip(*found, strict=False))  # all of them are endless
        return "" if found else f"no --request file has {cls.form}"

    @task
    def schedule(self) -> None:
        """Run one cycle as kube-scheduler does: it does not score a single node."""
        question = next(self.questions)
        wholly = next(self.responses) % self.check_every == 0
        passed = self._ask("filter", question.body, lambda body: passed_nodes(body, question.nodes, wholly=wholly))
        if passed is not None and len(passed) > 1:
            self._ask("prioritize", question.about(passed), lambda body: check_scores(body, passed, wholly=wholly))

    def _ask(self, verb: str, body: bytes, check: Callable[[bytes], T]) -> T | None:
        """Return the checked result of a response. None for a wrong response, which is reported, or a shed request."""
        name = f"{type(self).__name__} {verb}"
        given: Any = body  # locust accepts it, but its annotation does not
        headers = _JSON | _CLOSE if self._is_to_reconnect() else _JSON
        with self.client.post(f"/{verb}", data=given, headers=headers, name=name, catch_response=True) as response:
            try:
                if response.status_code != 0:  # else there was no response, which locust reports
                    check_status(response.status_code, response.content or b"")
                    shed = (response.headers or {}).get("kindred-shed", "")
                    if not shed:
                        return check(response.content or b"")
                    self._shed(verb, shed, response.content or b"")
            except WrongResponseError as error:
                response.failure(str(error))
        time.sleep(_AFTER_FAILURE)  # without a pause, a stopped service would fill the report
        return None

    def _shed(self, verb: str, reason: str, body: bytes) -> None:
        """Count a shed request. Raises WrongAnswerError if shedding is not allowed, or if the response is wrong."""
        if not self.sheds_allowed:
            raise WrongResponseError(f"shed: {reason}")
        check_shed(verb, body)
        self.sheds[f"{verb}: {reason}"] += 1

    def _is_to_reconnect(self) -> bool:
        """Return whether this request is the last one on its connection."""
        return self.reconnect_every > 0 and next(self.requested) % self.reconnect_every == self.reconnect_every - 1


class NodeNamesUser(SchedulerUser):
    """A scheduler whose extender is `nodeCacheCapable`, and gets names."""

    form = "NodeNames"
    weight = 2


class WholeNodesUser(SchedulerUser):
    """A scheduler whose extender is not `nodeCacheCapable`, and gets whole Node objects: 32 MB for 5,000."""

    form = "Nodes"


class ChurnUser(PreparedUser):
    """Makes the fake API server change pods at a steady rate. One user of this class is enough."""

    fixed_count = 1
    wait_time = constant(_LEASE / 2)
    fake_api: ClassVar[str]
    rate: ClassVar[float]

    @classmethod
    def prepare(cls, options: Namespace) -> str:
        """Return why no pod can be changed, or an empty text."""
        cls.fake_api, cls.rate = options.fake_api.rstrip("/"), options.churn_rate
        if not cls.fake_api:
            return "no --fake-api, and only of a fake API server are the pods there to be changed"
        return "" if cls.rate > 0 else "--churn-rate is 0"

    @task
    def churn(self) -> None:
        """Extend the churn by some seconds."""
        self._set({"rate": self.rate, "seconds": _LEASE})

    def on_stop(self) -> None:
        """Stop the churn."""
        self._set({"rate": 0})

    def _set(self, rate: dict[str, float]) -> None:
        self.client.post(f"{self.fake_api}/_control/churn", json=rate, name=type(self).__name__)


def add_options(parser: LocustArgumentParser) -> None:
    """Add the options of this file to locust's."""

    def add(name: str, **of_option: Any) -> None:  # noqa: ANN401 - those of argparse
        group.add_argument(name, **of_option).include_in_web_ui = False  # they apply only at the start

    group = parser.add_argument_group("Kindred", "What is asked, and what of the answers is looked at.")
    add("--nodes", type=int, default=5_000, help="of the bench cluster")
    add("--pods", type=int, default=150_000, help="of the bench cluster")
    add("--request", action="append", default=[], metavar="FILE", help="ask these ExtenderArgs; can be repeated")
    add("--check-every", type=int, default=10, metavar="N", help="look wholly at one of so many answers")
    add("--max-failures", type=float, default=0.0, metavar="SHARE", help="0..1; exit with 1 above it")
    add("--churn-rate", type=float, default=1_000.0, metavar="RATE", help="pod events a second, 0 for none")
    add("--reconnect-every", type=int, default=0, metavar="N", help="close the connection after so many questions")
    add("--sheds-allowed", action="store_true", help="count what was shed (Kindred-Shed) apart from failures")
    add("--ca", default="", metavar="FILE", help="authorities of an https --host")
    add("--client-cert", default="", metavar="FILE", help="client certificate, if one is wanted")
    add("--client-key", default="", metavar="FILE", help="key of the client certificate")
    add("--summary", default="", metavar="FILE", help="write the numbers of requests there, as JSON")
    add("--fake-api", default="", metavar="URL", env_var="KINDRED_LOAD_FAKE_API", help="whose pods ChurnUser changes")


def prepare(environment: Environment, **_: object) -> None:
    """Make all requests, and remove user classes that cannot run."""
    options = environment.parsed_options
    if options is None:
        return
    if not isinstance(environment.runner, WorkerRunner):
        # After locust's own tables.
        _listen(environment.events.quit, lambda **_: _report(environment.stats, options.summary))
    if isinstance(environment.runner, MasterRunner):  # its workers send the requests
        return
    try:
        for user in list(environment.user_classes):
            if issubclass(user, PreparedUser) and (lacking := user.prepare(options)):
                log.warning("%s does nothing: %s", user.__name__, lacking)
                environment.user_classes.remove(user)
    except RequestFileError as error:
        sys.exit(f"--request: {error}")
    if not any(issubclass(user, SchedulerUser) for user in environment.user_classes):
        sys.exit("There is no class of users left that asks anything.")
    gc.freeze()  # the parts of requests are no garbage, and a collection would add to the times


def judge(environment: Environment, **_: object) -> None:
    """Set the exit status: whether requests were sent, and enough responses were right."""
    options = environment.parsed_options
    if options is None or environment.runner is None or isinstance(environment.runner, WorkerRunner):
        return
    share = _share_of_failures(environment.stats)
    if share is None:
        log.error("Nothing was asked.")
    elif share > options.max_failures:
        log.error("%.2f %% of the requests failed.", share * 100)
    elif environment.runner.exceptions:
        log.error("A simulated scheduler itself failed.")
    else:
        environment.process_exit_code = 0
        return
    environment.process_exit_code = 1


def _listen(event: EventHook, listener: Callable[..., None]) -> None:
    event.add_listener(listener)  # type: ignore[no-untyped-call]  # locust has no annotations there


def _share_of_failures(stats: RequestStats) -> float | None:
    """Return the share of failed requests. None if no simulated scheduler sent a request."""
    requested = any(entry.num_requests for (name, _), entry in stats.entries.items() if name != ChurnUser.__name__)
    share: float = stats.total.fail_ratio
    return share if requested else None


def _report(stats: RequestStats, summary: str) -> None:
    sheds = dict(sorted(SchedulerUser.sheds.items()))
    if sheds:
        say(f"Shed, which is no failure: {sheds}")
    if summary:
        total = stats.total
        found = {"requests": total.num_requests, "failures": total.num_failures, "sheds": sheds}
        Path(summary).write_text(json.dumps(found), "utf-8")


_listen(events.init_command_line_parser, add_options)
_listen(events.init, prepare)
_listen(events.quitting, judge)
