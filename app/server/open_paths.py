"""Paths that need no authentication, because their responses have no data of the cluster."""

from collections.abc import Collection

from starlette.types import Scope


def is_open(scope: Scope, open_paths: Collection[str]) -> bool:
    """Return whether a request is a GET of one of these paths."""
    return scope["type"] == "http" and scope["method"] in {"GET", "HEAD"} and scope["path"] in open_paths
