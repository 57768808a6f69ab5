"""The types of settings: how their values are read from a file, the environment and flags."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, NamedTuple, TypeAlias

from pydantic import BeforeValidator, Field
from pydantic_settings import NoDecode

from app.json_text import encode
from core.releases import RELEASES

AUTO: Final = "auto"
_RELEASES: Final = (AUTO, *map(str, RELEASES))


def _names(value: object) -> object:
    """Read a list of names from the text of a variable or a flag, separated by commas."""
    if isinstance(value, str):
        return tuple(name for part in value.split(",") if (name := part.strip()))
    return tuple(value) if isinstance(value, list) else value


def _json_text(value: object) -> object:
    """Return the JSON text of a mapping from the file, as a variable has it. Other values stay as they are."""
    return encode(value).decode() if isinstance(value, Mapping) else value


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


def _file(value: object) -> object:
    return None if value == "" else value  # a variable that is set to nothing


class FileForm(NamedTuple):
    """The JSON schema of a field in a file, if a file may have other types than the field."""

    schema: Mapping[str, object]


_LIST: Final = FileForm({"type": ["array", "string"], "items": {"type": "string"}})
_OBJECT: Final = FileForm({"type": ["object", "string"]})
_SWITCHES: Final = FileForm({"type": ["object", "string"], "additionalProperties": {"type": "boolean"}})
_RELEASE: Final = FileForm({"enum": [AUTO, *(form for each in RELEASES for form in (str(each), float(str(each))))]})

Names: TypeAlias = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names), _LIST]
Profile: TypeAlias = Annotated[str, BeforeValidator(_joined), _LIST]
Json: TypeAlias = Annotated[str, BeforeValidator(_json_text), _OBJECT]
KubernetesRelease: TypeAlias = Annotated[
    str, BeforeValidator(_release), Field(json_schema_extra={"enum": list(_RELEASES)}), _RELEASE
]
Gates: TypeAlias = Annotated[dict[str, bool], NoDecode, BeforeValidator(_gates), _SWITCHES]
File: TypeAlias = Annotated[Path | None, BeforeValidator(_file)]
Host: TypeAlias = Annotated[str, Field(min_length=1)]
Query: TypeAlias = Annotated[str, Field(min_length=1)]
Port: TypeAlias = Annotated[int, Field(ge=0, le=65535)]
