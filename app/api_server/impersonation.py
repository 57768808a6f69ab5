"""Impersonation of another user in requests: `--as` and `--as-group` of kubectl."""

from collections.abc import Sequence
from typing import Final

import msgspec

from app.api_server.credential_errors import ConfigurationError


class Impersonation(msgspec.Struct, frozen=True):
    """A user and groups to impersonate. An empty user means no impersonation."""

    user: str = ""
    groups: Sequence[str] = ()

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return the headers of a request, one for each group. Raises ConfigurationError.

        Source: k8s.io/client-go transport/round_trippers.go (impersonatingRoundTripper).
        """
        if not self.user:
            if self.groups:
                raise ConfigurationError("--as-group: needs --as, the user to be impersonated with these groups")
            return ()
        for option, value in (("--as", self.user), *(("--as-group", group) for group in self.groups)):
            if not value or not value.isascii() or not value.isprintable():
                raise ConfigurationError(f"{option}: {value!r} cannot be the value of a header")
        return (("Impersonate-User", self.user), *(("Impersonate-Group", group) for group in self.groups))


NOBODY_ELSE: Final = Impersonation()
"""No impersonation: requests have the identity of the login."""
