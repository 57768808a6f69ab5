"""What a span says of a question, and which questions have one."""

from typing import Final

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import SpanKind, StatusCode

from app.telemetry.request_spans import RequestSpans
from app.verbs.observation import Asked, Observation, VerbOutcome

NOW: Final = 1_763_812_800_000_000_000
ABOUT_WEB = Observation(
    "filter", VerbOutcome.FIT, 0.25, 0.0, 7000, 300, Asked("shop/web", "u-1", 500, 480), "hit 00000000000000ab", "", ""
)
TRACE: Final = "0af7651916cd43dd8448eb211c80319c"
SPAN: Final = "b7ad6b7169203331"


def spans_of(*observations: Observation, share: float = 1.0, drawn: float = 0.5) -> list[ReadableSpan]:
    """Return the spans of questions, in the order in which they ended."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(ALWAYS_ON, shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    spans = RequestSpans(provider, share, lambda: drawn, lambda: NOW)
    for observation in observations:
        spans(observation)
    return list(exporter.get_finished_spans())


def test_a_span_has_the_times_and_what_is_known_of_the_question() -> None:
    (span,) = spans_of(ABOUT_WEB)
    assert (span.name, span.kind, span.parent) == ("filter", SpanKind.SERVER, None)
    assert (span.start_time, span.end_time) == (NOW - 250_000_000, NOW)
    assert span.status.status_code is StatusCode.UNSET
    assert dict(span.attributes or {}) == {
        "k8s.namespace.name": "shop",
        "k8s.pod.name": "web",
        "k8s.pod.uid": "u-1",
        "http.request.body.size": 7000,
        "http.response.body.size": 300,
        "kindred.outcome": "fit",
        "kindred.class": "00000000000000ab",
        "kindred.cache": "hit",
        "kindred.nodes": 500,
        "kindred.passed": 480,
    }


def test_the_wait_for_its_turn_is_a_span_within() -> None:
    wait, span = spans_of(ABOUT_WEB._replace(waited=0.1))
    assert wait.parent is not None
    assert span.context is not None
    assert wait.parent.span_id == span.context.span_id
    assert (wait.name, wait.start_time, wait.end_time) == ("wait for its turn", NOW - 250_000_000, NOW - 150_000_000)


@pytest.mark.parametrize("outcome", VerbOutcome, ids=lambda outcome: outcome.value)
def test_what_is_kindreds_fault_is_an_error(outcome: VerbOutcome) -> None:
    (span,) = spans_of(ABOUT_WEB._replace(outcome=outcome))
    fine = {
        VerbOutcome.FIT,
        VerbOutcome.NO_FIT,
        VerbOutcome.BYPASSED,
        VerbOutcome.BAD_REQUEST,
        VerbOutcome.TOO_MUCH_WORK,
        VerbOutcome.REFUSED,
    }
    assert span.status.status_code is (StatusCode.UNSET if outcome in fine else StatusCode.ERROR)


def test_what_a_request_says_is_in_no_span() -> None:
    (span,) = spans_of(ABOUT_WEB._replace(error="a secret", request=b"a secret", response=b"a secret"))
    assert "secret" not in span.to_json()


@pytest.mark.parametrize(
    ("share", "drawn", "traced"), [(0.01, 0.009, True), (0.01, 0.01, False), (0.0, 0.0, False), (1.0, 0.999, True)]
)
def test_a_share_of_the_questions_is_traced(share: float, drawn: float, traced: bool) -> None:  # noqa: FBT001 - a case
    assert len(spans_of(ABOUT_WEB, share=share, drawn=drawn)) == traced


@pytest.mark.parametrize(("share", "flags", "traced"), [(0.0, "01", True), (1.0, "00", False), (0.0, "03", True)])
def test_a_caller_that_is_traced_decides(share: float, flags: str, traced: bool) -> None:  # noqa: FBT001 - a case
    spans = spans_of(ABOUT_WEB._replace(traceparent=f"00-{TRACE}-{SPAN}-{flags}"), share=share)
    assert len(spans) == traced
    for span in spans:
        assert span.parent is not None
        assert span.context is not None
        assert f"{span.context.trace_id:032x}" == TRACE
        assert f"{span.parent.span_id:016x}" == SPAN


@pytest.mark.parametrize(
    "traceparent",
    ["nonsense", f"00-{TRACE}-{SPAN}", f"00-{'0' * 32}-{SPAN}-01", f"ff-{TRACE}-{SPAN}-01", "\x00", "0" * 5000],
)
def test_a_header_that_is_none_decides_nothing(traceparent: str) -> None:
    (span,) = spans_of(ABOUT_WEB._replace(traceparent=traceparent), share=1.0)
    assert span.parent is None
    assert spans_of(ABOUT_WEB._replace(traceparent=traceparent), share=0.0) == []
