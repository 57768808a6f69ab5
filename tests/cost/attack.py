"""An attack as a value: a document, and the way in which it is sent. It can be stored, and sent again."""

import json
from typing import Any, Literal, NamedTuple, TypeAlias

Object: TypeAlias = dict[str, Any]
Way: TypeAlias = Literal["pod", "question", "explain", "objects", "manifest", "wire"]
"""`pod`: a v1.Pod, as a request of each verb and as a bound pod in the watch. `question`: ExtenderArgs. `explain`: the
body of `POST /explain`. `objects`: v1 objects with `kind`, in the watch. `manifest`: the text of `POST
/explain/manifest`. `wire`: bytes on a connection, as `tests.cost.exchange` sends them."""


class Attack(NamedTuple):
    """An attack. `document` is JSON, or text for a manifest."""

    way: Way
    document: Any

    @property
    def size(self) -> int:
        """The bytes that an attacker must send."""
        if self.way == "wire":
            asks = "path" in self.document
            pieces = [{"text": self.document["path"]}] if asks else self.document["pieces"]
            once = sum(len(piece["text"]) * int(piece.get("times", 1)) for piece in pieces)
            return once * int(self.document["connections"]) * int(self.document.get("times", 1))
        return len(self.body())

    def body(self) -> bytes:
        """Return the bytes of the document."""
        if isinstance(self.document, str):
            return self.document.encode()
        return compact(self.document)


def compact(document: object) -> bytes:
    """Return JSON in Go's form, without spaces."""
    return json.dumps(document, separators=(",", ":")).encode()
