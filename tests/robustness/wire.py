"""HTTP/1.1 by hand: whatever bytes one likes go out, and what comes back is read with patience, but not for ever."""

import random
import re
import socket
from collections.abc import Iterator
from typing import Final, NamedTuple, Self

PATIENCE: Final = 30.0  # seconds for an answer; what takes longer hangs
_HEAD_ENDS: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"^content-length: *(\d+)\r$", re.IGNORECASE | re.MULTILINE)
_CHUNKED: Final = re.compile(rb"^transfer-encoding: *chunked\r$", re.IGNORECASE | re.MULTILINE)
_STATUS: Final = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
_READ_BYTES: Final = 64 * 1024
_HEADERS: Final = (
    b"Kindred-Cache: off", b"Kindred-Cache: \xff\xfe", b"Expect: 100-continue", b"Connection: close",
    b"Connection: upgrade", b"Upgrade: websocket", b"Upgrade: h2c", b"Content-Encoding: gzip", b"Accept: \0",
    b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA",
    b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding: identity", b"X: a\rContent-Length: 1", b"X: a\nX: b",
    b"Content-Length : 1", b"X: a\r\n\tb",
    b"Content-Type: text/xml; charset=\xff",
    b"Transfer-Encoding: gzip", b"Transfer-Encoding: chunked", b"Content-Length: 7", b"Content-Length: -1",
    b"Content-Length: 99999999999999999999", b"Host: ", b"Host: [::", b": nameless", b"No-Colon", b" folded: line",
    b"traceparent: 00-00000000000000000000000000000000-0000000000000000-ff", b"traceparent: \xc3\xa9",
    b"X: " + b"x" * 70_000, b"X-" + b"y" * 70_000 + b": 1", b"\r\n".join(b"X-%d: 1" % number for number in range(2000)),
    b"Authorization: Bearer " + b"z" * 5000, b"Forwarded: for=\x7f", b"Kindred-Cache:", b"Range: bytes=0-",
    b"Kindred-Dry-Run: \xff", b"Kindred-Dry-Run:",
)  # fmt: skip
FIRST_LINES: Final = (
    b"POST /filter HTTP/1.1", b"POST /filter HTTP/1.0", b"POST /filter HTTP/2.0", b"POST /filter",
    b"POST  /filter HTTP/1.1", b"POST /filter HTTP/0.9", b"CONNECT kindred:80 HTTP/1.1", b"POST /filter RTSP/1.0",
    b"post /filter HTTP/1.1", b"GET /filter HTTP/1.1", b"PUT /prioritize HTTP/1.1", b"POST //filter HTTP/1.1",
    b"POST /filter?a=%zz&\xff HTTP/1.1", b"POST /filter#x HTTP/1.1", b"POST http://elsewhere/filter HTTP/1.1",
    b"POST * HTTP/1.1", b"OPTIONS * HTTP/1.1", b"CONNECT a:1 HTTP/1.1", b"POST /\xed\xa0\x80 HTTP/1.1",
    b"POST /%00 HTTP/1.1",
    b"POST /" + b"f" * 70_000 + b" HTTP/1.1", b"HEAD /livez HTTP/1.1", b"GET /livez HTTP/1.1", b"POST /livez HTTP/1.1",
    b"GET /metrics HTTP/1.0", b"PRI * HTTP/2.0", b"GET /../../etc/passwd HTTP/1.1", b"\x16\x03\x01\x02\x00\x01",
    b"\0\0\0",
    b"GET /readyz?" + b"&" * 5000 + b" HTTP/1.1", b"POST /bind HTTP/1.1", b"POST /preempt HTTP/1.1", b"",
    b"TRACE / HTTP/1.1",
)  # fmt: skip

_BEHIND: Final = (
    b"",
    b"garbage",
    b"\0",
    b"\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET /livez HTTP/1.1\r\n\r\n",
    b"0\r\n\r\n",
)


class HangingError(Exception):
    """A service that neither answers nor closes the connection."""


class Response(NamedTuple):
    """A response; without a status, the connection was closed instead."""

    status: int
    head: bytes
    body: bytes


CLOSED: Final = Response(0, b"", b"")


