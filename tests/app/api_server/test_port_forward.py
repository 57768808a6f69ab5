"""Requests to a port of a pod by a port-forward, to a server that frames them as a kubelet does."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.api_server.api_errors import ApiError, ConnectionFailedError, StatusError
from app.api_server.credentials import Credentials, load_credentials
from app.api_server.impersonation import Impersonation
from app.api_server.port_forward import NoHttpError, PodAnswer, PodPort, PortForward
from tests.app.api_server.connect_proxy import proxying
from tests.app.api_server.kubeconfigs import write_kubeconfig
from tests.openssl import Authority
from tests.port_forwarding import forward, switching_head

TO = PodPort("kindred", "kindred-0", 8890)
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}"
Serve = Callable[[socket.socket], None]


@contextmanager
def listening(serve: Serve) -> Iterator[int]:
    """Serve one connection after the other on a free port of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    serve(connection)

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


class ForwardingServer:
    """Accepts the upgrade, and forwards to a port of this machine; keeps the heads of the requests."""

    def __init__(self, to: int) -> None:
        self.to = to
        self.heads: list[str] = []
        self.refusal = b""
        """Sent instead of the upgrade."""

    def __call__(self, connection: socket.socket) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            piece = connection.recv(1)
            if not piece:
                return
            head += piece
        self.heads.append(head.decode())
        if self.refusal:
            connection.sendall(self.refusal)
            return
        key = next(line.split(": ")[1] for line in self.heads[-1].split("\r\n") if line.startswith("Sec-WebSocket-Key"))
        connection.sendall(switching_head(key))
        forward(connection, TO.port, self.to)


def answering(answer: bytes, asked: list[bytes] | None = None) -> Serve:
    """Answer each request with these bytes."""

    def serve(connection: socket.socket) -> None:
        received = b""
        while b"\r\n\r\n" not in received or not received.endswith(b"}"):
            piece = connection.recv(64 * 1024)
            if not piece:
                return
            received += piece
        if asked is not None:
            asked.append(received)
        connection.sendall(answer)
        if answer.startswith(b"HTTP/1.1 "):
            connection.recv(1)  # as a server does that keeps connections open

    return serve


@contextmanager
def forwarded(serve: Serve) -> Iterator[tuple[str, ForwardingServer]]:
    """Yield the URL of a server that forwards to what `serve` answers, and the server."""
    with listening(serve) as behind:
        server = ForwardingServer(behind)
        with listening(server) as port:
            yield f"http://127.0.0.1:{port}", server


def credentials_of(folder: Path, url: str) -> Credentials:
    return load_credentials(write_kubeconfig(folder / "kubeconfig", url), None)


def post(credentials: Credentials, body: bytes = b"{}", **headers: str) -> PodAnswer:
    with PortForward(credentials, TO, {"Authorization": "Bearer t"}, Impersonation("jane")) as opened:
        return opened.post("/explain?limit=5", body, headers)


def test_a_request_reaches_the_port_and_its_answer_comes_back(tmp_path: Path) -> None:
    asked: list[bytes] = []
    with forwarded(answering(ANSWER, asked)) as (url, server):
        assert post(credentials_of(tmp_path, url), Kindred="x") == PodAnswer(200, b"{}")
    (request,) = asked
    assert request.startswith(b"POST /explain?limit=5 HTTP/1.1\r\nHost: localhost:8890\r\n")
    assert b"Kindred: x\r\n" in request
    assert b"Bearer" not in request, "the login is for the API server alone"
    (head,) = server.heads
    assert head.startswith("GET /api/v1/namespaces/kindred/pods/kindred-0/portforward?ports=8890 HTTP/1.1\r\n")
    for line in ("Authorization: Bearer t", "Impersonate-User: jane", "Sec-WebSocket-Protocol: v4.channel.k8s.io"):
        assert f"{line}\r\n" in head


def test_large_bodies_pass_both_ways(tmp_path: Path) -> None:
    body = b'"%s"}' % (b"x" * 300_000)
    answer = ANSWER.replace(b"Content-Length: 2", b"Content-Length: 300000").removesuffix(b"{}") + b"y" * 300_000
    asked: list[bytes] = []
    with forwarded(answering(answer, asked)) as (url, _):
        assert post(credentials_of(tmp_path, url), body).body == b"y" * 300_000
    assert asked[0].endswith(body)


