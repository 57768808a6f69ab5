"""The answer to a question: of a running service, or of a cluster that the command reads itself."""

from collections.abc import Sequence
from typing import ClassVar, Final, Protocol, TypeVar

import click

from app.commands.admin_client import ACCESS_OPTIONS, Access, get_response, understood
from app.commands.options import refuse_options
from app.commands.what_if.progress import result_of
from app.commands.what_if.source import OF_ITS_OWN_CLUSTER, QuestionSource, load
from app.process.json_text import decode, encode
from app.settings.limits import DEFAULTS
from app.simulation.comes_again import Creator
from app.simulation.questions import QuestionCluster, Running
from core.events import Kind

Result = TypeVar("Result")
SERVICE_OPTIONS: Final = (
    click.option("--server", "url", metavar="URL", help="Ask a running service, by its admin port."),
    *ACCESS_OPTIONS[1:],
)
_PATIENCE: Final = DEFAULTS.question_seconds + 60.0


class QuestionOptions(QuestionSource, Access):
    """The values of QUESTION_OPTIONS, of the settings, and of SERVICE_OPTIONS."""


class _Question(Protocol[Result]):
    name: ClassVar[str]
    kinds: ClassVar[Sequence[Kind]]

    def check(self) -> None: ...

    def ask(self, cluster: QuestionCluster) -> Running[Result]: ...


def response_to(
    options: QuestionOptions,
    question: _Question[Result],
    label: str,
    kind: type[Result],
    creator: Creator | None = None,
) -> Result:
    """Return the answer. Raises QuestionError, DecodeError, CannotAskError, and as `load` does."""
    question.check()
    if not options["url"]:
        refuse_options(Access.__annotations__, "for a running service: give --server, too")
        return result_of(question.ask(load(options, question.kinds, creator)), label)
    refuse_options(OF_ITS_OWN_CLUSTER, "for a cluster that the command reads itself, not for a running service")
    response = get_response(options, "POST", f"/what-if/{question.name}", content=encode(question), patience=_PATIENCE)
    return understood(options["url"], response, lambda text: decode(text, kind))
