"""The marker `tools`: self-tests of the tools of tests and measurements, which no request uses.

`make test` deselects them, `make test-all` runs them. A run that deselects them lists their files in its summary.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

_TESTS: Final = Path(__file__).parent
_OF_MUTANTS: Final = ("main", "trial")  # `make test` itself checks that each fault has its place
_TOOLS: Final = tuple(
    _TESTS / each
    for each in (
        *("bench", "fake_apiserver", "load", "throughput"),
        *(f"mutants/test_{name}.py" for name in _OF_MUTANTS),
    )
)
_FROM_WORKER: Final = "deselected_tools"  # key of the report of an xdist worker to the process that prints


class ToolsMarker:
    """Marks the tests of tools, and reports which of them were deselected."""

    def __init__(self) -> None:
        self._deselected: Counter[str] = Counter()  # file -> tests

    @pytest.hookimpl(tryfirst=True)  # before `-m` selects
    def pytest_collection_modifyitems(self, items: Sequence[pytest.Item]) -> None:
        for item in items:
            if any(item.path.is_relative_to(each) for each in _TOOLS):
                item.add_marker("tools")

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        self._deselected.update(item.nodeid.partition("::")[0] for item in items if item.get_closest_marker("tools"))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_FROM_WORKER] = dict(self._deselected)

    @pytest.hookimpl(optionalhook=True)  # of xdist
    def pytest_testnodedown(self, node: object) -> None:
        """Record the tests that a worker deselected. All workers collect the same tests."""
        self._deselected |= Counter(getattr(node, "workeroutput", {}).get(_FROM_WORKER, {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in summary(self._deselected):
            terminalreporter.write_line(line)


def summary(deselected: Counter[str]) -> list[str]:
    """Return a line for each folder, with its files and the number of tests of each that did not run."""
    if not deselected:
        return []
    files = defaultdict(list)
    for file, count in sorted(deselected.items()):
        folder, _, name = file.rpartition("/")
        files[folder].append(f"{name} ({count})")
    first = f"{deselected.total()} self-tests of tools were deselected; `make test-all` runs them:"
    return [first, *(f"  {folder}: {', '.join(names)}" for folder, names in files.items())]
