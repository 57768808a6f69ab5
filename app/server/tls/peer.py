"""The names of a client, by its verified certificate."""

from collections.abc import Mapping
from typing import Any


def peer_names(certificate: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the common names and DNS names of a certificate, as returned by `SSLObject.getpeercert`."""
    common = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    return (*common, *(value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"))