class Client:
    """A connection that is made again where the service has closed it."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._socket: socket.socket | None = None

    def post(self, path: str, body: bytes) -> Response:
        """Send a request that is all right but for its body."""
        sent = request(f"POST {path} HTTP/1.1".encode(), body)
        if self._socket is None:
            self._socket = socket.create_connection(self._address, PATIENCE)
        self._socket.sendall(sent)
        response, rest = _response(self._socket, b"")
        assert not rest
        if response is CLOSED or b"\r\nconnection: close\r\n" in response.head.lower():
            self.close()
        return response

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def exchange(address: tuple[str, int], pieces: list[bytes]) -> list[Response]:
    """Send pieces over a new connection, one packet each, and nothing after; give all answers until it is closed."""
    with socket.create_connection(address, PATIENCE) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for piece in pieces:
                connection.sendall(piece)
            connection.shutdown(socket.SHUT_WR)
        except (ConnectionError, OSError):
            pass  # it has been closed already, behind an answer or without one
        responses: list[Response] = []
        rest = b""
        while True:
            response, rest = _response(connection, rest)
            if response is CLOSED:
                return responses
            responses.append(response)


def request(first_line: bytes, body: bytes, *headers: bytes, length: int | None = None) -> bytes:
    """Return a request as it is sent, whose Content-Length may be wrong."""
    stated = len(body) if length is None else length
    return b"\r\n".join((first_line, b"Host: kindred", *headers, b"Content-Length: %d" % stated, b"", body))


def odd_requests(source: random.Random, path: str, body: bytes, count: int) -> Iterator[list[bytes]]:
    """Yield requests in pieces, in which not the body is at fault, but what is around it."""
    right = f"POST {path} HTTP/1.1".encode()
    for _ in range(count):
        match source.randrange(8):
            case 0:
                yield [request(source.choice(FIRST_LINES), body, *source.sample(_HEADERS, source.randrange(3)))]
            case 1:
                yield [request(right, body, *source.sample(_HEADERS, source.randint(1, 3)))]
            case 2:
                yield [request(right, body, length=len(body) + source.choice((-len(body), -7, -1, 1, 9, 10**6)))]
            case 3:
                yield _split(source, _in_chunks(source, right, body))
            case 4:
                yield _split(source, request(right, body) * source.randint(1, 5) + source.choice(_BEHIND))  # pipelined
            case 5:
                yield _split(source, _strangely_framed(source, right, body))
            case 6:
                whole = bytearray(request(right, body))
                for _ in range(source.randint(1, 8)):
                    whole[source.randrange(min(len(whole), 200))] = source.randrange(256)
                yield [bytes(whole)]
            case _:
                yield [source.randbytes(source.randrange(300))]


def _split(source: random.Random, sent: bytes) -> list[bytes]:
    cuts = sorted(source.randrange(len(sent)) for _ in range(source.randrange(6)))
    return [sent[start:end] for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True)]


def _in_chunks(source: random.Random, first_line: bytes, body: bytes) -> bytes:
    """Return a request in chunks of all sizes, some of which say what they are not."""
    sent = [first_line, b"\r\nHost: kindred\r\nTransfer-Encoding: chunked\r\n\r\n"]
    start = 0
    while start < len(body):
        piece = body[start : start + source.choice((1, 2, 100, 5000))]
        start += len(piece)
        stated = source.choice(
            (b"%x" % len(piece),) * 30 + (b"0", b"%X;name=value" % len(piece), b"zz", b"f" * 20, b"-1")
        )
        sent.append(stated + b"\r\n" + piece + source.choice((b"\r\n",) * 30 + (b"", b"\n")))
    sent.append(source.choice((b"0\r\n\r\n", b"0\r\nTrailer: 1\r\n\r\n", b"0\r\n", b"")))
    return b"".join(sent)


def _strangely_framed(source: random.Random, first_line: bytes, body: bytes) -> bytes:
    """Return a request with much around its body: tiny chunks, extensions, zeros or trailers, which may not end."""
    much = source.choice((10, 1000, 100_000, 1_000_000))
    head = first_line + b"\r\nHost: kindred\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"%x\r\n%b\r\n" % (len(body), body)
    match source.randrange(5):
        case 0:
            tiny = b"".join(b"1;%b\r\n%c\r\n" % (b"e" * source.randrange(3), byte) for byte in body)
            return head + tiny * (1 + much // (10 * len(tiny) + 1)) + b"0\r\n\r\n"
        case 1:
            return head + b"1;" + b"e" * much + b"\r\n{\r\n0\r\n\r\n"
        case 2:
            return head + b"0" * much + chunk + b"0\r\n\r\n"
        case 3:
            return head + chunk + b"0\r\nX: " + b"a" * much + source.choice((b"", b"\r\n", b"\r\n\r\n"))
        case _:
            return head + chunk + b"0\r\n" + b"a:\r\n" * (much // 4) + source.choice((b"", b"\r\n"))


def _response(connection: socket.socket, rest: bytes) -> tuple[Response, bytes]:
    """Read one answer; give it with what came behind it."""
    received = rest
    while _HEAD_ENDS not in received:
        piece = _received(connection)
        if not piece:
            assert not received, f"an answer ends in its head: {received[:200]!r}"
            return CLOSED, b""
        received += piece
    head, _, body = received.partition(_HEAD_ENDS)
    head += b"\r\n"
    status = _STATUS.match(head)
    assert status, f"no HTTP: {head[:200]!r}"
    if int(status[1]) == 100:  # Continue: the answer is yet to come
        return _response(connection, body)
    length = _LENGTH.search(head)
    until = _HEAD_ENDS if _CHUNKED.search(head) else None
    while (len(body) < int(length[1])) if length else (until is None or not body.endswith(b"0\r\n\r\n")):
        piece = _received(connection)
        if not piece:
            break
        body += piece
    size = int(length[1]) if length else len(body)
    return Response(int(status[1]), head, body[:size]), body[size:]


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(_READ_BYTES)
    except TimeoutError:
        raise HangingError(f"nothing within {PATIENCE:g} s") from None
    except ConnectionError:
        return b""
