"""An attack as a value: what is sent, and in which way. It can be written to a file, changed, and sent again."""

import json
from typing import Any, Literal, NamedTuple, TypeAlias

Object: TypeAlias = dict[str, Any]
Way: TypeAlias = Literal["pod", "question", "explain", "objects", "manifest", "wire"]
"""`pod`: a v1.Pod, as a request of each verb and as a bound pod in the watch. `question`: ExtenderArgs. `explain`: the
body of `POST /explain`. `objects`: v1 objects with `kind`, in the watch. `manifest`: the text of `POST
/explain/manifest`. `wire`: bytes on a connection, as `tests.cost.exchange` sends them."""


class Attack(NamedTuple):
    """What is sent. `document` is JSON, or text for a manifest."""

    way: Way
    document: Any

    @property
    def size(self) -> int:
        """The bytes that an attacker has to send."""
        if self.way == "wire":
            # What asks for a path sends no pieces, though a search may have given it some.
            asks = "path" in self.document
            pieces = [{"text": self.document["path"]}] if asks else self.document["pieces"]
            once = sum(len(piece["text"]) * int(piece.get("times", 1)) for piece in pieces)
            return once * int(self.document["connections"]) * int(self.document.get("times", 1))
        return len(self.body())

    def body(self) -> bytes:
        """Return the document as it is sent."""
        if isinstance(self.document, str):
            return self.document.encode()
        return compact(self.document)


def compact(document: object) -> bytes:
    """Write JSON as Go does, without spaces."""
    return json.dumps(document, separators=(",", ":")).encode()
