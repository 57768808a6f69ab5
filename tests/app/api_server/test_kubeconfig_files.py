"""Merging kubeconfig files, and finding what has a name."""

from pathlib import Path

import msgspec
import pytest
import yaml

from app.api_server.credential_errors import ConfigurationError
from app.api_server.kubeconfig_files import KubeconfigFiles


class Cluster(msgspec.Struct):
    """Some entry."""

    server: str = ""


def write(path: Path, document: object) -> str:
    path.write_text(yaml.safe_dump(document))
    return str(path)


def clusters(*names: str, server: str = "s") -> dict[str, object]:
    return {"clusters": [{"name": name, "cluster": {"server": server}} for name in names]}


def test_an_entry_is_found_with_the_folder_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    write(tmp_path / "sub" / "config", clusters("a", "b"))
    monkeypatch.chdir(tmp_path)
    found = KubeconfigFiles(["sub/config"]).entry("here", "cluster", "b", Cluster)
    assert found == (Cluster("s"), tmp_path / "sub")


def test_of_equal_names_the_first_file_counts(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    first = write(tmp_path / "one" / "config", clusters("a", server="first"))
    second = write(tmp_path / "two" / "config", clusters("a", "b", server="second"))
    files = KubeconfigFiles([first, second])
    assert files.entry("here", "cluster", "a", Cluster) == (Cluster("first"), tmp_path / "one")
    assert files.entry("here", "cluster", "b", Cluster) == (Cluster("second"), tmp_path / "two")


def test_the_first_current_context_counts(tmp_path: Path) -> None:
    first = write(tmp_path / "first", clusters("a"))
    second = write(tmp_path / "second", {"current-context": ""})
    third = write(tmp_path / "third", {"current-context": "three"})
    fourth = write(tmp_path / "fourth", {"current-context": "four"})
    assert KubeconfigFiles([first, second, third, fourth]).current_context() == "three"


def test_without_current_context_it_says_which_there_are(tmp_path: Path) -> None:
    file = write(tmp_path / "config", {"contexts": [{"name": "x", "context": {}}, {"name": "y", "context": {}}]})
    with pytest.raises(ConfigurationError) as caught:
        KubeconfigFiles([file]).current_context()
    assert str(caught.value) == f"kubeconfig {file}: no context given and no current-context; there are: x, y"


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(clusters("a", "b"), "here: no cluster z; there are: a, b", id="others"),
        pytest.param({"clusters": None}, "here: no cluster z; there is no cluster", id="none"),
        pytest.param({"clusters": [{"name": 7}]}, "here: no cluster z; there is no cluster", id="nameless"),
        pytest.param(
            {"clusters": [{"name": "z", "cluster": {"server": 7}}]},
            "here: cluster z: cluster.server: expected str, got int",
            id="wrong-type",
        ),
        pytest.param(
            {"clusters": [{"name": "z", "cluster": "x"}]},
            "here: cluster z: cluster: expected object, got str",
            id="text",
        ),
    ],
)
def test_what_is_missing_or_of_the_wrong_type_is_named(tmp_path: Path, document: object, expected: str) -> None:
    files = KubeconfigFiles([write(tmp_path / "config", document)])
    with pytest.raises(ConfigurationError) as caught:
        files.entry("here", "cluster", "z", Cluster)
    assert str(caught.value) == expected


def test_an_entry_without_contents_is_an_empty_one(tmp_path: Path) -> None:
    file = write(tmp_path / "config", {"clusters": [{"name": "a", "cluster": None}]})
    assert KubeconfigFiles([file]).entry("here", "cluster", "a", Cluster).value == Cluster()


SHAPE = "empty or not a kubeconfig: clusters, contexts and users are lists of entries with a name"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(None, "No such file or directory", id="missing"),
        pytest.param(b"", SHAPE, id="empty"),
        pytest.param(b"# a comment\n", SHAPE, id="comment"),
        pytest.param(b"just text", SHAPE, id="text"),
        pytest.param(b"[a, b]", SHAPE, id="list"),
        pytest.param(b"clusters: {a: b, c: d}", SHAPE, id="mapping-of-clusters"),
        pytest.param(b"clusters: 7", SHAPE, id="number-of-clusters"),
        pytest.param(b"users: [{user: {}}, {name: b}]", SHAPE, id="nameless-user"),
        pytest.param(b"a: [", "not YAML: while parsing a flow node expected the node content, ", id="not-yaml"),
        pytest.param(b"\xff\xfe\xff", "not YAML: ", id="not-text"),
        pytest.param(b"a: \x00", "not YAML: unacceptable character", id="control-character"),
        pytest.param(b"a: " + b"[" * 3000, "not YAML: maximum recursion depth exceeded", id="deep"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_in_one_line(tmp_path: Path, text: bytes | None, expected: str) -> None:
    file = tmp_path / "config"
    if text is not None:
        file.write_bytes(text)
    with pytest.raises(ConfigurationError) as caught:
        KubeconfigFiles([str(file)])
    assert str(caught.value).startswith(f"kubeconfig {file}: {expected}")
    assert "\n" not in str(caught.value)
