"""The JSON schema of a file of settings, for editors and for tools that check files before use.

`kindred config schema > docs/schemas/kindredconfiguration-v1alpha1.json` publishes it.
"""

import re
from typing import Any, Final

from app.configuration_file import API_VERSION, HEAD, KIND, key_of
from app.setting_types import FileForm
from app.settings import Settings

ADDRESS: Final = "https://kindred.dev/schemas/kindredconfiguration-v1alpha1.json"
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_FIELD: Final = re.compile(r"`(\w+)`")
_OF_A_TYPE: Final = frozenset({"type", "enum", "minimum", "maximum", "minLength", "maxLength", "pattern"})


def configuration_schema() -> dict[str, Any]:
    """Return the schema of KindredConfiguration: its head, and a property for each setting."""
    head = {
        "apiVersion": {"const": API_VERSION, "description": "Version of the format of this file."},
        "kind": {"const": KIND, "description": "Kind of this file."},
    }
    known = Settings.model_json_schema()["properties"]
    return {
        "$schema": _DIALECT,
        "$id": ADDRESS,
        "title": KIND,
        "description": "Settings of Kindred: `kindred serve --config FILE`, or KINDRED_CONFIG.",
        "type": "object",
        "required": [*HEAD],
        "additionalProperties": False,
        "properties": {**head, **{key_of(name): _property(name, found) for name, found in known.items()}},
    }


def described(name: str) -> str:
    """Return the meaning of a setting, in one line. Other settings have their names in the file."""
    return _FIELD.sub(_as_key, (Settings.model_fields[name].description or "").replace("\n", " "))


def _property(name: str, found: dict[str, Any]) -> dict[str, Any]:
    own = next((each for each in found.get("anyOf", ()) if each["type"] != "null"), found)
    form = {key: value for key, value in own.items() if key in _OF_A_TYPE}
    if own is not found:
        form["type"] = [own["type"], "null"]
    for each in Settings.model_fields[name].metadata:
        if isinstance(each, FileForm):
            form = dict(each.schema)
    default = found.get("default")
    shown = {} if default is None else {"default": default}
    return {"description": described(name), **form, **shown}


def _as_key(quoted: re.Match[str]) -> str:
    return f"`{key_of(quoted[1])}`" if quoted[1] in Settings.model_fields else quoted[0]
