"""What the server's refusals become, field by field and as one line."""

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import msgspec
import pytest

from app.api_server.api_errors import ApiError, StatusError

WHERE = "GET /api/v1/pods at https://h"


def status(**fields: object) -> bytes:
    return json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", **fields}).encode()


def of_response(
    code: int, body: bytes = b"", kind: str = "application/json", headers: dict[str, str] | None = None
) -> StatusError:
    return StatusError.of_response(code, {"content-type": kind, **(headers or {})}, body, WHERE)


def test_a_message_is_one_printable_line() -> None:
    assert str(ApiError("a\n  b\t\x1b[1m")) == "a b \\x1b[1m"


def test_a_status_is_read_whole() -> None:
    body = status(
        code=504,
        reason="Timeout",
        message="Too large resource version: 9, current: 5",
        details={
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "m"}, {"message": "n"}],
            "retryAfterSeconds": 1,
        },
    )
    error = of_response(504, body)
    assert (error.code, error.reason, error.message, error.retry_after, error.causes) == (
        504,
        "Timeout",
        "Too large resource version: 9, current: 5",
        1.0,
        ("ResourceVersionTooLarge",),
    )
    assert str(error) == f"{WHERE}: 504 Timeout: Too large resource version: 9, current: 5"


def test_a_status_may_be_all_but_empty() -> None:
    error = of_response(403, status(details=None, message=None))
    assert (error.reason, error.message, error.retry_after, error.causes) == ("", "", None, ())
    assert str(error) == f"{WHERE}: 403 Forbidden"


@pytest.mark.parametrize(
    ("code", "body", "kind", "message"),
    [
        pytest.param(
            429,
            b"Too many requests,\ntry later.\n",
            "text/plain; charset=utf-8",
            "Too many requests,\ntry later.",
            id="text",
        ),
        pytest.param(502, b"<html>" * 100, "text/html", "the response is text/html", id="page"),
        pytest.param(500, b"", "", "", id="nothing"),
        pytest.param(500, b'{"kind": "Sta', "application/json", '{"kind": "Sta', id="cut"),
        pytest.param(404, b'{"kind": "Pod"}', "application/json", '{"kind": "Pod"}', id="another-kind"),
        pytest.param(500, b'{"kind": "Status", "code": "x"}', "", '{"kind": "Status", "code": "x"}', id="wrong-type"),
        pytest.param(500, b"\xff" + b"x" * 300, "", "\ufffd" + "x" * 199, id="long-and-binary"),
    ],
)
def test_what_is_no_status_is_shown_in_part(code: int, body: bytes, kind: str, message: str) -> None:
    error = of_response(code, body, kind)
    assert (error.code, error.reason, error.message, error.causes) == (code, "", message, ())
    assert "\n" not in str(error)


def test_a_redirect_says_where_to() -> None:
    error = of_response(302, b"<html>", "text/html", {"location": "https://login/?x"})
    assert str(error) == f"{WHERE}: 302 Found: redirects to https://login/?x, which is not followed"
    assert of_response(503, b"busy", "text/plain", {"location": "/x"}).message == "busy"


def test_a_code_that_nobody_knows_stands_alone() -> None:
    assert str(of_response(599, b"what")) == f"{WHERE}: 599: what"


def test_the_code_and_the_header_of_the_response_go_before_its_status() -> None:
    body = status(code=500, details={"retryAfterSeconds": 30})
    error = of_response(429, body, headers={"retry-after": "7"})
    assert (error.code, error.retry_after) == (429, 7.0)
    assert of_response(429, body).retry_after == 30.0


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        pytest.param("0", 0.0, id="zero"),
        pytest.param(" 120 ", 120.0, id="seconds"),
        pytest.param("Tue, 01 Jan 2030 00:00:30 GMT", 20.0, id="date"),
        pytest.param("Tue Jan  1 00:00:30 2030", 20.0, id="date-of-c"),
        pytest.param("-5", None, id="negative"),
        pytest.param("9" * 5000, None, id="endless"),
        pytest.param("٣", None, id="other-digits"),
        pytest.param("soon", None, id="word"),
    ],
)
def test_retry_after_is_seconds_or_a_date_by_the_servers_clock(header: str, expected: float | None) -> None:
    headers = {"retry-after": header, "date": "Tue, 01 Jan 2030 00:00:10 GMT"}
    assert of_response(503, headers=headers).retry_after == expected


def test_retry_after_a_date_is_by_our_clock_where_the_server_tells_none() -> None:
    until = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    retry_after = of_response(503, headers={"retry-after": until}).retry_after
    assert retry_after == pytest.approx(100, abs=5)


@pytest.mark.parametrize("seconds", [0, -3], ids=["zero", "negative"])
def test_a_status_that_wants_no_wait_says_nothing(seconds: int) -> None:
    assert of_response(503, status(details={"retryAfterSeconds": seconds})).retry_after is None


@pytest.mark.parametrize("wrap", [bytes, msgspec.Raw], ids=["bytes", "raw"])
def test_an_error_event_is_its_status(wrap: type[bytes] | type[msgspec.Raw]) -> None:
    error = StatusError.of(wrap(status(code=410, reason="Expired", message="too old resource version: 1 (2)")))
    assert (error.code, error.reason, error.retry_after, error.causes) == (410, "Expired", None, ())
    assert str(error) == "410 Expired: too old resource version: 1 (2)"


@pytest.mark.parametrize("raw", [b'{"kind": "Pod"}', b"null", b"{"], ids=["pod", "null", "cut"])
def test_an_error_event_that_is_no_status_is_a_fault_of_the_server(raw: bytes) -> None:
    error = StatusError.of(raw)
    assert (error.code, error.reason) == (500, "")
    assert str(error) == f"500 Internal Server Error: an ERROR event that is no Status: {raw.decode()}"
    assert str(StatusError.of(status(message="x"), WHERE)) == f"{WHERE}: 500 Internal Server Error: x"


@pytest.mark.parametrize("code", [-1, 0, 99, 1000, 2**70])
def test_an_error_event_without_a_code_of_http_is_a_fault_of_the_server(code: int) -> None:
    """Each code is a label of a metric."""
    assert StatusError.of(status(code=code, message="x")).code == 500
