"""A stand-in for kubectl, which forwards a port of this machine, or complains. Run as `kubectl port-forward ...`.

The files beside it say what it does: `to` has the port that it forwards to, `complaint` what it prints and ends with,
and `asked` gets its arguments.
"""

import socket
import sys
import threading
import time
from pathlib import Path

HERE = Path(sys.argv[0]).parent


def main() -> None:
    """Forward each connection to the port, as kubectl: it prints an error if nobody listens there."""
    with (HERE / "asked").open("a") as requested:
        requested.write(" ".join(sys.argv[1:]) + "\n")
    complaint = HERE / "complaint"
    if complaint.exists():
        sys.exit(complaint.read_text())
    to = int((HERE / "to").read_text())
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(f"Forwarding from 127.0.0.1:{server.getsockname()[1]} -> 8890", flush=True)  # noqa: T201  # as kubectl
        while True:
            connection, _ = server.accept()
            try:
                target = socket.create_connection(("127.0.0.1", to))
            except OSError as error:
                print(f"an error occurred forwarding: {error}", file=sys.stderr, flush=True)  # noqa: T201  # as kubectl
                connection.close()
                time.sleep(60)
            for one, other in ((connection, target), (target, connection)):
                threading.Thread(target=_relay, args=(one, other), daemon=True).start()


def _relay(one: socket.socket, other: socket.socket) -> None:
    try:
        while data := one.recv(65536):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)
    except OSError:
        for each in (one, other):
            each.close()


if __name__ == "__main__":
    main()
