"""`kindred debug`: asks the admin port of a running service."""

import re
import ssl
import sys
from http import HTTPStatus
from pathlib import Path
from typing import Final, TypedDict, Unpack

import click
import httpx

from app.debugged_pods import MOST_SECONDS

_PATIENCE: Final = 10.0  # seconds
_DURATION: Final = re.compile(r"(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,6})s)?")
_POD: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_UNITS: Final = (3600, 60, 1)
_NOT_UNDERSTOOD: Final = "is that the admin port?"
_FILE: Final = click.Path(path_type=Path, exists=True, dir_okay=False)


class Access(TypedDict):
    """The options that say how the admin port is reached."""

    url: str
    token_file: Path | None
    ca_file: Path | None
    cert_file: Path | None
    key_file: Path | None


class CannotAskError(Exception):
    """The admin port could not be asked, or has refused; the message is for people."""


def seconds_of(duration: str) -> float:
    """Return the seconds of a duration such as 90s, 10m or 1h30m. Raises ValueError, which names the rule."""
    matched = _DURATION.fullmatch(duration)
    seconds = (
        sum(int(number or 0) * unit for number, unit in zip(matched.groups(), _UNITS, strict=True)) if matched else 0
    )
    if not 0 < seconds <= MOST_SECONDS:
        raise ValueError(f"{duration!r}: expected a duration such as 90s, 10m or 1h30m, of 24h at most")
    return seconds


@click.group("debug")
def debug_group() -> None:
    """Look closer at what a running service does."""


@debug_group.command("pod")
@click.argument("pod", metavar="NAMESPACE/NAME")
@click.option("--for", "duration", default="10m", show_default=True, help="How long, such as 90s, 10m or 1h30m.")
@click.option("--off", is_flag=True, help="Log them no more.")
@click.option("--url", default="http://127.0.0.1:8890", show_default=True, help="The admin port.")
@click.option("--token-file", type=_FILE, help="File with the bearer token of the admin port.")
@click.option("--ca-file", type=_FILE, help="Authorities, PEM, of the service's certificate.")
@click.option("--cert-file", type=_FILE, help="Client certificate, PEM.")
@click.option("--key-file", type=_FILE, help="Key of the client certificate, PEM.")
def pod_command(pod: str, duration: str, *, off: bool, **access: Unpack[Access]) -> None:
    """Log every question about a pod in full for a while, whatever the level of the log is.

    The lines hold the questions and the answers, so the pod's spec, too; other pods stay as they are. Each replica is
    asked by itself.
    """
    try:
        if off:
            _asked(access, "DELETE", _path(pod))
            click.echo(f"Questions about {pod} are not logged in full any more.")
            return
        until = _asked(access, "PUT", _path(pod), seconds_of(duration))
    except (CannotAskError, ValueError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
    click.echo(
        f"Every question about {pod} is logged in full until {until}, by the logger kindred.debug_pod at level debug:\n"
        "the request and the answer (8 KiB of each), why nodes failed, and which have the highest scores."
    )


def _path(pod: str) -> str:
    if not _POD.fullmatch(pod):
        raise ValueError(f"{pod!r}: expected NAMESPACE/NAME")
    return f"/debug/pods/{pod}"


def _asked(access: Access, method: str, path: str, seconds: float | None = None) -> str:
    """Return until when the pod is logged; empty where it is not. Raises CannotAskError."""
    url = access["url"].rstrip("/") + path
    params = {} if seconds is None else {"for": f"{seconds:g}"}
    try:
        # Not by a proxy of the environment: the admin port is near, most often on this very machine.
        with httpx.Client(verify=_trust(access), timeout=_PATIENCE, trust_env=False) as client:
            response = client.request(method, url, params=params, headers=_login(access))
    except OSError as error:  # a file
        raise CannotAskError(f"{error.filename or url}: {error.strerror or error}") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise CannotAskError(f"{access['url']}: {str(error) or type(error).__name__}; {_NOT_UNDERSTOOD}") from None
    if not response.is_success:
        raise CannotAskError(f"{access['url']}: {_refusal(response)}")
    if response.status_code == HTTPStatus.NO_CONTENT:
        return ""
    try:
        return str(response.json()["until"])
    except (ValueError, TypeError, KeyError):
        raise CannotAskError(f"{access['url']}: {_NOT_UNDERSTOOD}") from None


def _trust(access: Access) -> ssl.SSLContext | bool:
    if not access["url"].startswith("https:"):
        return False
    context = ssl.create_default_context(cafile=access["ca_file"])
    if access["cert_file"] is not None:
        context.load_cert_chain(access["cert_file"], access["key_file"])
    return context


def _login(access: Access) -> dict[str, str]:
    if access["token_file"] is None:
        return {}
    return {"Authorization": f"Bearer {access['token_file'].read_text('utf-8').strip()}"}


def _refusal(response: httpx.Response) -> str:
    """Return what was answered, in one line."""
    status = f"{response.status_code} {response.reason_phrase}"
    if response.status_code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return f"{status}: give --token-file, or --cert-file with --key-file"
    try:
        detail = response.json()["detail"]
    except (ValueError, TypeError, KeyError):
        return f"{status}; {_NOT_UNDERSTOOD}"
    if isinstance(detail, list):  # of what FastAPI found wrong
        detail = "; ".join(str(each.get("msg")) for each in detail)
    return f"{status}: {detail}"
