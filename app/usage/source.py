"""What gives measurements of all nodes at once."""

from typing import Final, Protocol

from app.api_server.client import ApiError
from app.api_server.credentials import CredentialsError
from app.objects.decode import DecodeError
from app.objects.decode_node_metrics import Measurements

SOURCE_ERRORS: Final = (ApiError, CredentialsError, DecodeError)
"""What a source raises when it has no answer, or one that cannot be read."""


class UsageSource(Protocol):
    """One source, asked at an interval."""

    @property
    def name(self) -> str:
        """What it is called in logs."""

    async def measurements(self) -> Measurements:
        """Ask for all nodes. Raises one of SOURCE_ERRORS, TimeoutError."""

    def remedy(self, error: Exception) -> str:
        """Return what helps against an error, one line; empty where that is not known."""
