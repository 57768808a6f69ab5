"""What the end-to-end tests stand on: the programs once for all tests, a control plane once for each module."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from tests.e2e.binaries import binaries as find_binaries
from tests.e2e.binaries import chosen_module
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import control_plane

Note: TypeAlias = Callable[[str], None]
_SEEN: Final = pytest.StashKey[list[str]]()


@pytest.fixture
def note(request: pytest.FixtureRequest) -> Note:
    """Return a function that takes a line of what was seen, which is shown below the results."""

    def take(line: str) -> None:
        request.config.stash.setdefault(_SEEN, []).append(f"{request.node.name}: {line}")

    return take


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show what the tests have noted."""
    for line in config.stash.get(_SEEN, []):
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def binaries() -> Mapping[str, Path]:
    """Find the programs, which `make e2e` has built before pytest begins to hide what is printed."""
    return find_binaries(module=chosen_module())


@pytest.fixture(scope="module")
def cluster(binaries: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run a control plane without nodes, for the tests of a module."""
    with control_plane(tmp_path_factory.mktemp("plane"), binaries) as plane:
        yield Cluster(plane, binaries)


@pytest.fixture(autouse=True)
def _tidy(request: pytest.FixtureRequest) -> Iterator[None]:
    """End what a test has started, and take its pods and nodes away."""
    yield
    if "cluster" in request.fixturenames:
        request.getfixturevalue("cluster").tidy()
