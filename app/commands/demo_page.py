"""The additions of `--demo` to the page of the admin port: the port itself, and sample pods."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

import msgspec

from app.admin.explain_routes import Sample
from app.commands.dump_source import DEMO
from app.configuration import Configuration
from app.setting_types import split_address
from app.settings import is_loopback

OFFSET: Final = 2
"""Distance of a demo's admin port from the scheduler's port: 8890 for 8888."""
_LARGEST: Final = 65535


class _Request(msgspec.Struct, rename="pascal"):
    pod: msgspec.Raw


def with_page(configuration: Configuration) -> Configuration:
    """Give a demo on the loopback an admin port, unless a setting has one.

    A demo on another address gets no admin port: its page would need a token.
    """
    settings = configuration.settings
    host, listening = split_address(settings.listen)
    if "admin" in configuration.sources or not is_loopback(host):
        return configuration
    port = listening + OFFSET if 0 < listening <= _LARGEST - OFFSET else 0
    return configuration._replace(
        settings=settings.model_copy(update={"admin": f"127.0.0.1:{port}"}),
        sources={**configuration.sources, "admin": "--demo"},
    )


def samples() -> Sequence[Sample]:
    """Return the pods of the demo's requests, sorted by name."""
    requests = sorted((DEMO / "requests").iterdir(), key=lambda each: each.name)
    return [
        Sample(PurePath(each.name).stem, msgspec.json.decode(each.read_bytes(), type=_Request).pod) for each in requests
    ]
