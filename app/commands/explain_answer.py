"""Explanations for commands, from a service or from a mirror, and their output."""

from functools import partial

import httpx
import msgspec

from app.commands.admin_client import NOT_UNDERSTOOD, CannotAskError, members, refusal
from app.commands.exit_status import EXIT_NO, EXIT_OK
from app.commands.explain_inquiry import Inquiry
from app.commands.explanation_text import explanation_text
from app.commands.output_format import OutputFormat, node_name, print_output
from app.explain.explain_request import decode_explain_request
from app.explain.explainer import Detail, Explainer, Explanation
from app.json_text import decode, encode


class RefusedError(Exception):
    """The request was read, but cannot be evaluated. `field` is the wrong field."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def taken(response: httpx.Response, where: str) -> bytes:
    """Return the explanation in a service's response, as JSON. Raises RefusedError, CannotAskError."""
    if response.is_success:
        try:
            decode(response.content, Explanation)
        except msgspec.MsgspecError:
            raise CannotAskError(f"{where}: {NOT_UNDERSTOOD}") from None
        return response.content
    told = members(response)
    field, detail = told.get("field"), told.get("detail")
    if isinstance(field, str) and isinstance(detail, str):
        raise RefusedError(field, detail.removeprefix(f"{field}: "))
    raise CannotAskError(f"{where}: {refusal(response)}")


async def explanation_of(explainer: Explainer, inquiry: Inquiry) -> bytes:
    """Explain with the code of a service. Raises DecodeError and ExplainError."""
    question = decode_explain_request(inquiry.body, explainer.mirror)
    detail = Detail(inquiry.nodes, inquiry.limit, score_all=inquiry.score == "all")
    return encode(await explainer.explain(question, detail))


def print_explanation(answer: bytes, output: OutputFormat) -> int:
    """Print an explanation and return the exit status: 0 if the pod fits somewhere, 1 if nowhere."""
    explanation = decode(answer, Explanation)
    best = map(node_name, (each.node for each in explanation.summary.best))
    print_output(output, decode(answer), partial(explanation_text, explanation), best)
    return EXIT_OK if explanation.summary.fit else EXIT_NO
