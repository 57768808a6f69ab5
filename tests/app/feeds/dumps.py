"""Cluster dumps as kubectl prints them, from built objects, and loading them."""

import json

from app.feeds.dump_text import read_dump
from app.feeds.snapshot_file import SnapshotSummary, load_items
from core.mirror.cluster import ClusterMirror
from tests.builders import NamespaceBuilder, NodeBuilder, Object, PodBuilder


def kinded(*built: NodeBuilder | PodBuilder | NamespaceBuilder) -> list[Object]:
    """Make objects that say their kind, as in a List."""
    return [{"apiVersion": "v1", "kind": type(each).__name__.removesuffix("Builder"), **each.obj()} for each in built]


def listed(*items: object, kind: str = "List") -> Object:
    """Make the List that `kubectl get -o json` prints."""
    return {"apiVersion": "v1", "items": list(items), "kind": kind, "metadata": {"resourceVersion": ""}}


def as_json(document: object) -> bytes:
    """Write a document as kubectl does."""
    return json.dumps(document, indent=4).encode() + b"\n"


def load(text: bytes, *, skip_invalid: bool = False) -> tuple[ClusterMirror, SnapshotSummary]:
    """Load a dump into a new mirror."""
    mirror = ClusterMirror()
    dump = read_dump(text)
    return mirror, load_items(dump.items, mirror, skip_invalid=skip_invalid, stated=dump.stated)
