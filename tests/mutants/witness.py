"""A pytest plugin for the run of one fault: which test finds it, and that it is the copy of the tree that is tested."""

from pathlib import Path

import pytest

import app
import core


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the tree that is to be tested, and the file that is told the first failure."""
    group = parser.getgroup("mutants")
    group.addoption("--tested-tree", type=Path, required=True)
    group.addoption("--first-failure", type=Path, required=True)


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to run on another app or core than those of the tree: an editable install is on the path, too."""
    tree = config.getoption("--tested-tree").resolve()
    for package in (app, core):
        file = Path(package.__file__ or "").resolve()
        if not file.is_relative_to(tree):
            raise pytest.UsageError(f"{package.__name__} is imported from {file}, not from {tree}")
    config.pluginmanager.register(_Witness(config.getoption("--first-failure")))


class _Witness:
    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._note(f"{report.nodeid} (collection)")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._note(report.nodeid)

    def _note(self, test: str) -> None:
        if not self._file.exists():
            self._file.write_text(test, "utf-8")
