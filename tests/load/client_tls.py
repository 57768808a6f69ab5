"""TLS of a simulated scheduler. The image of the load test has of the tests only bench and load, so this is here."""

import ssl
from pathlib import Path


def client_tls(authority: Path | str, certificate: Path | str, key: Path | str) -> ssl.SSLContext:
    """Return the TLS of a client that trusts only one authority, and sends a certificate, unless it is empty."""
    # From Python 3.13 on, ssl.create_default_context rejects an authority with as few extensions as that of the tests.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority)
    if certificate:
        context.load_cert_chain(certificate, key or None)
    return context
