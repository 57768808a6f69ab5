"""Go structs without JSON tags, as in the extender's messages. Their keys match in any case.

Source: Go's encoding/json (Unmarshal). Of keys that differ only in case, the last one counts.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from app.objects.decode import DecodeError, Json, decoding

_members_decoder: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


class GoStruct:
    """The fields of one Go struct. Their values stay raw."""

    def __init__(self, name: str, *fields: str) -> None:
        """`name` and `fields` have Go's spelling."""
        self._name = name
        self._fields = fields
        self._spellings = {**{field.lower(): field for field in fields}, **{field: field for field in fields}}

    def fields_of(self, members: Mapping[str, msgspec.Raw]) -> dict[str, msgspec.Raw]:
        """Return the fields in an object, by their names in Go's spelling. Other members are ignored."""
        fields = {}
        for key, raw in members.items():
            field = self._spellings.get(key) or self._spellings.get(key.lower())
            if field is not None:
                fields[field] = raw
        return fields

    def decode(self, body: Json) -> dict[str, msgspec.Raw]:
        """Return the fields in a body, by names in Go's spelling. Raises DecodeError, also for an unknown field."""
        try:
            members = members_of(body)
        except DecodeError as error:
            raise error.under("body") from None
        for key in members:
            if key not in self._spellings and key.lower() not in self._spellings:
                raise DecodeError(key, f"unknown field; {self._name} has {', '.join(self._fields)}")
        return self.fields_of(members)


EXTENDER_ARGS: Final = GoStruct("ExtenderArgs", "Pod", "Nodes", "NodeNames")


def members_of(raw: Json) -> dict[str, msgspec.Raw]:
    """Return the members of an object. Raises DecodeError."""
    return decoding(_members_decoder.decode, raw)
