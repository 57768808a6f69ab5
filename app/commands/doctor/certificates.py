"""Certificates, read with the standard library: their validity, and whether a client accepts them."""

import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from app.api_server.pem import load_identity

_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_LONG_FORM: Final = 0x80


class Validity(NamedTuple):
    """The period in which a certificate is valid."""

    not_before: datetime
    not_after: datetime


def validities(pem: bytes) -> list[Validity]:
    """Return the validity of each certificate of a text. Raises ValueError if there is none, or a broken one."""
    text = pem.decode("ascii", "ignore")
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    blocks = [begin + part.partition(end)[0] + end for part in text.split(begin)[1:]]
    if not blocks:
        raise ValueError("no certificate in PEM")
    try:
        return [_validity(ssl.PEM_cert_to_DER_cert(block)) for block in blocks]
    except (ValueError, IndexError, StopIteration):
        raise ValueError("a certificate that cannot be read") from None


def _validity(der: bytes) -> Validity:
    """Find TBSCertificate.validity: RFC 5280, 4.1."""
    _, certificate = next(_elements(der))
    _, to_be_signed = next(_elements(certificate))
    fields = [content for tag, content in _elements(to_be_signed) if tag != _VERSION]
    begin, end = _elements(fields[3])  # after serialNumber, signature and issuer
    return Validity(_time(*begin), _time(*end))


def _elements(der: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield tag and content of each element of DER."""
    position = 0
    while position < len(der):
        tag, length = der[position], der[position + 1]
        position += 2
        if length & _LONG_FORM:
            size = length & ~_LONG_FORM
            length = int.from_bytes(der[position : position + size], "big")
            position += size
        yield tag, der[position : position + length]
        position += length


def _time(tag: int, content: bytes) -> datetime:
    form = "%y%m%d%H%M%SZ" if tag == _UTC_TIME else "%Y%m%d%H%M%SZ"
    return datetime.strptime(content.decode("ascii"), form).replace(tzinfo=UTC)


def verification_problem(authority: bytes, certificate: Path, key: Path, host: str) -> str:
    """Run a handshake of a client that trusts the authority with a server; return its error, or nothing.

    Raises OSError and ssl.SSLError for files that cannot be used.
    """
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_identity(serving, certificate, key)
    asking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    asking.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as in Go
    asking.load_verify_locations(cadata=authority.decode("ascii", "ignore"))
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = asking.wrap_bio(to_client, to_server, server_hostname=host)
    server = serving.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):  # TLS 1.2 takes two rounds
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                return error.verify_message.rstrip(".")
    return ""
