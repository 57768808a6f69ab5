"""The settings in the chart's values.schema.json: made of the schema of the settings' file, which is the one source.

`python -m tests.tables --write` writes them.
"""

import json
from typing import Any, Final

from app.settings.configuration import HEAD, configuration_schema
from tests.manifests.helm import CHART

SCHEMA: Final = CHART / "values.schema.json"
_BEGIN: Final = '    "settings": {\n      "description": "Made by'
_END: Final = "\n  }\n}\n"


def chart_settings() -> dict[str, Any]:
    """Return the definition: constraints only, without the head of the file, which the chart writes."""
    properties = configuration_schema()["properties"]
    return {
        "description": "Made by `python -m tests.tables --write` of `kindred config --schema`",
        "type": "object",
        "additionalProperties": False,
        "properties": {key: _constraint(each) for key, each in properties.items() if key not in HEAD},
    }


def _constraint(setting: dict[str, Any]) -> dict[str, Any]:
    """Return what a value must be. Helm reads a bare `off` as false (YAML 1.1), and the chart writes `off` again."""
    stated = {key: value for key, value in setting.items() if key not in {"description", "default", "format", "title"}}
    return {"anyOf": [stated, {"const": False}]} if setting.get("default") == "off" else stated


def schema_text() -> str:
    """Return the text of values.schema.json with the settings of today, each on one line."""
    before, found, _ = SCHEMA.read_text("utf-8").partition(_BEGIN)
    assert found
    made = chart_settings()
    properties = ",\n".join(
        f"        {json.dumps(key)}: {json.dumps(each)}" for key, each in made["properties"].items()
    )
    head = json.dumps({key: made[key] for key in ("description", "type", "additionalProperties")}, indent=2)
    lines = [f"      {line.strip()}" for line in head.splitlines()[1:-1]]
    return (
        before
        + '    "settings": {\n'
        + "\n".join(lines)
        + ',\n      "properties": {\n'
        + properties
        + "\n      }\n    }"
        + _END
    )
