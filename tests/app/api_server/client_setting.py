"""A client and a server that talk by TLS on a real port, as the user of a kubeconfig."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

from app.api_server.client import ApiClient
from app.api_server.credentials import load_credentials
from tests.app.api_server.api_server import Answer, ApiServer, Request, serving
from tests.app.api_server.certificates import Certificates
from tests.app.api_server.kubeconfigs import Clock, write_kubeconfig

T = TypeVar("T")
PODS: Final = "/api/v1/pods"


class Setting:
    """Where a test talks to a server by TLS, as the user of a kubeconfig."""

    def __init__(self, folder: Path, certificates: Certificates) -> None:
        self.folder = folder
        self.certificates = certificates
        self.clock = Clock()
        self.user: dict[str, object] = {}
        self.cluster: dict[str, object] = {"certificate-authority": str(certificates.crt("authority"))}

    def client(self, url: str, connect_timeout: float = 10.0, read_timeout: float = 75.0) -> ApiClient:
        """Make a client of the server at a URL, with limits in seconds."""
        config = write_kubeconfig(self.folder / "config", url, cluster=self.cluster, user=self.user)
        credentials = load_credentials(config, None, clock=self.clock)
        return ApiClient(credentials, connect_timeout=connect_timeout, read_timeout=read_timeout)

    def run(self, answer: Answer, exchange: Callable[[ApiClient, ApiServer], Awaitable[T]], **limits: float) -> T:
        """Talk to a server that answers so."""

        async def main() -> T:
            tls = self.certificates.asking_tls()
            async with serving(answer, tls) as server:
                client = self.client(server.url, **limits)
                try:
                    return await exchange(client, server)
                finally:
                    await client.close()

        return asyncio.run(main())

    def ask(self, answer: Answer, times: int = 1) -> list[Request]:
        """Send requests one after the other, and give what reached the server."""

        async def exchange(client: ApiClient, server: ApiServer) -> list[Request]:
            for _ in range(times):
                await client.get(PODS, {})
            return server.requests

        return self.run(answer, exchange)
