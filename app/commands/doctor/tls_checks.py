"""Checks of TLS between kube-scheduler and Kindred: use, trust, and the files that are on this machine."""

import base64
import binascii
import ssl
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from app.api_server.pem import load_identity
from app.commands.doctor.certificates import validities, verification_problem
from app.commands.doctor.findings import EXTENDER_TYPE, SETTINGS, NotChecked, Problem, error, info, setting, warning
from app.commands.doctor.registration import Check, Found, Registration
from app.files import MAX_PEM_BYTES, read_file
from app.scheduler_configuration.schema import TlsConfig
from app.settings import wants_certificates

_CLIENT: Final = "client-go transport/transport.go (TLSConfigFor)"
_SOON: Final = timedelta(days=7)
_CA_LINE: Final = "tlsConfig: {caFile: /etc/kubernetes/kindred/ca.crt}"


def _is_https(registration: Registration) -> bool:
    return registration.extender.scheme == "https"


def _scheme(registration: Registration) -> Found:
    extender, tls = registration.extender, registration.extender.tls_config or TlsConfig()
    if not _is_https(registration):
        if extender.enable_https or extender.tls_config is not None:
            what = "enableHTTPS" if extender.enable_https else "tlsConfig"
            yield error(
                extender.at("urlPrefix"),
                f"{extender.url_prefix!r} is plain HTTP: the scheme alone decides, not {what}",
                f"urlPrefix: {extender.url_prefix.replace('http://', 'https://', 1)}",
            )
    elif not extender.enable_https and not tls.has_ca and not tls.insecure:
        yield warning(
            extender.at("enableHTTPS"),
            "false, with an https URL and no CA: an authority of the machine must have signed the certificate, and "
            "the cluster's CA is none",
            f"enableHTTPS: true, and {_CA_LINE}",
        )


def _without_ca(registration: Registration) -> Found:
    extender, tls = registration.extender, registration.extender.tls_config or TlsConfig()
    if not _is_https(registration) or tls.has_ca:
        return
    if tls.insecure:
        yield warning(
            extender.at("tlsConfig.insecure"),
            "true: kube-scheduler accepts any certificate, so redirected traffic decides on every pod",
            f"{_CA_LINE}, without insecure",
        )
    elif extender.enable_https:
        yield error(
            extender.at("tlsConfig.caFile"),
            "not set: with enableHTTPS and no CA, kube-scheduler silently accepts any certificate",
            _CA_LINE,
        )


def _contradiction(registration: Registration) -> Found:
    extender, tls = registration.extender, registration.extender.tls_config or TlsConfig()
    if tls.insecure and tls.has_ca:
        yield error(
            extender.at("tlsConfig.insecure"),
            "true, with a CA: kube-scheduler does not start (specifying a root certificates file with the insecure "
            "flag is not allowed)",
            "insecure: false",
        )
    half = {"certFile": tls.cert_file or tls.cert_data, "keyFile": tls.key_file or tls.key_data}
    missing = [name for name, value in half.items() if not value]
    if len(missing) == 1:
        yield error(
            extender.at(f"tlsConfig.{missing[0]}"),
            "not set: kube-scheduler sends no client certificate without both parts",
            f"{missing[0]}: FILE",
        )


def _against_settings(registration: Registration) -> Found:
    extender, settings = registration.extender, registration.settings
    if registration.known.assumed:
        yield NotChecked("Kindred's settings: --config FILE or --admin-url URL")
        return
    tls = extender.tls_config or TlsConfig()
    if settings.tls_directory and not _is_https(registration):
        yield error(
            extender.at("urlPrefix"),
            f"{extender.url_prefix!r} is plain HTTP, but Kindred serves TLS (tlsDirectory): every call fails",
            f"urlPrefix: {extender.url_prefix.replace('http://', 'https://', 1)}, enableHTTPS: true and {_CA_LINE}",
        )
    elif _is_https(registration) and not settings.tls_directory:
        yield error(
            extender.at("urlPrefix"),
            f"{extender.url_prefix!r} is TLS, but Kindred serves plain HTTP (no tlsDirectory): every call fails, "
            "unless a proxy in between terminates TLS",
            f"{setting('tls_directory')}, or an http URL",
        )
    elif wants_certificates(settings) and not tls.has_certificate:
        yield error(
            extender.at("tlsConfig.certFile"),
            "no client certificate, but Kindred requires one (tlsDirectory): every call fails",
            "tlsConfig.certFile and tlsConfig.keyFile",
        )


