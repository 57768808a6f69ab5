"""The login of a request: an Authorization header, a client certificate, or both, with their source."""

import base64
from pathlib import Path
from typing import Final, Protocol

import msgspec

from app.api_server.credential_errors import ConfigurationError, CredentialsError
from app.api_server.pem import PemSource
from app.files import MAX_TOKEN_BYTES, read_file

_REREAD_AFTER: Final = (
    60.0  # seconds; client-go NewCachedFileTokenSource: well below the validity of a token after its rotation
)


class Login(msgspec.Struct, frozen=True, gc=False):
    """A login."""

    authorization: str = ""
    """Authorization header. Empty: none."""
    certificate: PemSource | None = None
    """Client certificate of a plugin, with `key`. None: the configured certificate is used."""
    key: PemSource | None = None
    renew_at: float | None = None
    """Time at which the login must be renewed, in seconds of the wall clock. None: it does not expire."""


class LoginSource(Protocol):
    """The source of a login. `get` blocks, so call it in a thread."""

    def configured(self) -> Login:
        """Return the first login. Raises ConfigurationError."""

    def get(self) -> Login:
        """Return a new login. Raises CredentialsError."""

    def is_due(self, login: Login, age: float) -> bool:
        """Return whether a login of this age (seconds) must be renewed."""


class FixedLogin(msgspec.Struct, frozen=True):
    """A login in the configuration itself, or none."""

    login: Login = Login()

    def configured(self) -> Login:
        """Return the login."""
        return self.login

    def get(self) -> Login:
        """Return the login."""
        return self.login

    def is_due(self, login: Login, age: float) -> bool:  # noqa: ARG002  # the protocol's
        """Return False: the login never changes."""
        return False


class TokenFile(msgspec.Struct, frozen=True):
    """A file with a bearer token that another process keeps fresh, such as the kubelet in a pod."""

    path: str
    where: str
    """The configuration that names the file, for messages."""

    def configured(self) -> Login:
        """Read the file, which must exist at the start. Raises ConfigurationError."""
        try:
            return self.get()
        except CredentialsError as error:
            raise ConfigurationError(str(error)) from None

    def get(self) -> Login:
        """Read the file. Raises CredentialsError."""
        try:
            return bearer(read_file(Path(self.path), MAX_TOKEN_BYTES).decode("ascii", "replace").strip())
        except OSError as error:
            problem = error.strerror
        except ValueError as error:
            problem = str(error)
        raise CredentialsError(f"{self.where}: token file {self.path}: {problem}")

    def is_due(self, login: Login, age: float) -> bool:  # noqa: ARG002  # the protocol's
        """Return whether it is time to read the file again."""
        return age >= _REREAD_AFTER


def bearer(token: str) -> Login:
    """Return the login with a bearer token. Raises ValueError for a token that is not valid in a header."""
    if not token:
        raise ValueError("empty")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError("not a token")  # without the value, which may be a secret
    return Login(f"Bearer {token}")


def basic(username: str, password: str) -> Login:
    """Return the login with a name and a password."""
    return Login("Basic " + base64.b64encode(f"{username}:{password}".encode()).decode())
