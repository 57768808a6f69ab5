"""Valid bodies of the verbs, and what becomes of them when things go wrong on the way, or on purpose."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from tests.json_places import places, replaced
from tests.robustness.watched import REQUESTS

Json: TypeAlias = Any
Key: TypeAlias = str | int

_POD: Final[Json] = json.loads(Path(__file__).with_name("whole_pod.json").read_text("utf-8"))
_NAMES: Final = ["node1", "node21", "node41", "node2", "no-such-node"]
_NODES: Final = [
    {
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": "a", "kubernetes.io/os": "linux"}},
        "spec": {"unschedulable": False, "taints": [{"key": "dedicated", "value": "shop", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": "4", "memory": "16Gi", "pods": 110},
            "conditions": [{"type": "Ready", "status": "True"}],
            "images": [{"names": ["registry.example.com/shop/web:4.7.2"], "sizeBytes": 1_000_000}],
        },
    }
    for name in ("node1", "stranger")
]
_VICTIM: Final = {"metadata": {"name": "victim", "namespace": "shop", "uid": "victim-1"}, "spec": {"priority": 1}}

DEEP: Final = 100_000
"""Levels of nesting: far more than any stack has room for."""
ODD: Final = (
    "null", "true", "0", "-1", "1.5", "1e400", "-1e-400", "9" * 400, str(2**63), str(-(2**63) - 1), "NaN", "-Infinity",
    '""', '"x"', r'"\ud800"', r'"\udc00\ud800"', r'"\u0000"', '"\u2028\u0085"', '"' + "é" * 300 + '"', '"9e99999"',
    "[]", "[null]", '[""]', "[[]]", "{}", '{"": null}', '{"key": {"key": []}}', "[" * DEEP, '{"a":' * DEEP,
)  # fmt: skip
"""JSON, and what looks like it, that can stand where something else is expected."""
_ODD_KEYS: Final = (
    '"key":0,"key"', '"KEY"', '"KEY":null,"key"', '""', r'"\ud800"', r'"\u0000"', r'"key\u0000"', "null", '"key":',
)  # fmt: skip
"""What can stand for a key; `key` and `KEY` are the one that stands there."""
_TOKENS: Final = (b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\xaf", b"\\", b'"', b"{", b"}", b"[", b"]", b",", b":")
_EDITS: Final = 4  # of one body at most
_MAX_SLICE_LENGTH: Final = 200


class Valid(NamedTuple):
    """A body that a verb takes."""

    path: str
    document: Json

    @property
    def body(self) -> bytes:
        return json.dumps(self.document, separators=(",", ":")).encode()


def valid_bodies() -> list[Valid]:
    """Return each message in each of its forms."""
    demo = {name: json.loads((REQUESTS / f"{name}.json").read_bytes()) for name in ("web", "required-affinity")}
    of_names = {"Pod": _POD, "Nodes": None, "NodeNames": _NAMES}
    of_objects = {"Pod": _POD, "Nodes": {"metadata": {}, "items": _NODES}, "NodeNames": None}
    meta = {"node1": {"Pods": [{"UID": "victim-1"}], "NumPDBViolations": 1}, "node2": {"Pods": None}}
    whole = {"node1": {"Pods": [_VICTIM], "NumPDBViolations": 0}}
    binding = {"PodName": "whole-0", "PodNamespace": "shop", "PodUID": "7c7b9b1e", "Node": "node1"}
    return [
        *(Valid(path, requested) for path in ("/filter", "/prioritize") for requested in (of_names, of_objects)),
        Valid("/prioritize", demo["web"]),
        Valid("/filter", demo["required-affinity"]),
        Valid("/bind", binding),
        Valid("/preempt", {"Pod": _POD, "NodeNameToVictims": None, "NodeNameToMetaVictims": meta}),
        Valid("/preempt", {"Pod": _POD, "NodeNameToVictims": whole, "NodeNameToMetaVictims": None}),
    ]


def odd_bodies(source: random.Random, document: Json, each: int) -> Iterator[bytes]:
    """Yield a document with so many odd things, one at a time, in each place: values, and keys where there are any."""
    for path in places(document):
        for text in source.sample(ODD, min(each, len(ODD))):
            yield _with(document, path, text)
        if path and isinstance(path[-1], str):
            yield _with_odd_key(document, path, source.choice(_ODD_KEYS))


def mutated(source: random.Random, body: bytes, others: list[bytes]) -> bytes:
    """Return a body with some bytes flipped, cut off, doubled, put in, or taken from another body."""
    edited = bytearray(body)
    for _ in range(source.randint(1, _EDITS)):
        start = source.randrange(len(edited) + 1)
        end = min(len(edited), start + source.randrange(_MAX_SLICE_LENGTH))
        match source.randrange(7):
            case 0 if edited:
                edited[start - 1] ^= 1 << source.randrange(8)
            case 1:
                del edited[start:]
            case 2:
                del edited[start:end]
            case 3:
                edited[start:start] = edited[start:end] * source.randint(1, 3)
            case 4:
                edited[start:end] = source.choice(ODD[:-2]).encode("utf-8", "surrogatepass")
            case 5:
                edited[start:start] = source.choice(_TOKENS)
            case _:
                other = source.choice(others)
                taken = source.randrange(len(other))
                edited[start:end] = other[taken : taken + source.randrange(_MAX_SLICE_LENGTH)]
    return bytes(edited)


def _with(document: Json, path: tuple[Key, ...], text: str) -> bytes:
    """Return a document with a text, JSON or not, in one place."""
    mark = "\x01here\x01"
    return json.dumps(replaced(document, path, mark)).replace(json.dumps(mark), text).encode()


def _with_odd_key(document: Json, path: tuple[Key, ...], odd: str) -> bytes:
    """Return a document whose member at a path is doubled, or is called something else."""
    key = str(path[-1])
    mark = "\x01here\x01"
    text = odd.replace("KEY", key.upper()).replace("key", key)
    return json.dumps(_renamed(document, path, mark)).replace(json.dumps(mark), text).encode()


def _renamed(document: Json, path: tuple[Key, ...], key: str) -> Json:
    parent: Json = document
    for step in path[:-1]:
        parent = parent[step]
    members = {key if name == path[-1] else name: value for name, value in parent.items()}
    return replaced(document, path[:-1], members)
