"""Requests to a port of a pod through the API server, like `kubectl port-forward`, also to the pod's loopback.

The API server passes a websocket with the subprotocol v4.channel.k8s.io on to the kubelet. A message begins with its
channel, 0 for data and 1 for an error. The first message of each channel is the port. The Kubernetes client for Python
has a port forward, too (kubernetes.stream.ws_client.PortForward). But its thread loses data when the other side closes,
and it reads kubeconfig files in its own way. Source: k8s.io/kubelet pkg/cri/streaming/portforward/websocket.go.
"""

import http.client
import io
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, Self, TypeVar, cast
from urllib.parse import quote, urlsplit

from app.api_server.api_errors import ApiError, ConnectionFailedError, StatusError, system_reason
from app.api_server.credentials import Credentials
from app.api_server.impersonation import NOBODY_ELSE, Impersonation

if TYPE_CHECKING:
    import socket

    from websocket import WebSocket

T = TypeVar("T")

_SUBPROTOCOL: Final = "v4.channel.k8s.io"
_CONNECT_SECONDS: Final = 10.0
_ANSWER_SECONDS: Final = 30.0
_MAX_BYTES: Final = 16 * 1024 * 1024  # of a response
_PIECE: Final = 64 * 1024  # bytes of a message
_DATA: Final = 0
_PORT_BYTES: Final = 2
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class NoHttpError(ApiError):
    """The port was reached, but its response is not HTTP. Mostly the port expects TLS."""


class PodPort(NamedTuple):
    """A port of a pod."""

    namespace: str
    pod: str
    port: int

    @property
    def path(self) -> str:
        """The path at the API server that forwards to the port."""
        return f"/api/v1/namespaces/{quote(self.namespace)}/pods/{quote(self.pod)}/portforward"

    def __str__(self) -> str:
        """Return the port for people."""
        return f"port {self.port} of pod {self.namespace}/{self.pod}"


class PodAnswer(NamedTuple):
    """The port's HTTP response."""

    status: int
    body: bytes


class _Stream(Protocol):
    def send(self, data: bytes) -> None: ...

    def receive(self) -> bytes: ...


class _Channels:
    """The data channel of one port, and the messages of its error channel. Raises OSError and WebSocketException."""

    def __init__(self, websocket: "WebSocket") -> None:
        self._websocket = websocket
        self._begun: set[int] = set()
        self.error = ""

    def send(self, data: bytes) -> None:
        """Send all of it."""
        try:
            for begin in range(0, len(data), _PIECE):
                self._websocket.send_binary(bytes([_DATA]) + data[begin : begin + _PIECE])
        except OSError:
            with suppress(OSError):
                self.receive()  # raises the error that made the other side stop reading
            raise

    def receive(self) -> bytes:
        """Return the next bytes. Empty at the end."""
        from websocket import ABNF, WebSocketConnectionClosedException  # noqa: PLC0415  # as in PortForward

        while not self.error:
            try:
                opcode, message = self._websocket.recv_data()
            except WebSocketConnectionClosedException:
                break
            if opcode == ABNF.OPCODE_CLOSE:
                break
            channel, data = message[0], message[1:]
            if channel not in self._begun and len(data) == _PORT_BYTES:
                self._begun.add(channel)
            elif channel == _DATA:
                return bytes(data)
            else:
                self.error = bytes(data).decode(errors="replace")
        return b""


