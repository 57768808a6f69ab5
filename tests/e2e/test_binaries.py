"""What a build of a Go program belongs to."""

from pathlib import Path

import pytest

from tests.e2e.binaries import CONTROL_PLANE, MODULE, BuildError, build_key, kubernetes_version, module_of, of_release

SOURCES = ("go.mod", "go.sum", "cmd/server/main.go", "cmd/server/flags.go", "cmd/other/main.go")
GO = "go version go1 linux/amd64"


@pytest.fixture
def module(tmp_path: Path) -> Path:
    for source in SOURCES:
        (tmp_path / source).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / source).write_text(source)
    return tmp_path


@pytest.mark.parametrize("changed", SOURCES[:-1])
def test_a_change_of_the_module_or_of_its_own_source_makes_another_build(module: Path, changed: str) -> None:
    before = build_key(module, "server", GO)
    (module / changed).write_text("changed")
    assert before != build_key(module, "server", GO)


def test_another_go_makes_another_build(module: Path) -> None:
    assert build_key(module, "server", GO) != build_key(module, "server", GO.replace("go1", "go2"))


def test_neither_a_change_nor_a_new_one_among_the_other_programs_makes_another_build(module: Path) -> None:
    before = build_key(module, "server", GO)
    (module / SOURCES[-1]).write_text("changed")
    (module / "cmd" / "new").mkdir()
    (module / "cmd" / "new" / "main.go").write_text("new")
    assert before == build_key(module, "server", GO)


def test_the_programs_of_benchmarks_are_no_part_of_the_control_plane() -> None:
    sources = {folder.name for folder in (MODULE / "cmd").iterdir()}
    assert sources == {*CONTROL_PLANE, "intree-affinity", "scheduler-perf"}


GO_MOD = """\
require (
\tgo.etcd.io/etcd/server/v3 v3.6.16
\texample.com/of/the/same/number v0.36.3
\tk8s.io/component-base v0.36.3
\tk8s.io/kubernetes v1.36.3
\tk8s.io/klog/v2 v2.140.0
)
replace (
\tk8s.io/api => k8s.io/api v0.36.3
)
"""


def test_another_release_changes_the_versions_of_kubernetes_alone() -> None:
    assert of_release(GO_MOD, "v1.36.3", "v1.37.1") == (
        GO_MOD.replace("v1.36.3", "v1.37.1")
        .replace("component-base v0.36.3", "component-base v0.37.1")
        .replace("k8s.io/api v0.36.3", "k8s.io/api v0.37.1")
    )


def test_for_its_own_release_the_module_is_as_it_is() -> None:
    assert module_of(kubernetes_version(MODULE)) == MODULE


@pytest.mark.parametrize("version", ["v1.37", "1.37.1", "latest", "v1.37.1/../x"])
def test_what_is_no_release_is_refused_before_a_module_is_made(version: str) -> None:
    with pytest.raises(BuildError, match=r"not a release such as v1\.\d+\.\d+"):
        module_of(version)
