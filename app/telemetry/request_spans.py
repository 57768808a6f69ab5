"""Spans of requests, made after their responses, and sent by a thread of their own. Needs the extra `otel`."""

import asyncio
import threading
from collections.abc import Callable
from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import SpanKind, Status, StatusCode, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from app import __version__
from app.telemetry.request_log import PROBLEMS, question_fields
from app.verbs.observation import Observation, VerbOutcome

_NANOSECONDS: Final = 1_000_000_000
_EXPORT_TIMEOUT: Final = 5.0  # seconds; the next batch tries a collector that hangs again
_CLOSING: Final = 0.8  # seconds; the process has 1 s for the steps after the last request
_ANYWHERE: Final = Context()  # not the current context: the only parent of a span is the caller's
_FAULTS: Final = PROBLEMS - {VerbOutcome.BAD_REQUEST, VerbOutcome.TOO_MUCH_WORK, VerbOutcome.REFUSED}
"""Outcomes that are the server's fault. Only these mark the span as an error: OpenTelemetry, HTTP spans."""


class RequestSpans:
    """Makes a span for a share of the requests. Call it with each Observation.

    If the caller sent a trace context, its sampling decision applies instead.
    """

    def __init__(
        self,
        provider: TracerProvider,
        share: float,
        random: Callable[[], float],
        now: Callable[[], int],
    ) -> None:
        """Take a source of numbers below 1, and the time of day in nanoseconds."""
        self._provider = provider
        self._tracer = provider.get_tracer("kindred", __version__)
        self._share = share
        self._random = random
        self._now = now
        self._callers = TraceContextTextMapPropagator()

    def __call__(self, observation: Observation) -> None:
        """Record a request, right after its response."""
        caller = self._caller(observation.traceparent) if observation.traceparent else None
        if caller is not None:
            if not get_current_span(caller).get_span_context().trace_flags.sampled:
                return
        elif self._random() >= self._share:
            return
        self._trace(observation, caller or _ANYWHERE)

    async def run(self) -> None:
        """Wait until cancelled, then send the remaining spans within _CLOSING seconds."""
        try:
            await asyncio.Event().wait()
        finally:
            # Neither on the loop nor in its threads: the loop waits for those at its end, and a collector may hang.
            last = threading.Thread(target=self._provider.shutdown, daemon=True)
            last.start()
            await asyncio.to_thread(last.join, _CLOSING)

    def _caller(self, traceparent: str) -> Context | None:
        """Return the context of the caller's span; None if the header is malformed."""
        context = self._callers.extract({"traceparent": traceparent}, _ANYWHERE)
        return context if get_current_span(context).get_span_context().is_valid else None

    def _trace(self, observation: Observation, parent: Context) -> None:
        end = self._now()
        start = end - int(observation.seconds * _NANOSECONDS)
        span = self._tracer.start_span(
            observation.verb, parent, SpanKind.SERVER, _attributes(observation), start_time=start
        )
        if observation.outcome in _FAULTS:
            span.set_status(Status(StatusCode.ERROR, observation.outcome.value))
        if observation.waited:
            wait = self._tracer.start_span("wait for its turn", set_span_in_context(span, _ANYWHERE), start_time=start)
            wait.end(start + int(observation.waited * _NANOSECONDS))
        span.end(end)


def spans_to(endpoint: str, instance: str) -> TracerProvider:
    """Return an exporter of spans to a URL; headers and certificates come from OTEL_EXPORTER_OTLP_*."""
    resource = Resource.create(
        {"service.name": "kindred", "service.version": __version__, "service.instance.id": instance}
    )
    provider = TracerProvider(ALWAYS_ON, resource, shutdown_on_exit=False)  # the share is applied before a span is made
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint, timeout=_EXPORT_TIMEOUT)))
    return provider


def _attributes(observation: Observation) -> dict[str, str | int]:
    """Return the data of a request, without its contents."""
    namespace, _, name = observation.asked.pod.partition("/")
    fields = question_fields(observation, error=False)
    told = {
        "k8s.namespace.name": namespace,
        "k8s.pod.name": name,
        "k8s.pod.uid": observation.asked.uid,
        "http.request.body.size": observation.request_bytes,
        "http.response.body.size": observation.response_bytes,
        **{
            f"kindred.{name}": fields.get(name, "")
            for name in ("outcome", "class", "cache", "nodes", "passed", "stale")
        },
    }
    return {name: value for name, value in told.items() if isinstance(value, str | int) and value != ""}
