"""Input without end, or as large as the memory, given to the command line: refused at once, with what is wrong."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from app.commands.cli import main
from app.watch.memory import MemoryLimit
from tests.app.dump.dumps import as_json, kinded, listed
from tests.builders import make_node, make_pod


@pytest.fixture
def dump(tmp_path: Path) -> str:
    file = tmp_path / "dump.json"
    file.write_bytes(as_json(listed(*kinded(make_node("a1")))))
    return str(file)


@pytest.fixture
def pod(tmp_path: Path) -> str:
    file = tmp_path / "pod.json"
    file.write_bytes(make_pod("p").json())
    return str(file)


def kindred(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_a_snapshot_that_takes_most_of_the_memory_is_refused_before_it_is_read(
    monkeypatch: pytest.MonkeyPatch, dump: str, pod: str
) -> None:
    size = Path(dump).stat().st_size
    monkeypatch.setattr("app.commands.dump.memory_limit", lambda: MemoryLimit(size, "the limit of the cgroup"))
    result = kindred("filter", "--snapshot", dump, "--pod", pod)
    expected = f"Error: --snapshot: {size} bytes, more than {size // 2} (half of the limit of the cgroup)"
    assert (result.exit_code, result.stderr.splitlines()) == (2, [expected])


def test_yaml_that_would_take_most_of_the_memory_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pod: str
) -> None:
    (tmp_path / "dump.yaml").write_bytes(b"kind: List\nitems: []\n" + b"#" * 1000)
    monkeypatch.setattr("app.commands.dump.memory_limit", lambda: MemoryLimit(32 * 1024, "the limit of the cgroup"))
    result = kindred("filter", "--snapshot", str(tmp_path / "dump.yaml"), "--pod", pod)
    expected = "Error: --snapshot: 1021 bytes of YAML, more than 512: dump it as JSON\n"
    assert (result.exit_code, result.stderr) == (2, expected)
