"""Calls the routes of a running Kindred about itself. Judges nothing."""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import httpx
import msgspec

from app.api_server.pem import load_authorities, load_identity
from app.files import MAX_TOKEN_BYTES, read_file
from app.json_text import decode
from app.scheduler_configuration.scheduler_config import UnreadableError

_IF_HTTP: Final = "start Kindred or correct the URL, which begins with https if Kindred speaks TLS"
_IF_HTTPS: Final = "--ca-file with the CA of its certificate, or --cert-file and --key-file if it asks for one"
_TIMEOUT: Final = 5.0  # seconds, the default of kube-scheduler
_PATHS: Final = ("/version", "/readyz", "/metrics")


class TlsFiles(NamedTuple):
    """The trusted authorities and the caller's certificate; None: the machine's authorities, no certificate."""

    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None


class Answer(NamedTuple):
    """The response."""

    status: int
    body: bytes


class Visit(NamedTuple):
    """The responses of a service, by path. Without one: `failure`, one line, and `mending`, a possible fix."""

    url: str
    answers: Mapping[str, Answer]
    failure: str = ""
    mending: str = ""


class _FailedError(Exception):
    def __init__(self, failure: str, mending: str) -> None:
        super().__init__(failure)
        self.failure = failure
        self.mending = mending


def visit(url: str, files: TlsFiles) -> Visit:
    """Call a service. Raises UnreadableError for a URL or TLS files that cannot be used."""
    base = checked_url(url)
    answers: dict[str, Answer] = {}
    with _client(base, files) as client:
        try:
            for path in _PATHS:
                answers[path] = _asked(client, path)
        except _FailedError as error:
            return Visit(base, answers, failure=error.failure, mending=error.mending)
    return Visit(base, answers)


def fetch_settings(url: str, files: TlsFiles, token_file: Path | None) -> dict[str, dict[str, object]]:
    """Return key -> {value, source} from the admin port. Raises UnreadableError."""
    base = checked_url(url)
    headers = {}
    if token_file is not None:
        try:
            headers["Authorization"] = f"Bearer {read_file(token_file, MAX_TOKEN_BYTES).decode().strip()}"
        except (OSError, UnicodeDecodeError) as error:
            raise UnreadableError(f"{token_file}: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None
    with _client(base, files) as client:
        try:
            answer = _asked(client, "/debug/config", headers)
        except _FailedError as error:
            raise UnreadableError(f"{base}/debug/config: {error.failure}; {error.mending}") from None
    if answer.status != httpx.codes.OK:
        hint = "; give --admin-token-file" if answer.status in {401, 403} else ""
        raise UnreadableError(f"{base}/debug/config: status {answer.status}{hint}")
    try:
        return decode(answer.body, dict[str, dict[str, object]])
    except msgspec.MsgspecError:
        raise UnreadableError(f"{base}/debug/config: no settings of Kindred; is this its admin port?") from None


def checked_url(url: str) -> str:
    """Return a base URL without a slash at the end. Raises UnreadableError."""
    try:
        parsed = urlsplit(url)
        usable = (
            parsed.scheme in {"http", "https"} and bool(parsed.hostname) and (parsed.port is None or parsed.port > 0)
        )
    except ValueError:
        usable = False
    if not usable:
        raise UnreadableError(f"{url!r} is not a URL that begins with http:// or https://")
    return url.rstrip("/")


@contextmanager
def _client(base: str, files: TlsFiles) -> Iterator[httpx.Client]:
    context = _context(files) if base.startswith("https:") else False
    # Without the proxies of the environment: kube-scheduler most often has none.
    with httpx.Client(base_url=base, verify=context, timeout=_TIMEOUT, trust_env=False) as client:
        yield client


def _context(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as in Go
    if (files.cert_file is None) != (files.key_file is None):
        raise UnreadableError("--cert-file and --key-file go together")
    named = files.ca_file
    try:
        if files.ca_file is None:
            context.load_default_certs()
        else:
            load_authorities(context, files.ca_file)
        if files.cert_file is not None and files.key_file is not None:
            named = files.cert_file
            load_identity(context, files.cert_file, files.key_file)
    except ssl.SSLError as error:
        raise UnreadableError(f"{named}: cannot be used: {error.strerror or error}") from None
    except OSError as error:
        raise UnreadableError(f"{named}: {error.strerror}") from None
    return context


def _asked(client: httpx.Client, path: str, headers: Mapping[str, str] | None = None) -> Answer:
    try:
        response = client.get(path, headers=headers)
    except httpx.TimeoutException:
        raise _FailedError(
            f"{path}: no response within {_TIMEOUT:g} s",
            "check for a network policy or a firewall in between, or for a Kindred that hangs",
        ) from None
    except (httpx.TransportError, ssl.SSLError) as error:
        raise _failed(path, error, https=client.base_url.scheme == "https") from None
    return Answer(response.status_code, response.content)


def _failed(path: str, error: Exception, *, https: bool) -> _FailedError:
    return _FailedError(f"{path}: {str(error) or type(error).__name__}", _IF_HTTPS if https else _IF_HTTP)
