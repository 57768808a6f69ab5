"""The kubelet's side of a port-forward over a websocket (v4.channel.k8s.io), between an upgraded connection and a port.

Source: k8s.io/kubelet pkg/cri/streaming/portforward/websocket.go; RFC 6455.
"""

import base64
import hashlib
import socket
import struct
import threading
from contextlib import suppress
from typing import Final

SUBPROTOCOL: Final = "v4.channel.k8s.io"
_GUID: Final = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_BINARY, _CLOSE = 2, 8
_DATA, _ERROR = b"\x00", b"\x01"


def switching_head(key: str) -> bytes:
    """Return the head of the response that accepts the upgrade, for the Sec-WebSocket-Key of the request."""
    accepted = base64.b64encode(hashlib.sha1(f"{key}{_GUID}".encode()).digest()).decode()  # noqa: S324 - as RFC 6455 has it
    lines = [
        "HTTP/1.1 101 Switching Protocols",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Accept: {accepted}",
        f"Sec-WebSocket-Protocol: {SUBPROTOCOL}",
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def forward(websocket: socket.socket, port: int, to: int) -> None:
    """Forward a client's data for `port` to the port `to` of this machine, until either side ends."""
    for channel in (_DATA, _ERROR):
        _send(websocket, channel + struct.pack("<H", port))
    try:
        target = socket.create_connection(("127.0.0.1", to), 5)
    except OSError as error:
        _send(websocket, _ERROR + f"an error occurred forwarding {port} -> {port}: {error}".encode())
        _send(websocket, b"", _CLOSE)
        while _received(websocket) is not None:
            pass
        return
    target.settimeout(None)
    back = threading.Thread(target=_relay_back, args=(target, websocket))
    back.start()
    try:
        while (frame := _received(websocket)) is not None:
            if frame[:1] == _DATA:
                target.sendall(frame[1:])
    except OSError:
        pass
    finally:
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)
        back.join()
        target.close()


def _relay_back(target: socket.socket, websocket: socket.socket) -> None:
    with suppress(OSError):
        while data := target.recv(64 * 1024):
            _send(websocket, _DATA + data)
    with suppress(OSError):  # a port that resets the connection ends it, too
        _send(websocket, b"", _CLOSE)


def _send(websocket: socket.socket, payload: bytes, opcode: int = _BINARY) -> None:
    length = len(payload)
    if length < 126:
        size = bytes([length])
    elif length <= 0xFFFF:
        size = struct.pack(">BH", 126, length)
    else:
        size = struct.pack(">BQ", 127, length)
    websocket.sendall(bytes([0x80 | opcode]) + size + payload)


def _received(websocket: socket.socket) -> bytes | None:
    """Return the payload of the next binary frame. None at the end."""
    while True:
        head = _exactly(websocket, 2)
        if head is None or head[0] & 0x0F == _CLOSE:
            return None
        length = head[1] & 0x7F
        if length >= 126:
            more = _exactly(websocket, 2 if length == 126 else 8) or b"\0"
            length = int.from_bytes(more, "big")
        mask = _exactly(websocket, 4)
        masked = _exactly(websocket, length)
        if mask is None or masked is None:
            return None
        if head[0] & 0x0F == _BINARY:
            return bytes(byte ^ mask[place % 4] for place, byte in enumerate(masked))


def _exactly(connection: socket.socket, length: int) -> bytes | None:
    data = b""
    while len(data) < length:
        try:
            piece = connection.recv(length - len(data))
        except ConnectionError:
            return None
        if not piece:
            return None
        data += piece
    return data