def test_a_status_other_than_success_is_an_answer(tmp_path: Path) -> None:
    with forwarded(answering(ANSWER.replace(b"200 OK", b"404 Not Found"))) as (url, _):
        assert post(credentials_of(tmp_path, url)).status == 404


def test_a_refusal_of_the_api_server_is_its_status(tmp_path: Path) -> None:
    body = b'{"kind":"Status","code":403,"reason":"Forbidden","message":"no"}'
    with forwarded(answering(ANSWER)) as (url, server):
        server.refusal = b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        with pytest.raises(StatusError) as caught:
            post(credentials_of(tmp_path, url))
    assert (caught.value.code, caught.value.reason) == (403, "Forbidden")
    assert "port-forward to port 8890 of pod kindred/kindred-0" in str(caught.value)


def test_the_login_does_not_follow_a_redirect(tmp_path: Path) -> None:
    with forwarded(answering(ANSWER)) as (url, server), listening(answering(ANSWER)) as elsewhere:
        server.refusal = b"HTTP/1.1 302 Found\r\nLocation: ws://127.0.0.1:%d/\r\n\r\n" % elsewhere
        with pytest.raises(ApiError, match=r"[Rr]edirect"):
            post(credentials_of(tmp_path, url))


def test_a_port_on_which_nobody_listens_is_told_in_the_words_of_the_kubelet(tmp_path: Path) -> None:
    with forwarded(answering(ANSWER)) as (url, server):
        server.to = 1
        with pytest.raises(ConnectionFailedError, match=r"an error occurred forwarding 8890 -> 8890: .*refused"):
            post(credentials_of(tmp_path, url))


def test_a_server_that_cannot_be_reached_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConnectionFailedError, match=r"port-forward to port 8890 .*: Connection refused"):
        post(credentials_of(tmp_path, "http://127.0.0.1:1"))


@pytest.mark.parametrize("answer", [b"\x15\x03\x01\x00\x02\x02\x16", b""], ids=["an alert of TLS", "nothing"])
def test_a_port_that_does_not_speak_http_is_told_apart(tmp_path: Path, answer: bytes) -> None:
    with forwarded(answering(answer)) as (url, _), pytest.raises(NoHttpError):
        post(credentials_of(tmp_path, url))


def test_a_port_may_speak_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.make("server", "subjectAltName=DNS:kindred.kindred.svc")
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(authority.crt("server"), authority.key("server"))
    answer = answering(ANSWER)

    def serve(connection: socket.socket) -> None:
        try:
            with serving.wrap_socket(connection.dup(), server_side=True) as secured:
                answer(secured)
        except (OSError, ssl.SSLError):
            return

    trust = ssl.create_default_context(cafile=authority.crt())
    trust.verify_flags &= ~ssl.VERIFY_X509_STRICT
    with forwarded(serve) as (url, _):
        credentials = credentials_of(tmp_path, url)
        with PortForward(credentials, TO, {}) as opened:
            assert opened.post("/explain", b"{}", {}, trust, "kindred.kindred.svc").status == 200
        with PortForward(credentials, TO, {}) as opened, pytest.raises(ConnectionFailedError, match="certificate"):
            opened.post("/explain", b"{}", {}, trust, "another.svc")
        with pytest.raises(NoHttpError):
            post(credentials)


def test_it_goes_through_the_proxy_of_the_kubeconfig(tmp_path: Path) -> None:
    async def ask(url: str) -> list[str]:
        async with proxying() as proxy:
            through = {"proxy-url": f"http://127.0.0.1:{proxy.port}"}
            credentials = load_credentials(write_kubeconfig(tmp_path / "kubeconfig", url, cluster=through), None)
            assert await asyncio.to_thread(post, credentials) == PodAnswer(200, b"{}")
            return proxy.heads

    with forwarded(answering(ANSWER)) as (url, _):
        (head,) = asyncio.run(ask(url))
    assert head.startswith(f"CONNECT {url.removeprefix('http://')} HTTP/1.1\r\n")


def test_a_proxy_that_wants_tls_itself_is_refused(tmp_path: Path) -> None:
    through = {"proxy-url": "https://127.0.0.1:1"}
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:2", cluster=through)
    with pytest.raises(ConnectionFailedError, match="not possible through a proxy with https://"):
        post(load_credentials(kubeconfig, None))
