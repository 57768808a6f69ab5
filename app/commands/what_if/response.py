"""The answer to a question: of a running service, or of a cluster that the command reads itself.

Both show how far they are. The latter is asked in steps, so that it ends at once at Ctrl-C; a service ends the question
of a caller that has left. With `--dry-run-create`, pods
come again as the API server makes them. That is an option, because questions only read otherwise. A dry run stores
nothing, but it needs the right to create pods, calls webhooks, and stands in the audit log as a request that creates.
"""

import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, ClassVar, Final, NotRequired, Protocol, TypeVar

import click

from app.admin.what_if_routes import Progress
from app.api_server.client import ApiClient
from app.commands.admin_client import ACCESS_OPTIONS, Access, CannotAskError, get_response, understood
from app.commands.dump import SOURCE_OPTIONS
from app.commands.kubeconfig import KUBECONFIG_OPTIONS, client_of, credentials_of
from app.commands.options import output_option, refuse_options
from app.commands.output import NO_NAMES, Line, OutputFormat, print_output
from app.commands.what_if.source import OF_ITS_OWN_CLUSTER, QuestionSource, clear_question_errors, load
from app.process.json_text import decode, encode
from app.settings.limits import DEFAULTS
from app.simulation.dry_runs import DryRuns
from app.simulation.questions import MAX_ORDERS, Question, QuestionCluster, Running
from core.events import Kind
from core.simulation.placing import finished

if TYPE_CHECKING:
    import httpx

Result = TypeVar("Result")
Query = TypeVar("Query", bound=Question)
QUESTION_OPTIONS: Final = (
    click.option(
        "--orders",
        type=click.IntRange(1, MAX_ORDERS),
        default=3,
        show_default=True,
        help="In how many orders pods arrive and ties are broken. The first one is the same each time.",
    ),
    output_option(NO_NAMES),
    *SOURCE_OPTIONS,
    *KUBECONFIG_OPTIONS,
    click.option("--server", "url", metavar="URL", help="Ask a running service, by its admin port."),
    *ACCESS_OPTIONS[1:],
)
OPTIONS_OF_MOVES: Final = (
    click.option(
        "--dry-run-create",
        is_flag=True,
        help="Ask the API server to create the pods that come again, with dryRun=All: nothing is stored. It adds what"
        " webhooks, policies and LimitRanges add. Needs the right to create pods.",
    ),
    *QUESTION_OPTIONS,
)
"""Of questions after which pods come again."""
_PATIENCE: Final = DEFAULTS.question_seconds + 60.0
_UPDATE: Final = 200  # steps
_LOOKS_EVERY: Final = 0.5  # seconds between two questions to a service of how far it is
_SHARES: Final = 1000  # steps of its bar


class QuestionOptions(QuestionSource, Access):
    """The values of the options above, and of the settings."""

    orders: int
    output: OutputFormat
    dry_run_create: NotRequired[bool]


class _Question(Protocol[Result]):
    name: ClassVar[str]
    kinds: ClassVar[Sequence[Kind]]

    def check(self) -> None: ...

    def ask(self, cluster: QuestionCluster) -> Running[Result]: ...


def question_of(kind: type[Query], options: Mapping[str, Any], **others: object) -> Query:
    """Return the question of a kind whose fields are the options of their names. `others` are fields that are not."""
    return kind(**{name: options[name] for name in kind.__struct_fields__ if name in options}, **others)


def printed_response(
    options: QuestionOptions,
    question: _Question[Result],
    label: str,
    kind: type[Result],
    text: Callable[..., Iterator[Line]],
) -> Result:
    """Ask, print the response, and return it. Ends with one line for an error."""
    with clear_question_errors():
        response = _response(options, question, label, kind)
    print_output(options["output"], response, partial(text, response))
    return response


def _response(options: QuestionOptions, question: _Question[Result], label: str, kind: type[Result]) -> Result:
    """Ask. Raises QuestionError, DecodeError, CannotAskError, and as `load` does."""
    question.check()
    if not options["url"]:
        refuse_options(Access.__annotations__, "for a running service: give --server, too")
        return result_of(question.ask(load(options, question.kinds, _creator_of(options))), label)
    refuse_options(OF_ITS_OWN_CLUSTER, "for a cluster that the command reads itself, not for a running service")
    response = response_of_service(options, question.name, encode(question), label)
    return understood(options["url"], response, lambda text: decode(text, kind))


def response_of_service(access: Access, name: str, question: bytes, label: str) -> "httpx.Response":
    """Ask a service, and show on a terminal how far it is. Raises CannotAskError."""
    key = {"key": secrets.token_urlsafe()}
    with _showing(access, key, label):
        return get_response(access, "POST", f"/what-if/{name}", key, question, patience=_PATIENCE)


@contextmanager
def _showing(access: Access, key: Mapping[str, str], label: str) -> Iterator[None]:
    """Show within the block how far the question with a key is. What cannot be learnt is not shown."""
    over = Event()

    def follow() -> None:
        with click.progressbar(length=_SHARES, label=label, file=sys.stderr) as bar:
            while not over.wait(_LOOKS_EVERY):
                with suppress(CannotAskError):
                    found = get_response(access, "GET", "/what-if/progress", key, patience=_LOOKS_EVERY)
                    done = understood("", found, lambda text: decode(text, Progress)).done
                    bar.update(max(0, int((done or 0.0) * _SHARES) - bar.pos))

    follower = Thread(target=follow, daemon=True)
    if sys.stderr.isatty():
        follower.start()
    try:
        yield
    finally:
        over.set()
        if follower.ident is not None:
            follower.join()  # the line of the bar ends before anything else is printed


def result_of(running: Running[Result], label: str) -> Result:
    """Take all steps of a question, and return their result. An interrupt undoes what they suppose."""
    steps, length = running
    hidden = not sys.stderr.isatty()
    with click.progressbar(length=length, label=label, file=sys.stderr, hidden=hidden, update_min_steps=_UPDATE) as bar:
        try:
            result = finished(steps, partial(bar.update, 1))
            bar.update(max(0, length - bar.pos))
            return result
        finally:
            steps.close()


def _creator_of(options: QuestionOptions) -> DryRuns | None:
    """Return what asks the API server of a kubeconfig until the command ends, None unless it is wanted."""
    if not options.get("dry_run_create"):
        return None

    async def connect() -> ApiClient:
        return client_of(await credentials_of(options), options)

    dry_runs = DryRuns(connect)
    click.get_current_context().call_on_close(dry_runs.close)
    return dry_runs
