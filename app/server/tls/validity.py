"""The expiry of a certificate. The standard library returns it only for a peer's certificate, not for a file."""

import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

_END: Final = "-----END CERTIFICATE-----"
_VERSION: Final = 0xA0  # [0] EXPLICIT, which certificates of version 1 do not have
_UTC_TIME: Final = 0x17
_LONG_FORM: Final = 0x80


def not_after(pem: bytes) -> float:
    """Return the time, in seconds since 1970, at which the first certificate in PEM expires. Raises ValueError.

    RFC 5280, 4.1: Certificate = { tbsCertificate = { [version], serial, signature, issuer, validity = { from, to } ...
    """
    text = pem.decode("ascii", "ignore")
    first = text[text.index("-----BEGIN CERTIFICATE-----") : text.index(_END) + len(_END)]
    try:
        _, certificate = next(_elements(ssl.PEM_cert_to_DER_cert(first)))
        _, to_be_signed = next(_elements(certificate))
        fields = [field for field in _elements(to_be_signed) if field[0] != _VERSION]
        _, (tag, end) = _elements(fields[3][1])
    except (IndexError, StopIteration):
        raise ValueError("not a certificate") from None
    written = end.decode("ascii")
    if tag == _UTC_TIME:  # two digits for the year: 50 is 1950
        written = ("19" if written >= "5" else "20") + written
    return datetime.strptime(written, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def _elements(der: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield tag and content of successive elements in DER."""
    at = 0
    while at < len(der):
        tag, length = der[at], der[at + 1]
        at += 2
        if length >= _LONG_FORM:
            size = length - _LONG_FORM
            length = int.from_bytes(der[at : at + size], "big")
            at += size
        yield tag, der[at : at + length]
        at += length
