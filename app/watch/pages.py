"""Pages of a list, limited in objects and in bytes.

500 pods are a few MB. But a tenant may have 500 of the largest pods that etcd accepts: 1.5 MiB each, and up to 9 MiB as
JSON. So a page that is too large is requested again with fewer objects. A continue token allows another number.
"""

from collections.abc import Mapping
from typing import Final

from app.api_server.client import ApiClient, ResponseTooLargeError

PAGE_SIZE: Final = 500
"""Objects in a page of a list. The request has no resourceVersion, because with "0" the server ignores the limit."""
MAX_PAGE_BYTES: Final = 64 * 1024 * 1024
"""Ten times a page of ordinary pods, and enough for several of the largest objects."""
_FEWER: Final = 8


class Pages:
    """Gets the pages of one list after the other."""

    def __init__(self, client: ApiClient, path: str) -> None:
        self._client = client
        self._path = path
        self._objects = PAGE_SIZE

    async def get(self, params: Mapping[str, str]) -> bytes:
        """Return a page. Raises ApiError, CredentialsError. ResponseTooLargeError: one object alone is too large."""
        while True:
            limited = {**params, "limit": str(self._objects)}
            try:
                page = await self._client.get(self._path, limited, MAX_PAGE_BYTES)
            except ResponseTooLargeError:
                if self._objects == 1:
                    raise
                self._objects = max(1, self._objects // _FEWER)
                continue
            self._objects = min(PAGE_SIZE, 2 * self._objects)  # large objects are mostly neighbours
            return page
