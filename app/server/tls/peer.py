"""Who a client is, by the certificate that it has shown and that was verified."""

from collections.abc import Mapping
from typing import Any, Final

CLIENT_NAMES: Final = "client_names"
"""Key of the state of a request: the names in the certificate that the client has shown, where it has shown one."""


def peer_names(certificate: Mapping[str, Any]) -> tuple[str, ...]:
    """Return common names and DNS names of a certificate, in the form that `SSLObject.getpeercert` gives it."""
    common = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    return (*common, *(value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"))
