"""The client of commands for the admin port of a running service: options, trust, and errors in one line."""

import ssl
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NotRequired, TypeAlias, TypedDict, TypeVar

import click
import msgspec
from pydantic import ValidationError

from app.admin.access import CALLER_HEADER
from app.api_server.tls import ConfigurationError, PemSource, TlsSettings
from app.process.files import MAX_TOKEN_BYTES, read_file
from app.process.json_text import decode

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
_PATIENCE: Final = 10.0  # seconds
DEFAULT_URL: Final = "http://127.0.0.1:8890"
Query: TypeAlias = Mapping[str, str | int | Sequence[str]]
NOT_UNDERSTOOD: Final = "is that the admin port?"
FILE: Final = click.Path(path_type=Path, exists=True, dir_okay=False)


class Access(TypedDict):
    """Options for reaching the admin port. `cert_file` and `key_file` are for a port that wants a certificate."""

    url: str
    token_file: NotRequired[Path | None]
    caller_token_file: NotRequired[Path | None]
    ca_file: NotRequired[Path | None]
    cert_file: NotRequired[Path | None]
    key_file: NotRequired[Path | None]


class CannotAskError(Exception):
    """The admin port could not be reached, or rejected the request. The message is one line for people."""


class UnusableFileError(CannotAskError):
    """A file of an option cannot be read, or used."""


ACCESS_OPTIONS: Final = (
    click.option("--server", "url", metavar="URL", default=DEFAULT_URL, show_default=True, help="The admin port."),
    click.option("--token-file", type=FILE, help="File with the bearer token of the admin port."),
    click.option(
        "--caller-token-file",
        type=FILE,
        help="File with your own token of the Kubernetes API, which decides the names that you see.",
    ),
    click.option("--ca-file", type=FILE, help="Certificate authorities, PEM, of the service's certificate."),
)


def get_response(  # noqa: PLR0913  # a request, and who sends it for how long
    access: Access,
    method: str,
    path: str,
    params: Query | None = None,
    content: bytes | None = None,
    *,
    patience: float = _PATIENCE,
    not_understood: str = NOT_UNDERSTOOD,
) -> "httpx.Response":
    """Return the response, with any status. Raises CannotAskError if none arrives within `patience` seconds.

    `not_understood` ends the message about what speaks no HTTP there, or none that is expected.
    """
    import httpx  # noqa: PLC0415  # 4 MB, which a service imports this module without

    url = access["url"].rstrip("/") + path
    try:
        # Without a proxy of the environment: the admin port is near, most often on this machine.
        with httpx.Client(verify=_trust(access), timeout=patience, trust_env=False) as client:
            return client.request(method, url, params=params, content=content, headers=_login(access))
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        if _is_of_tls(error):
            hint = "the port speaks plain HTTP: http://" if "WRONG_VERSION_NUMBER" in str(error) else "see --ca-file"
            raise CannotAskError(f"{access['url']}: {error}; {hint}") from None
        raise CannotAskError(_no_service(access["url"], error)) from None
    except httpx.TimeoutException:
        raise CannotAskError(f"{access['url']}: no response within {patience:g} s; {not_understood}") from None
    except httpx.RemoteProtocolError as error:  # to plain HTTP, a port with TLS says nothing
        hint = "" if url.startswith("https:") else "does the port expect https://? Otherwise: "
        raise CannotAskError(f"{access['url']}: {str(error).rstrip('.')}; {hint}{not_understood}") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        why = str(error).rstrip(".") or type(error).__name__
        raise CannotAskError(f"{access['url']}: {why}; {not_understood}") from None


def understood(where: str, response: "httpx.Response", parse: Callable[[bytes], T], accepted: int = HTTPStatus.OK) -> T:
    """Return what a response says. Raises CannotAskError for a status that is neither a success nor `accepted`."""
    if not response.is_success and response.status_code != accepted:
        raise CannotAskError(f"{where}: {rejection_text(response)}")
    try:
        return parse(response.content)
    except (msgspec.MsgspecError, ValidationError):
        raise CannotAskError(f"{where}: {NOT_UNDERSTOOD}") from None


def _is_of_tls(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    return cause is not None


def _no_service(url: str, error: Exception) -> str:
    """Return the error of a refused connection, with remedies that the running command has options for."""
    reason = str(error).rpartition("] ")[2] or type(error).__name__  # without [Errno 111]
    context = click.get_current_context(silent=True)
    options = {parameter.name for parameter in context.command.params} if context is not None else set()
    steps = ""
    if "caller_token_file" in options:
        steps = ": start one with `kindred serve --demo`, name one by --server URL, "
        steps += (
            "use --snapshot FILE, or `kubectl kindred why POD`"
            if "snapshot" in options
            else "or forward its port: `kubectl -n kindred port-forward deploy/kindred 8890`"
        )
    return f"no service at {url.partition('://')[2]} ({reason}){steps}"


def rejection_text(response: "httpx.Response") -> str:
    """Return the response, in one line."""
    status = f"{response.status_code} {response.reason_phrase}"
    detail = members(response).get("detail")
    if response.status_code == HTTPStatus.UNAUTHORIZED or (
        response.status_code == HTTPStatus.FORBIDDEN and detail is None
    ):
        return f"{status}: --token-file has to hold the token of this port"
    if detail in {None, response.reason_phrase}:  # Starlette has no other words for a route that a port lacks
        return f"{status}; {NOT_UNDERSTOOD}"
    if isinstance(detail, list):  # the errors of FastAPI's validation
        detail = "; ".join(f"{each['loc'][-1]}: {each['msg']}" for each in detail)
    return f"{status}: {detail}"


def members(response: "httpx.Response") -> dict[str, Any]:
    """Return the members of a response that is a JSON object; none for any other response."""
    try:
        found = decode(response.content)
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _trust(access: Access) -> ssl.SSLContext | bool:
    if not access["url"].startswith("https:"):
        return False
    return trusting(access.get("ca_file"), access.get("cert_file"), access.get("key_file"))


def trusting(ca_file: Path | None, cert_file: Path | None = None, key_file: Path | None = None) -> ssl.SSLContext:
    """Return the TLS context of a client. Without `ca_file` it trusts the machine's. Raises UnusableFileError."""
    if (cert_file is None) != (key_file is None):
        raise UnusableFileError("--cert-file and --key-file go together")
    tls = TlsSettings(
        _pem("--ca-file", "authorities", ca_file),
        _pem("--cert-file", "certificate", cert_file),
        _pem("--key-file", "key", key_file),
    )
    try:
        return tls.context(tls.read())
    except ConfigurationError as error:
        raise UnusableFileError(str(error)) from None


def _pem(option: str, name: str, file: Path | None) -> PemSource | None:
    return None if file is None else PemSource(option, name, str(file))


def read_token(file: Path | None) -> str:
    """Return the contents of a file with a bearer token; empty without a file. Raises UnusableFileError."""
    try:
        return "" if file is None else read_file(file, MAX_TOKEN_BYTES).decode("ascii").strip()
    except OSError as error:
        raise UnusableFileError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UnusableFileError(f"{file}: not ASCII") from None


def _login(access: Access) -> dict[str, str]:
    token, caller = read_token(access.get("token_file")), read_token(access.get("caller_token_file"))
    headers = {"Authorization": f"Bearer {token}" if token else "", CALLER_HEADER: caller}
    return {name: value for name, value in headers.items() if value}