def _files(registration: Registration) -> Found:
    extender, tls = registration.extender, registration.extender.tls_config or TlsConfig()
    for field, file, data in (
        ("caFile", tls.ca_file, tls.ca_data),
        ("certFile", tls.cert_file, tls.cert_data),
    ):
        pem = _read(file, data)
        if isinstance(pem, NotChecked):
            yield pem
        elif pem is not None:
            yield from _validity(extender.at(f"tlsConfig.{field}"), "its data" if data else file, pem, registration.now)
    if tls.cert_file and tls.key_file and Path(tls.cert_file).exists() and not tls.cert_data and not tls.key_data:
        yield from _pair(registration, tls)


def _read(file: str, data: str) -> bytes | NotChecked | None:
    if data:
        try:
            return base64.b64decode(data, validate=True)
        except binascii.Error:
            return b""
    if not file:
        return None
    try:
        return read_file(Path(file), MAX_PEM_BYTES)
    except OSError as problem:
        return NotChecked(f"{file} on this machine ({(problem.strerror or 'not readable').lower()})")


def _validity(where: str, name: str, pem: bytes, now: datetime) -> Found:
    try:
        found = validities(pem)
    except ValueError as problem:
        yield error(where, f"{name}: {problem}", "a file with certificates in PEM")
        return
    yield from (problem for each in found for problem in _when(where, name, each.not_before, each.not_after, now))


def _when(where: str, name: str, begin: datetime, end: datetime, now: datetime) -> list[Problem]:
    if now > end:
        return [error(where, f"{name}: expired on {end:%Y-%m-%d %H:%M} UTC: every call fails", "renew it")]
    if now < begin:
        return [error(where, f"{name}: valid only from {begin:%Y-%m-%d %H:%M} UTC on", "wait, or correct the clock")]
    if end - now < _SOON:
        return [info(where, f"{name}: expires on {end:%Y-%m-%d %H:%M} UTC", "make sure that it is renewed")]
    return []


def _pair(registration: Registration, tls: TlsConfig) -> Found:
    where = registration.extender.at("tlsConfig.keyFile")
    try:
        load_identity(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), Path(tls.cert_file), Path(tls.key_file))
    except ssl.SSLError:
        yield error(
            where, f"{tls.key_file} is not the key of {tls.cert_file}", "the key that the certificate was made with"
        )
    except OSError as problem:
        yield NotChecked(f"{tls.key_file} on this machine ({(problem.strerror or 'not readable').lower()})")


def _server(registration: Registration) -> Found:
    settings, tls = registration.settings, registration.extender.tls_config or TlsConfig()
    if not _is_https(registration) or settings.tls_directory is None or tls.insecure:
        return
    authority = _read(tls.ca_file, tls.ca_data)
    if authority is None:
        return
    if isinstance(authority, NotChecked):
        yield authority
        return
    certificate, key = settings.tls_directory / "tls.crt", settings.tls_directory / "tls.key"
    host = tls.server_name or registration.extender.host
    try:
        problem = verification_problem(authority, certificate, key, host)
    except ssl.SSLError:
        yield NotChecked(f"{certificate}, {key} and the CA as certificates and key in PEM")
    except OSError as failure:
        yield NotChecked(f"{certificate} and its key on this machine ({(failure.strerror or '').lower()})")
    else:
        if problem:
            yield error(
                registration.extender.at("tlsConfig"),
                f"kube-scheduler refuses {certificate} for {host}: {problem}",
                f"a certificate for the DNS name {host}, signed by the CA of tlsConfig",
            )


CHECKS = (
    Check("https-scheme", EXTENDER_TYPE, _scheme),
    Check("tls-without-ca", "kubernetes pkg/scheduler/extender.go (makeTransport)", _without_ca),
    Check("tls-contradiction", _CLIENT, _contradiction),
    Check("tls-of-kindred", SETTINGS, _against_settings, of_settings=True),
    Check("tls-files", _CLIENT, _files),
    Check("tls-server-certificate", _CLIENT, _server, of_settings=True),
)
