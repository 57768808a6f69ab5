"""The fake API server as a separate process, with the bench cluster in it: `python -m tests.fake_apiserver --help`.

When it listens, it prints one line of JSON: its url, and the sizes of the cluster. It ends by SIGTERM or SIGINT.
"""

import argparse
import asyncio
import gc
import json
import os
import signal
import sys
from collections.abc import Sequence

import uvloop

from tests.bench import cluster
from tests.fake_apiserver.bench_data import Churn, bench_store, encode_templates
from tests.fake_apiserver.control import Control
from tests.fake_apiserver.server import FakeApiServer
from tests.fake_apiserver.store import DEFAULT_HISTORY


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until a signal."""
    parsed = _parsed(arguments)
    # No object of the cluster is garbage, so collections would only take time.
    gc.disable()
    store = bench_store(parsed.nodes, parsed.pods, DEFAULT_HISTORY)
    churn = None
    if parsed.nodes and parsed.pods:
        encode_templates(cluster.app_count(parsed.pods))
        churn = Churn(store, parsed.nodes, parsed.pods)
    gc.freeze()
    gc.enable()
    server = FakeApiServer(store=store, port=parsed.port)
    control = Control(server, churn)
    server.control = control.handle
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(server, control, parsed))
    return 0


async def _serve(server: FakeApiServer, control: Control, parsed: argparse.Namespace) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with server:
        announced = {"url": server.url, "pid": os.getpid(), "version": server.store.version}
        print(json.dumps({**announced, "nodes": parsed.nodes, "pods": parsed.pods}), flush=True)  # noqa: T201 - for its parent
        control.start_churn(parsed.churn)
        await ended.wait()
        await control.close()


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fake_apiserver", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=150_000, help=f"0, or at least {cluster.PODS_PER_APP}")
    parser.add_argument("--port", type=int, default=0, help="0: any")
    parser.add_argument("--churn", type=float, default=0.0, metavar="RATE", help="pod events a second from the start")
    parsed = parser.parse_args(arguments)
    if 0 < parsed.pods < cluster.PODS_PER_APP or (parsed.churn and not (parsed.pods and parsed.nodes)):
        parser.error(f"pods must be 0 or at least {cluster.PODS_PER_APP}, and churn needs pods and nodes")
    return parsed


if __name__ == "__main__":
    sys.exit(main())
