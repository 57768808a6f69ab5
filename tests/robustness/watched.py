"""A `kindred serve --demo` with all plugins and verbs, and what it costs the machine."""

import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.app.serving import ANY_PORT, ROOT, Service, kindred, until

REQUESTS: Final = ROOT / "app" / "demo" / "requests"
_SETTINGS: Final = {
    "KINDRED_PROFILE": "full",
    "KINDRED_PREEMPT": "verb",
    "KINDRED_BIND": "true",
    "KINDRED_ADMIN": "127.0.0.1:0",
    "KINDRED_LOG_LEVEL": "warning",
    "KINDRED_LOG_FORMAT": "json",
}


class Watched:
    """A running service. What it counts is of the moment."""

    def __init__(self, service: Service, tasks_file: Path) -> None:
        self.service = service
        self._tasks_file = tasks_file
        self._proc = Path(f"/proc/{service.process.pid}")

    @property
    def url(self) -> str:
        return self.service.url

    @property
    def admin_url(self) -> str:
        return self.service.admin_url

    @property
    def address(self) -> tuple[str, int]:
        return self.service.address

    def rss(self) -> int:
        """Return the resident memory in bytes."""
        found = re.search(r"^VmRSS:\s+(\d+) kB$", (self._proc / "status").read_text(), re.MULTILINE)
        assert found
        return int(found[1]) * 1024

    def descriptors(self) -> int:
        """Return the number of open files and sockets."""
        return len(list((self._proc / "fd").iterdir()))

    def tasks(self) -> int:
        """Return the number of asyncio tasks."""
        self._tasks_file.unlink(missing_ok=True)
        self.service.process.send_signal(signal.SIGUSR1)
        until(self._tasks_file.exists)
        return int(self._tasks_file.read_text())

    def assert_unharmed(self) -> None:
        """Check that it runs, and has logged no error."""
        assert self.service.process.poll() is None, self.service.stderr[-2000:]
        lines = [json.loads(line) for line in self.service.stderr.splitlines() if line.startswith("{")]
        assert [line for line in lines if line["level"] not in {"warning", "info"}] == []
        assert "Traceback" not in self.service.stderr


@contextmanager
def watched(folder: Path, **settings: str) -> Iterator[Watched]:
    """Run a service on free ports; it must end with status 0."""
    tasks_file = folder / "tasks"
    environment = {**_SETTINGS, **settings, "KINDRED_TEST_TASKS": str(tasks_file)}
    command = ("serve", "--demo", *ANY_PORT)
    with kindred(folder, *command, environment=environment, module="tests.robustness.counted") as service:
        found = Watched(service, tasks_file)
        until(lambda: "Debugging at" in service.stdout and "answers at" in service.stdout)
        yield found
        assert service.end(signal.SIGTERM) == 0, service.stderr[-2000:]
