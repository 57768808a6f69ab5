"""The types of settings: how their values are read from a file, the environment and flags."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_settings import NoDecode

from app.process.json_text import encode
from core.releases.release import RELEASES

AUTO: Final = "auto"
_LARGEST_PORT: Final = 65535
_RELEASES: Final = (AUTO, *map(str, RELEASES))


def _names(value: object) -> object:
    """Read a list of names from the text of a variable or a flag, separated by commas."""
    if isinstance(value, str):
        return tuple(name for part in value.split(",") if (name := part.strip()))
    return tuple(value) if isinstance(value, list) else value


def _json_text(value: object) -> object:
    """Return the JSON text of a mapping from the file, as a variable has it. Other values stay as they are."""
    try:
        return encode(value).decode() if isinstance(value, Mapping) else value
    except TypeError:
        raise ValueError("a value has no JSON form") from None


def _joined(value: object) -> object:
    """Return the text of a list from the file, as a variable has it. Other values stay as they are."""
    return ",".join(map(str, value)) if isinstance(value, list) else value


def _release(value: object) -> str:
    """Read the name of a release. YAML reads 1.36 as a number."""
    text = str(value)
    if text not in _RELEASES:
        raise ValueError(f"expected one of {', '.join(_RELEASES)}")
    return text


def _gates(value: object) -> object:
    """Read feature gates from the text of a variable or a flag, in the format of kube-scheduler's `--feature-gates`."""
    if not isinstance(value, str):
        return value
    gates: dict[str, str] = {}
    for part in filter(None, map(str.strip, value.split(","))):
        name, sign, switch = part.partition("=")
        if not sign:
            raise ValueError(f"{part}: expected NAME=true or NAME=false")
        gates[name.strip()] = switch.strip()
    return gates


class Address(NamedTuple):
    """A host, and a port of it. Port 0 is any free one."""

    host: str
    port: int


def split_address(text: str) -> Address:
    """Return the parts of HOST:PORT. An IPv6 address is in brackets. Raises ValueError."""
    host, _, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not bare or (":" in bare) == (bare == host) or not port.isdecimal() or int(port) > _LARGEST_PORT:
        raise ValueError("expected HOST:PORT, such as 127.0.0.1:8888 or [::1]:8888")
    return Address(bare, int(port))


def _address(text: str) -> str:
    split_address(text)
    return text


def _file(value: object) -> object:
    return None if value == "" else value  # a variable that is set to nothing


def _url(value: str) -> str:
    """Check the URL of a server. No error repeats it, because a URL may have a password.

    `@` and `%` are errors wherever they may be part of a user and a password, also in a URL that is not well-formed.
    """
    if not value:
        return value
    try:
        parts = urlsplit(value)
        is_url = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # its text quotes the URL
        is_url = False
    if "@" in value:
        raise ValueError("a URL must have no user and no password (@): a token has a file or a variable of its own")
    if "?" in value or "#" in value:
        raise ValueError("a URL must have no query and no fragment: a token has a file or a variable of its own")
    if not is_url or "%" in parts.netloc or "\\" in value or " " in value or not value.isprintable():
        raise ValueError("expected a URL such as https://HOST:PORT")
    return value


# The JSON schemas of types that a file may have in more than one form.
_LIST: Final = WithJsonSchema({"type": ["array", "string"], "items": {"type": "string"}})
_OBJECT: Final = WithJsonSchema({"type": ["object", "string"]})
_SWITCHES: Final = WithJsonSchema({"type": ["object", "string"], "additionalProperties": {"type": "boolean"}})
_RELEASE: Final = WithJsonSchema({"enum": [*_RELEASES, *(float(str(each)) for each in RELEASES)]})

Names: TypeAlias = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names), _LIST]
Profile: TypeAlias = Annotated[str, BeforeValidator(_joined), _LIST]
Json: TypeAlias = Annotated[str, BeforeValidator(_json_text), _OBJECT]
KubernetesRelease: TypeAlias = Annotated[str, BeforeValidator(_release), _RELEASE]
Gates: TypeAlias = Annotated[dict[str, bool], NoDecode, BeforeValidator(_gates), _SWITCHES]
File: TypeAlias = Annotated[Path | None, BeforeValidator(_file)]
Listening: TypeAlias = Annotated[str, AfterValidator(_address)]
OptionalListening: TypeAlias = Annotated[str, AfterValidator(lambda text: text and _address(text))]
Url: TypeAlias = Annotated[str, AfterValidator(_url)]
LeaseName: TypeAlias = Annotated[str, Field(max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
Query: TypeAlias = Annotated[str, Field(min_length=1)]
Port: TypeAlias = Annotated[int, Field(ge=0, le=_LARGEST_PORT)]
