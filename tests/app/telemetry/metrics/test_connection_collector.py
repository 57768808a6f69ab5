"""What stands on the ports, what was turned away, and until when certificates hold."""

import time
from pathlib import Path

import pytest

from app.main import create_service
from app.server.connections import Connections, Limits, Refusal
from app.server.tls.reloaded import ReloadedTls
from app.server.tls.server_context import scheduler_tls
from app.settings import Settings
from app.telemetry.metrics.connection_collector import ConnectionCollector, TlsCollector
from tests.app.asgi import ask
from tests.app.questions import shop
from tests.app.server.tls.secrets import Certificates
from tests.app.telemetry.metrics.scraped import collected

LIMITS = Limits(512, 1024, 1024, 10.0, 120.0)


def test_connections_are_counted_by_port_and_refusals_by_reason(caplog: pytest.LogCaptureFixture) -> None:
    extender, admin = Connections("extender", LIMITS), Connections("admin", LIMITS)
    extender.connections.update(("one", "two"))
    values = collected(ConnectionCollector([extender, admin]))
    assert values["kindred_connections_open"] == {("extender",): 2, ("admin",): 0}
    refused = values["kindred_connections_refused_total"]
    assert refused == {(port, reason.value): 0 for port in ("extender", "admin") for reason in Refusal}
    admin.refuse(Refusal.UNAUTHORIZED, ("10.0.0.1", 4711))
    refused = collected(ConnectionCollector([extender, admin]))["kindred_connections_refused_total"]
    assert refused["admin", "unauthorized"] == 1
    assert sum(refused.values()) == 1
    assert "admin port: rejected 10.0.0.1: unauthorized" in caplog.text


def test_certificates_have_an_end_and_reloads_a_result(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "ca")
    tls = scheduler_tls(Settings(tls_cert_file=certificates.crt("server"), tls_key_file=certificates.key("server")))
    assert tls is not None
    reloaded = ReloadedTls("extender", tls, time.time)
    reloaded.reloads["failure"] += 3
    values = collected(TlsCollector([reloaded]))
    assert values["kindred_tls_certificate_not_after_timestamp_seconds"] == {("extender",): reloaded.not_after}
    assert values["kindred_tls_reloads_total"] == {("extender", "success"): 0, ("extender", "failure"): 3}


def test_a_scrape_tells_of_all_ports_and_of_certificates_where_there_are_some(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "ca")
    plain = ask(create_service(Settings(health_port=0, admin_port=0), shop(), None).app, "GET", "/metrics").text
    for name in ("extender", "health", "admin"):
        assert f'kindred_connections_open{{port="{name}"}} 0.0' in plain
    assert "kindred_tls" not in plain
    secured = Settings(health_port=0, tls_cert_file=certificates.crt("server"), tls_key_file=certificates.key("server"))
    service = create_service(secured, shop(), None)
    for port in service.ports:
        text = ask(port.app, "GET", "/metrics").text
        assert 'kindred_tls_certificate_not_after_timestamp_seconds{port="extender"}' in text
        assert 'kindred_tls_reloads_total{port="extender",result="success"} 0.0' in text
