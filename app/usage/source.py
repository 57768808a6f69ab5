"""The protocol of a source of measurements. One call returns the measurements of all nodes."""

from typing import Final, Protocol

from app.api_server.client import ApiError
from app.api_server.credentials import CredentialsError
from app.objects.decode import DecodeError
from app.objects.decode_node_metrics import Measurements

SOURCE_ERRORS: Final = (ApiError, CredentialsError, DecodeError)
"""Errors that a source raises when its request fails, or the response cannot be decoded."""


class UsageSource(Protocol):
    """One source, which is read at an interval."""

    @property
    def name(self) -> str:
        """The name of the source in logs."""

    async def measurements(self) -> Measurements:
        """Return the measurements of all nodes. Raises one of SOURCE_ERRORS, TimeoutError."""

    def remedy(self, error: Exception) -> str:
        """Return the remedy for an error, in one line. Empty if none is known."""

    async def close(self) -> None:
        """Close the connections that belong to the source."""
