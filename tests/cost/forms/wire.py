"""Forms of HTTP framing, sent to a running service over several connections at once (`tests.cost.exchange`).

A document has a number of `connections`, and `pieces` of text (Latin-1). Each connection sends the pieces one after the
other, each a number of `times`. Or it has a `path` and a `port`, and each connection requests that page `times` times.
"""

from dataclasses import replace
from typing import Final

from tests.cost.attack import Object
from tests.cost.forms.form import Form

_HEAD: Final = "POST /filter HTTP/1.1\r\nHost: kindred\r\n"
_CHUNKED: Final = _HEAD + "Transfer-Encoding: chunked\r\n\r\n"
_BODY: Final = "Content-Length: 2\r\n\r\n{}"
_UPGRADE: Final = (
    "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n" + _BODY
)
_PIECE: Final = 16 * 1024
_SIZES: Final = (1 << 20,)
_LARGE: Final = (1 << 20, 64 << 20)


def _flood(name: str, before: str, text: str, connections: int = 4, sizes: tuple[int, ...] = _SIZES) -> Form:
    """Return a form that repeats a text up to the size on each connection."""

    def document(size: int) -> Object:
        repeated = text * max(1, _PIECE // len(text))
        times = max(1, size // len(repeated))
        return {"connections": connections, "pieces": [{"text": before}, {"text": repeated, "times": times}]}

    return Form(name, "wire", "wire", document, sizes=sizes)


def _requested(name: str, path: str, port: str, connections: int, times: int) -> Form:
    """Return a form of clients that request a page."""
    document = {"path": path, "port": port, "connections": connections, "times": times}
    return Form(name, "pages", "wire", lambda _: dict(document), sizes=(1024,))


_ALL: Final = [
    _flood("wire-endless-trailer", _CHUNKED + "2\r\n{}\r\n0\r\n", "X: y\r\n", 16, _LARGE),
    _flood("wire-long-trailer", _CHUNKED + "0\r\nX: ", "y", sizes=_LARGE),
    _flood("wire-chunk-extensions", _CHUNKED + "2;", "a=b;", 16, _LARGE),
    _flood("wire-small-chunks", _CHUNKED, "1\r\n \r\n"),
    _flood("wire-extended-chunks", _CHUNKED, "1;a=b\r\n \r\n"),
    _flood("wire-headers", _HEAD, "X: y\r\n"),
    _flood("wire-long-header", _HEAD + "X: ", "y"),
    _flood("wire-long-path", "GET /", "y"),
    _flood("wire-pipelined", "", "GET /livez HTTP/1.1\r\nHost: k\r\n\r\n"),
    _flood("wire-pipelined-requests", "", _HEAD + _BODY),
    _flood("wire-upgrade", "", _HEAD + _UPGRADE),
    _flood("wire-line-feeds", "", "\r\n"),
    _flood("wire-garbage", "", "\x00\xff"),
    _flood("wire-upload", _HEAD + "Content-Length: 67108864\r\n\r\n", " ", sizes=_LARGE),
    _requested("pages-metrics", "/metrics", "scheduler", 8, 5),
    _requested("pages-mirror", "/debug/mirror", "admin", 10, 1),
    _requested("pages-mirror-diff", "/debug/mirror/diff", "admin", 4, 1),
    _requested("pages-equivalence", "/debug/equivalence", "admin", 4, 2),
    _requested("pages-decisions", "/debug/decisions", "admin", 4, 4),
]
_OF_ISSUE: Final = {"wire-endless-trailer", "wire-upgrade", "pages-metrics", "pages-mirror"}
FORMS: Final = [replace(form, of_issue=form.name in _OF_ISSUE) for form in _ALL]
