"""The table in docs/configuration.md, from the settings themselves."""

from typing import Any, Final

from app.settings import Settings, key_of, variable_of


def blocks() -> dict[str, str]:
    """Return the table, a line for each setting."""
    schema = Settings.model_json_schema()["properties"]
    lines = ["| key, variable | default | allowed | meaning |", "|---|---|---|---|"]
    for name, field in Settings.model_fields.items():
        meaning = (field.description or "").replace("\n", " ").replace("|", "\\|")
        default = _default(field.get_default())
        lines.append(
            f"| `{key_of(name)}`<br>`{variable_of(name)}` | {default} | {_allowed(schema[name])} | {meaning} |"
        )
    return {"settings": "\n".join(lines)}


def _default(value: object) -> str:
    if value is None or value in ("", (), {}):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


_FORMS: Final[dict[str, str]] = {"array": "names, by commas", "object": "JSON", "boolean": "`true`, `false`"}


def _allowed(schema: dict[str, Any]) -> str:
    for choice in schema.get("anyOf", ()):  # X or none
        if choice.get("type") != "null":
            schema = choice
    match schema:
        case {"enum": values}:
            return ", ".join(f"`{value}`" for value in values if isinstance(value, str))
        case {"additionalProperties": _}:
            return "`NAME=true` or `NAME=false`, by commas"
        case {"type": [str(kind), *_]} | {"type": "boolean" as kind}:
            return _FORMS[kind]
        case {"type": "integer" | "number"}:
            return _range(schema)
    return "a file" if schema.get("format") == "path" else "text"


def _range(schema: dict[str, Any]) -> str:
    lowest, highest = schema.get("minimum"), schema.get("maximum")
    return f"{lowest} to {highest}" if highest is not None else f"at least {lowest}"