class _Tls:
    """TLS over a stream. Raises ssl.SSLError, and the errors of the stream."""

    def __init__(self, stream: _Stream, context: ssl.SSLContext, host: str) -> None:
        self._stream = stream
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._run(self._tls.do_handshake)

    def send(self, data: bytes) -> None:
        """Send all of it."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._run(partial(self._tls.write, rest)) :]

    def receive(self) -> bytes:
        """Return the next bytes. Empty at the end."""
        try:
            return self._run(partial(self._tls.read, _PIECE))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    def _run(self, step: Callable[[], T]) -> T:
        while True:
            try:
                done = step()
            except ssl.SSLWantReadError:
                self._flush()
                data = self._stream.receive()
                if data:
                    self._incoming.write(data)
                else:
                    self._incoming.write_eof()
            else:
                self._flush()
                return done

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._stream.send(self._outgoing.read())


class _Reader(io.RawIOBase):
    """A file object that reads a stream."""

    def __init__(self, stream: _Stream) -> None:
        super().__init__()
        self._stream = stream
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # of the buffers that are given
        self._rest = self._rest or self._stream.receive()
        taken = min(len(buffer), len(self._rest))
        buffer[:taken] = self._rest[:taken]
        self._rest = self._rest[taken:]
        return taken


class _Socket:
    """The part of a socket that http.client needs."""

    def __init__(self, stream: _Stream) -> None:
        self._stream = stream

    def sendall(self, data: bytes) -> None:
        self._stream.send(data)

    def makefile(self, mode: str) -> io.BufferedReader:  # noqa: ARG002  # of a socket
        return io.BufferedReader(_Reader(self._stream))

    def close(self) -> None:
        """Leave the connection to its owner."""


class PortForward:
    """One connection to a port of a pod, for one request. A context manager. All methods block."""

    def __init__(
        self,
        credentials: Credentials,
        to: PodPort,
        login: Mapping[str, str],
        impersonation: Impersonation = NOBODY_ELSE,
    ) -> None:
        """`login` is the present result of `credentials.headers()`."""
        self._credentials = credentials
        self._to = to
        self._headers = [f"{name}: {value}" for name, value in (*login.items(), *impersonation.headers())]
        self._where = f"port-forward to {to} at {credentials.server}"

    def __enter__(self) -> Self:
        """Connect. Raises ApiError."""
        self._websocket = self._connected()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the connection."""
        self._websocket.shutdown()  # type: ignore[no-untyped-call]  # has no annotations

    def post(
        self, target: str, body: bytes, headers: Mapping[str, str], tls: ssl.SSLContext | None = None, host: str = ""
    ) -> PodAnswer:
        """Send JSON to the port and return its response, with any status. Raises ApiError.

        With `tls`, the request uses TLS, and the certificate must be for `host`. NoHttpError: the response is not HTTP.
        """
        from websocket import WebSocketException  # noqa: PLC0415  # slow to import: where a port is forwarded

        channels = _Channels(self._websocket)
        # localhost is the only Host that the admin port accepts without a token.
        connection = http.client.HTTPConnection("localhost", self._to.port)
        try:
            stream = channels if tls is None else _Tls(channels, tls, host)
            connection.sock = cast("socket.socket", _Socket(stream))
            connection.request("POST", target, body, {"Content-Type": "application/json", **headers})
            response = connection.getresponse()
            return PodAnswer(response.status, response.read(_MAX_BYTES))
        except (OSError, http.client.HTTPException, WebSocketException) as error:
            raise self._failure(error, channels.error) from None

    def _failure(self, error: Exception, told: str) -> ApiError:
        from websocket import WebSocketTimeoutException  # noqa: PLC0415  # the same

        if told:  # an error of the kubelet, such as: nothing listens on the port
            return ConnectionFailedError(f"{self._where}: {told}")
        if isinstance(error, TimeoutError | WebSocketTimeoutException):
            return ConnectionFailedError(f"{self._where}: no response within {_ANSWER_SECONDS:g} s")
        if isinstance(error, ssl.SSLError):
            return ConnectionFailedError(f"{self._where}: {system_reason(error)}")
        return NoHttpError(f"{self._where}: {str(error) or type(error).__name__}")

    def _connected(self) -> "WebSocket":
        from websocket import WebSocket, WebSocketBadStatusException, WebSocketException  # noqa: PLC0415  # the same

        url = urlsplit(self._credentials.server)
        address = f"{url.netloc}{url.path}{self._to.path}?ports={self._to.port}"
        connection = WebSocket(sslopt={"context": self._credentials.tls()})
        connection.settimeout(_CONNECT_SECONDS)
        try:
            connection.connect(  # type: ignore[no-untyped-call]  # the same
                f"{'wss' if url.scheme == 'https' else 'ws'}://{address}",
                header=self._headers,
                subprotocols=[_SUBPROTOCOL],
                suppress_origin=True,
                redirect_limit=0,  # the login is only for this server
                **self._proxy(),
            )
        except WebSocketBadStatusException as error:
            headers, body = error.resp_headers or {}, error.resp_body or b""
            raise StatusError.of_response(error.status_code, headers, body, self._where) from None
        except (OSError, WebSocketException) as error:
            raise ConnectionFailedError(f"{self._where}: {system_reason(error)}") from None
        connection.settimeout(_ANSWER_SECONDS)
        return connection

    def _proxy(self) -> dict[str, object]:
        """Return the arguments of the websocket client for the proxy. Raises ConnectionFailedError."""
        if self._credentials.proxy is None:
            return {"http_no_proxy": ["*"]}  # else it would read the environment, which Credentials has read already
        proxy = urlsplit(self._credentials.proxy)
        if proxy.scheme != "http":
            raise ConnectionFailedError(f"{self._where}: not possible through a proxy with {proxy.scheme}://")
        options: dict[str, object] = {
            "http_proxy_host": proxy.hostname,
            "http_proxy_port": proxy.port or _DEFAULT_PORTS[proxy.scheme],
            "proxy_type": "http",
            "http_no_proxy": ["none.invalid"],  # the same
        }
        if proxy.username:
            options["http_proxy_auth"] = (proxy.username, proxy.password or "")
        return options
