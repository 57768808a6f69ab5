"""Which release of Kubernetes a command answers for over a dump: by kubelets or the settings."""

import json
from pathlib import Path

import pytest

from tests.app.commands.test_explain_command import HOST, POD, ZONE, of_dump, told
from tests.app.dump.dumps import as_json, kinded, listed
from tests.builders import make_namespace, make_node


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the manifest of a pod."""
    (tmp_path / "pod.json").write_text(json.dumps(POD))
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param([], ("1.36", "nodes", "v1.36.2", []), id="the newest kubelet"),
        pytest.param(["--kubernetes", "1.35"], ("1.35", "setting", "1.35", []), id="the setting"),
        pytest.param(
            ["--feature-gates", "VolumeLimitScaling=true,NodeDeclaredFeatures=false"],
            ("1.36", "nodes", "v1.36.2", []),
            id="gates that the release has",
        ),
    ],
)
def test_a_dump_is_answered_as_the_release_of_its_newest_kubelet_or_of_the_settings(
    folder: Path, arguments: list[str], expected: tuple[str, str, str, list[str]]
) -> None:
    nodes = kinded(*(make_node(name).label(ZONE, name[0]).label(HOST, name) for name in ("a1", "a2")))
    for node, version in zip(nodes, ("v1.35.4", "v1.36.2"), strict=True):
        node["status"] = {**node.get("status", {}), "nodeInfo": {"kubeletVersion": version}}
    (folder / "dump.json").write_bytes(as_json(listed(*nodes, *kinded(make_namespace("default")))))
    result = of_dump(folder, "-f", "@pod.json", "-o", "json", *arguments)
    kubernetes = told(result)["kubernetes"]
    assert tuple(kubernetes[member] for member in ("release", "source", "told", "ignored_gates")) == expected
