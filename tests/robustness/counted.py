"""`kindred`, which on SIGUSR1 writes how many asyncio tasks it has into the file KINDRED_TEST_TASKS."""

import asyncio
import os
import signal
from pathlib import Path
from types import FrameType

from app.commands.cli import main


def _write_tasks(_: int, __: FrameType | None) -> None:
    file = Path(os.environ["KINDRED_TEST_TASKS"])
    written = file.with_suffix(".new")
    written.write_text(str(len(asyncio.all_tasks())))  # signals are handled by the thread of the event loop
    written.replace(file)


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, _write_tasks)
    main(prog_name="kindred")
