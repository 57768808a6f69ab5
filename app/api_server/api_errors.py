"""The errors of a request to the API server. The message of each is one line with the cause and the address."""

import os
import re
import socket
import ssl
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.client import responses
from typing import Final

import msgspec

from app.api_server.tls import openssl_reason
from app.process.logs import one_line

_SECONDS: Final = re.compile(r"\d{1,9}", re.ASCII)
_CODES: Final = range(100, 1000)  # of HTTP; a label of a metric has them
_MAX_LISTED: Final = 200  # characters of a response that is no Status


class ApiError(Exception):
    """A request to the API server that failed. Its kinds are the subclasses."""

    def __init__(self, text: str) -> None:
        super().__init__(one_line(" ".join(text.split())))


class ConnectionFailedError(ApiError):
    """No complete response of an API server: refused, unknown host, TLS, reset, cut, not HTTP, not JSON."""

    def __init__(self, text: str, *, unsent: bool = False) -> None:
        super().__init__(text)
        self.unsent = unsent
        """Whether the server certainly did not get the request, because there was no connection."""


class ResponseTooLargeError(ApiError):
    """A response over the limit of bytes."""


class ReadTimeoutError(ApiError):
    """The connection is open, but the server sent nothing for too long."""


class _Cause(msgspec.Struct):
    reason: str | None = None


class _Details(msgspec.Struct, rename="camel"):
    causes: list[_Cause] | None = None
    retry_after_seconds: int | None = None


class _Status(msgspec.Struct):
    kind: str | None = None
    code: int | None = None
    reason: str | None = None
    message: str | None = None
    details: _Details | None = None


_decoder = msgspec.json.Decoder(_Status)


class StatusError(ApiError):
    """A response other than success, or ERROR in a watch. Mostly its body is a v1.Status."""

    def __init__(  # noqa: PLR0913  # the fields of a Status
        self,
        code: int,
        reason: str,
        message: str,
        retry_after: float | None = None,
        causes: Sequence[str] = (),
        *,
        where: str = "",
    ) -> None:
        what = f"{code} {reason or responses.get(code, '')}".strip()
        super().__init__(": ".join(part for part in (where, what, message) if part))
        self.code = code
        """Status code. 500 for an ERROR event without one."""
        self.reason = reason
        """Machine-readable reason, such as Expired. Empty if the response was no Status."""
        self.message = message
        self.retry_after = retry_after
        """Seconds to wait before the next request (Retry-After), or None."""
        self.causes = tuple(causes)
        """Reasons of the causes, such as ResourceVersionTooLarge."""
        self.body = b""
        """The body of a response that was no Status, as far as it was read."""

    @property
    def is_temporary(self) -> bool:
        """Whether the same request may succeed later: the server is busy, or failed."""
        return self.code == HTTPStatus.TOO_MANY_REQUESTS or self.code >= HTTPStatus.INTERNAL_SERVER_ERROR

    @classmethod
    def of(cls, raw: bytes | msgspec.Raw, where: str = "") -> "StatusError":
        """Return the error of an ERROR event, from its object."""
        status = _decoded(raw)
        if status is None:
            text = bytes(raw).decode(errors="replace")[:_MAX_LISTED]
            return cls(HTTPStatus.INTERNAL_SERVER_ERROR, "", f"an ERROR event that is no Status: {text}", where=where)
        code = status.code or 0
        return cls._from(status, code if code in _CODES else HTTPStatus.INTERNAL_SERVER_ERROR, None, where)

    @classmethod
    def of_response(cls, code: int, headers: Mapping[str, str], body: bytes, where: str) -> "StatusError":
        """Return the error of a response that is not 200. The names in `headers` may have any case."""
        retry_after = _retry_after(headers)
        status = _decoded(body)
        if status is not None:
            return cls._from(status, code, retry_after, where)
        error = cls(code, "", _description(code, headers, body), retry_after, where=where)
        error.body = body
        return error

    @classmethod
    def _from(cls, status: _Status, code: int, retry_after: float | None, where: str) -> "StatusError":
        details = status.details or _Details()
        if retry_after is None and details.retry_after_seconds and details.retry_after_seconds > 0:
            retry_after = float(details.retry_after_seconds)
        causes = [cause.reason for cause in details.causes or () if cause.reason]
        return cls(code, status.reason or "", status.message or "", retry_after, causes, where=where)


def _decoded(raw: bytes | msgspec.Raw) -> _Status | None:
    try:
        status = _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return status if status.kind == "Status" else None


def _description(code: int, headers: Mapping[str, str], body: bytes) -> str:
    location = headers.get("location")
    if location and HTTPStatus.MULTIPLE_CHOICES <= code < HTTPStatus.BAD_REQUEST:
        return f"redirects to {location}, which is not followed"
    kind = headers.get("content-type", "").partition(";")[0].strip()
    if kind not in {"", "text/plain", "application/json"}:
        return f"the response is {kind}"  # such as the page of a proxy, whose beginning is not helpful
    return body.decode(errors="replace")[:_MAX_LISTED].strip()


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of Retry-After, which has seconds or a date (RFC 9110, 10.2.3)."""
    header = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(header):
        return float(header)
    until = _date(header)
    if until is None:
        return None
    now = _date(headers.get("date", "")) or datetime.now(UTC)  # by the server's clock, if the response has a Date
    return max(0.0, (until - now).total_seconds())


def _date(text: str) -> datetime | None:
    try:
        parsed = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)


def system_reason(error: BaseException) -> str:
    """Return the message of the system or of OpenSSL about a failed connection. Layers in between have less detail."""
    cause = _system_error(error)
    match cause:
        case ssl.SSLCertVerificationError():
            return f"certificate verify failed: {cause.verify_message.rstrip('.')}"
        case ssl.SSLError():
            return f"TLS: {openssl_reason(cause)}"
        case socket.gaierror():
            return f"unknown host: {cause.strerror}"
        case OSError(errno=int(number)):
            return os.strerror(number)  # asyncio's own message is only "Connect call failed"
    return str(error) or type(error).__name__


def _system_error(error: BaseException | None) -> OSError | None:
    """Return the nearest OSError below an error (ssl.SSLError is one). Of a group, the first."""
    while error is not None:
        if isinstance(error, OSError) and error.strerror:
            return error
        # The context, not only the cause: httpcore raises its errors again with `from None`.
        below = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else None
        error = below or error.__cause__ or error.__context__
    return None
