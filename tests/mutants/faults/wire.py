"""Faults of the wire: framing, limits, connections, TLS, and who may use the admin port."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
    Fault(
        id="bad-request-for-a-large-body",
        breaks="An endless body is answered 400, not 413.",
        old="self._refuse(Refusal.LARGE_BODY, HTTPStatus.REQUEST_ENTITY_TOO_LARGE,",
        new="self._refuse(Refusal.LARGE_BODY, HTTPStatus.BAD_REQUEST,",
        tests=("test_request_progress.py", "test_bounded_protocol.py"),
    ),
    Fault(
        id="last-chunk-framing-not-counted",
        breaks="A body in chunks may end with more framing than is allowed.",
        old="        if self._progress.chunked and not self._progress.body_fits_at_end():\n",
        new="        if not self._progress.chunked and not self._progress.body_fits_at_end():\n",
        tests=("test_bounded_protocol.py", "test_bounded_reading.py", "test_request_progress.py"),
    ),
    Fault(
        id="trailers-cost-nothing",
        breaks="Headers behind a body count only for their bytes.",
        old="        self._framing += _FIELD_COST\n",
        new="",
        tests=("test_request_progress.py", "test_bounded_protocol.py"),
    ),
    Fault(
        id="header-cost-counted-once",
        breaks="A head that arrives in several pieces may have any number of short headers.",
        old="_FIELD_COST * (fields - self._fields)",
        new="(_FIELD_COST * fields if not self._fields else 0)",
        tests=("test_request_progress.py", "test_bounded_protocol.py"),
    ),
    Fault(
        id="end-across-pieces-missed",
        breaks="The end of a head whose empty line is cut behind its first byte is not seen.",
        old="            for count in (1, 2, 3):\n",
        new="            for count in (1, 2):\n",
        tests=("test_unread.py", "test_bounded_reading.py"),
    ),
    Fault(
        id="coded-body-read-as-plain",
        breaks="A body that is compressed before it is chunked is read as it came.",
        old='if version != "1.1" or value.strip().lower() != b"chunked":',
        new='if version != "1.1" or not value.strip().lower().endswith(b"chunked"):',
        tests=("test_request_framing.py",),
    ),
    Fault(
        id="one-connection-too-many",
        breaks="A port takes one connection more than KINDRED_MAX_CONNECTIONS.",
        old="return self.open >= self.limits.max_connections",
        new="return self.open > self.limits.max_connections",
        tests=("test_closed_connections.py", "test_listener.py", "test_bounded_protocol.py"),
    ),
    Fault(
        id="handshakes-not-counted",
        breaks="Connections that never finish their TLS handshake are beyond the limit.",
        old="return len(self.connections) + len(self.beginning)",
        new="return len(self.connections)",
        tests=("test_listener.py", "test_connection_collector.py", "test_bounded_protocol.py"),
    ),
    Fault(
        id="slow-client-keeps-its-answer",
        breaks="A client that does not take its answer is never cut off.",
        old="        elif self.phase in {Phase.TAKING, Phase.ANSWERING} or self.flow.write_paused:\n",
        new="        elif self.phase is Phase.TAKING:\n",
        tests=("test_bounded_protocol.py", "test_large_answers.py"),
    ),
    Fault(
        id="bytes-held-for-ever",
        breaks="The bytes of answered requests count as held, until every request is shed.",
        old="        self.bytes_held -= size\n",
        new="",
        tests=("test_admission.py", "test_verb_protocol.py", "test_shedding.py"),
    ),
    Fault(
        id="largest-body-refused",
        breaks="A body of exactly KINDRED_MAX_BODY_BYTES is refused.",
        old="if self.size > self._max_bytes:",
        new="if self.size >= self._max_bytes:",
        tests=("test_verb_protocol.py", "test_extender.py", "test_request_body.py", "test_verb_endpoint.py"),
    ),
    Fault(
        id="http-1-0-kept-alive",
        breaks="A connection of HTTP/1.0 is kept open after its response.",
        old='protocol.http_version != "1.0" and protocol.parser.should_keep_alive()',
        new="protocol.parser.should_keep_alive()",
        tests=("test_verb_protocol.py", "test_request_framing.py"),
    ),
    Fault(
        id="renewed-expired-authority-refused",
        breaks="New client authorities are not taken while the certificate, long expired, stays the same.",
        old="if material.certificate != self._material.certificate and end <= self._wall_clock():",
        new="if end <= self._wall_clock():",
        tests=("test_reloaded.py",),
    ),
    Fault(
        id="end-of-the-first-certificate-told",
        breaks="The metric of the certificate's end stays that of the first certificate.",
        old="self.context.current, self.not_after, self._material = context, end, material",
        new="self.context.current, self._material = context, material",
        tests=("test_reloaded.py",),
    ),
    Fault(
        id="half-replaced-secret-taken",
        breaks="A Secret that is replaced between two files gives a certificate and the key of another.",
        old="            if again == material:\n                break\n            material = again\n",
        new="            break\n",
        tests=("test_server_context.py", "test_reloaded.py"),
    ),
    Fault(
        id="empty-token-opens-the-admin-port",
        breaks="An empty bearer token is accepted while the token's file is empty.",
        old="return bool(self._token) and hmac.compare_digest(given, self._token)",
        new="return hmac.compare_digest(given, self._token)",
        tests=("test_admin_auth.py",),
    ),
    Fault(
        id="open-path-open-for-every-method",
        breaks="Anybody may POST to a path that only GET is open for.",
        old='if scope["type"] == "http" and scope["method"] in {"GET", "HEAD"} and scope["path"] in self._open_paths:',
        new='if scope["type"] == "http" and scope["path"] in self._open_paths:',
        tests=("test_admin_auth.py",),
    ),
    Fault(
        id="same-site-taken-for-same-origin",
        breaks="A page of another port of the machine may use the admin port.",
        old='_OURS: Final = frozenset({"same-origin", "none"})',
        new='_OURS: Final = frozenset({"same-origin", "same-site", "none"})',
        tests=("test_foreign_pages.py",),
    ),
)
