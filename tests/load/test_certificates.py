"""Replaced certificates, and a client that stays connected."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from app.server.tls.peer import peer_names
from tests.load.certificates import CLIENT_NAME, Certificates


@contextmanager
def served(certificates: Certificates) -> Iterator[socket.socket]:
    """Serve one connection with what the settings name, and give the client's side of it."""
    settings = certificates.settings
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_verify_locations(settings["KINDRED_TLS_CLIENT_CA_FILE"])
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(settings["KINDRED_TLS_CERT_FILE"], settings["KINDRED_TLS_KEY_FILE"])
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with context.wrap_socket(connection, server_side=True) as secured:
                secured.sendall("".join(peer_names(secured.getpeercert() or {})).encode())

        thread = threading.Thread(target=serve)
        thread.start()
        with closing(socket.create_connection(listening.getsockname())) as connection:
            yield connection
        thread.join()


def serial_number(certificates: Certificates) -> str:
    """Connect as a scheduler; give the serial number of the certificate that the server shows."""
    with (
        served(certificates) as connection,
        certificates.client_tls().wrap_socket(connection, server_hostname="127.0.0.1") as secured,
    ):
        assert secured.recv(100).decode() == CLIENT_NAME
        return str((secured.getpeercert() or {})["serialNumber"])


def test_a_client_trusts_each_certificate_and_each_is_another(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    first = serial_number(certificates)
    certificates.rotate()
    assert first != serial_number(certificates)
    assert certificates.rotations == 1


def test_certificate_and_key_change_at_once(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    files = [Path(certificates.settings[f"KINDRED_TLS_{kind}_FILE"]) for kind in ("CERT", "KEY")]
    folders = {file.resolve().parent for file in files}
    certificates.rotate()
    assert len(folders) == 1
    assert len(folders | {file.resolve().parent for file in files}) == 2
