"""The client of commands for the admin port of a running service: options, trust, and errors in one line."""

import ssl
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, TypeAlias, TypedDict

import click
import httpx
import msgspec

from app.admin.access import CALLER_HEADER
from app.api_server.pem import load_authorities
from app.process.files import MAX_TOKEN_BYTES, read_file
from app.process.json_text import decode

_PATIENCE: Final = 10.0  # seconds
DEFAULT_URL: Final = "http://127.0.0.1:8890"
Query: TypeAlias = Mapping[str, str | int | Sequence[str]]
NOT_UNDERSTOOD: Final = "is that the admin port?"
_FILE: Final = click.Path(path_type=Path, exists=True, dir_okay=False)


class Access(TypedDict):
    """Options for reaching the admin port."""

    url: str
    token_file: Path | None
    caller_token_file: Path | None
    ca_file: Path | None


class CannotAskError(Exception):
    """The admin port could not be reached, or rejected the request. The message is one line for people."""


ACCESS_OPTIONS: Final = (
    click.option("--server", "url", metavar="URL", default=DEFAULT_URL, show_default=True, help="The admin port."),
    click.option("--token-file", type=_FILE, help="File with the bearer token of the admin port."),
    click.option(
        "--caller-token-file",
        type=_FILE,
        help="File with your own token of the Kubernetes API, which decides the names that you see.",
    ),
    click.option("--ca-file", type=_FILE, help="Certificate authorities, PEM, of the service's certificate."),
)


def asked(  # noqa: PLR0913  # a request, and who sends it for how long
    access: Access,
    method: str,
    path: str,
    params: Query | None = None,
    content: bytes | None = None,
    *,
    patience: float = _PATIENCE,
) -> httpx.Response:
    """Return the response, with any status. Raises CannotAskError if none arrives within `patience` seconds."""
    url = access["url"].rstrip("/") + path
    try:
        # Without a proxy of the environment: the admin port is near, most often on this machine.
        with httpx.Client(verify=_trust(access), timeout=patience, trust_env=False) as client:
            return client.request(method, url, params=params, content=content, headers=_login(access))
    except OSError as error:  # of a file
        raise CannotAskError(f"{error.filename or url}: {error.strerror or error}") from None
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        if _is_of_tls(error):
            raise CannotAskError(f"{access['url']}: {error}; see --ca-file") from None
        raise CannotAskError(_no_service(access["url"], error)) from None
    except httpx.TimeoutException:
        raise CannotAskError(f"{access['url']}: no response within {patience:g} s; {NOT_UNDERSTOOD}") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise CannotAskError(f"{access['url']}: {str(error) or type(error).__name__}; {NOT_UNDERSTOOD}") from None


def _is_of_tls(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    return cause is not None


def _no_service(url: str, error: Exception) -> str:
    """Return the error of a refused connection, with remedies that the running command has options for."""
    reason = str(error).rpartition("] ")[2] or type(error).__name__  # without [Errno 111]
    steps = ["start one with `kindred serve --demo`", "name one by --server URL"]
    if "snapshot" in _options():
        steps += ["use --snapshot FILE", "or `kubectl kindred why POD`"]
    else:
        steps.append("or forward its port: `kubectl -n kindred port-forward deploy/kindred 8890`")
    return f"no service at {url.partition('://')[2]} ({reason}): {', '.join(steps)}"


def refusal(response: httpx.Response) -> str:
    """Return the response, in one line."""
    status = f"{response.status_code} {response.reason_phrase}"
    detail = members(response).get("detail")
    if response.status_code == HTTPStatus.UNAUTHORIZED or (
        response.status_code == HTTPStatus.FORBIDDEN and detail is None
    ):
        return f"{status}: give --token-file"
    if detail is None:
        return f"{status}; {NOT_UNDERSTOOD}"
    if isinstance(detail, list):  # the errors of FastAPI's validation
        detail = "; ".join(f"{each['loc'][-1]}: {each['msg']}" for each in detail)
    return f"{status}: {detail}"


def _options() -> set[str | None]:
    """Return the names of the options of the command that runs."""
    return {parameter.name for parameter in click.get_current_context().command.params}


def members(response: httpx.Response) -> dict[str, Any]:
    """Return the members of a response that is a JSON object; none for any other response."""
    try:
        found = decode(response.content)
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _trust(access: Access) -> ssl.SSLContext | bool:
    if not access["url"].startswith("https:"):
        return False
    return trusting(access["ca_file"])


def trusting(ca_file: Path | None) -> ssl.SSLContext:
    """Return the TLS context of a client; without a file, it trusts the authorities of the machine. Raises OSError."""
    if ca_file is None:
        context = ssl.create_default_context()
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        load_authorities(context, ca_file)
    # The default of Python 3.13 rejects authorities that lack an extension of RFC 5280. kube-scheduler, curl and
    # earlier releases of Python accept them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _token(file: Path) -> str:
    return read_file(file, MAX_TOKEN_BYTES).decode().strip()


def _login(access: Access) -> dict[str, str]:
    token, caller = access["token_file"], access["caller_token_file"]
    of_port = {} if token is None else {"Authorization": f"Bearer {_token(token)}"}
    of_caller = {} if caller is None else {CALLER_HEADER: _token(caller)}
    return {**of_port, **of_caller}
