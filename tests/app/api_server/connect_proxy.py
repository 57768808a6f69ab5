"""A proxy on a real port that connects through (CONNECT), or refuses to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class ConnectProxy:
    """A running proxy, with the heads of the requests that it got."""

    def __init__(self, refusal: bytes | None) -> None:
        self.heads: list[str] = []
        self.port = 0
        self._refusal = refusal
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect one client through, to wherever it wants on this machine."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with suppress(asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            if self._refusal is not None:
                writer.write(self._refusal)
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                port = int(head.split()[1].rpartition(":")[2])
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
                try:
                    await asyncio.gather(_pass_on(reader, far_writer), _pass_on(far_reader, writer))
                finally:
                    far_writer.close()
        writer.close()

    async def stop(self) -> None:
        """End all connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks)


@asynccontextmanager
async def proxying(refusal: bytes | None = None) -> AsyncIterator[ConnectProxy]:
    """Run a proxy on a free port of this machine; with `refusal` it answers that to everybody."""
    proxy = ConnectProxy(refusal)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.stop()
        await server.wait_closed()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()
