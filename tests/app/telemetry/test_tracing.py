"""Whether questions are traced, and where the spans go."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import TracerProvider

from app import __version__
from app.settings import Settings, SettingsError
from app.telemetry.request_spans import RequestSpans, spans_to
from app.telemetry.tracing import create_tracing, traces_url
from app.verbs.observation import Asked, Observation, VerbOutcome
from tests.app.telemetry.collector import collector, wait_for_exporters

ABOUT_WEB = Observation("filter", VerbOutcome.FIT, 0.25, 0.0, 7000, 300, Asked("shop/web", "u-1", 500, 480), "", "", "")


@pytest.fixture(autouse=True)
def _no_exporter_is_left() -> Iterator[None]:
    """Wait for those that gave up on their collector, so that what they log is in no other test."""
    yield
    wait_for_exporters()


async def end(spans: RequestSpans) -> None:
    """Run in the background for a moment, as long as the process does."""
    background = asyncio.create_task(spans.run())
    await asyncio.sleep(0)
    background.cancel()
    with pytest.raises(asyncio.CancelledError):
        await background


def test_without_an_endpoint_nothing_is_made_nor_imported() -> None:
    assert create_tracing(Settings()) is None
    program = "import sys, app.telemetry.tracing; sys.exit('opentelemetry' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0  # noqa: S603 - our own program


def test_spans_reach_a_collector_before_the_process_ends() -> None:
    with collector() as server:
        spans = create_tracing(Settings(traces_endpoint=server.url, traces_share=1.0, pod_name="kindred-1"))
        assert spans is not None
        spans(ABOUT_WEB)
        assert server.received == []
        asyncio.run(end(spans))
        wait_for_exporters()
        ((path, request),) = server.received
    assert path == "/v1/traces"
    (of_resource,) = request.resource_spans
    resource = {each.key: each.value.string_value for each in of_resource.resource.attributes}
    assert resource["service.name"] == "kindred"
    assert resource["service.version"] == __version__
    assert resource["service.instance.id"] == "kindred-1"
    (span,) = server.spans()
    assert span.name == "filter"
    assert span.end_time_unix_nano - span.start_time_unix_nano == 250_000_000
    assert {each.key for each in span.attributes} >= {"k8s.pod.name", "kindred.outcome", "kindred.nodes"}


def test_a_collector_that_hangs_does_not_keep_the_process_from_its_end() -> None:
    with collector(hangs=True) as server:
        spans = create_tracing(Settings(traces_endpoint=server.url, traces_share=1.0))
        assert spans is not None
        spans(ABOUT_WEB)

        async def timed() -> float:
            began = asyncio.get_running_loop().time()
            await end(spans)
            return asyncio.get_running_loop().time() - began

        assert asyncio.run(timed()) < 4, "it may take 5 s alone to give up on a collector"
        assert not server.answers.is_set()


def test_nobody_there_is_an_error_in_the_log_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    spans = create_tracing(Settings(traces_endpoint="http://127.0.0.1:1", traces_share=1.0))
    assert spans is not None
    spans(ABOUT_WEB)
    asyncio.run(end(spans))
    wait_for_exporters()
    assert "Connection refused" in caplog.text or "Failed to export" in caplog.text


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://collector:4318", "http://collector:4318/v1/traces"),
        ("https://collector/", "https://collector/v1/traces"),
        ("http://[::1]:4318/otlp/v1/traces", "http://[::1]:4318/otlp/v1/traces"),
    ],
)
def test_an_endpoint_without_a_path_has_that_of_the_protocol(endpoint: str, url: str) -> None:
    assert url == traces_url(Settings(traces_endpoint=endpoint))


def test_without_the_extra_the_start_ends_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "app.telemetry.request_spans")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(SettingsError) as refused:
        create_tracing(Settings(traces_endpoint="http://collector:4318"))
    assert str(refused.value) == (
        "KINDRED_TRACES_ENDPOINT: needs the extra otel: pip install 'kindred-scheduler[otel]'"
    )


def test_spans_are_of_no_global_provider() -> None:
    provider = spans_to("http://127.0.0.1:1", "kindred-1")
    assert isinstance(provider, TracerProvider)
    program = (
        "from app.telemetry.request_spans import spans_to; from opentelemetry import trace; "
        "spans_to('http://127.0.0.1:1', 'k').shutdown(); print(type(trace.get_tracer_provider()).__name__)"
    )
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)  # noqa: S603 - our own program
    assert found.stdout.strip() == "ProxyTracerProvider"
    provider.shutdown()
