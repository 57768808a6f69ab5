"""What a build of a Go program belongs to."""

from pathlib import Path

import pytest

from tests.e2e.binaries import (
    CONTROL_PLANE,
    MODULE,
    BuildError,
    build_key,
    chosen_module,
    kubernetes_version,
    module_of,
    of_release,
    release_tags,
    staged_modules,
)

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
    assert sources == {*CONTROL_PLANE, "intree-affinity", "intree-plugins", "scheduler-perf"}


GO_MOD = """\
require (
\tgo.etcd.io/etcd/server/v3 v3.6.16
\texample.com/of/the/same/number v0.36.3
\tk8s.io/component-base v0.36.3
\tk8s.io/gone v0.36.3 // indirect
\tk8s.io/kubernetes v1.36.3
\tk8s.io/klog/v2 v2.140.0
)
replace (
\tk8s.io/component-base => k8s.io/component-base v0.36.3
\tk8s.io/gone => k8s.io/gone v0.36.3
)
"""


def test_another_release_changes_the_versions_of_kubernetes_alone() -> None:
    changed = of_release(GO_MOD, "v1.36.3", "v1.37.1", ["k8s.io/component-base", "k8s.io/gone"])
    assert changed == (
        GO_MOD.replace("v1.36.3", "v1.37.1").replace("v0.36.3", "v0.37.1").replace("number v0.37.1", "number v0.36.3")
    )


def test_another_release_has_other_modules_in_its_staging_folder() -> None:
    changed = of_release(GO_MOD, "v1.36.3", "v1.37.1", ["k8s.io/component-base", "k8s.io/new"])
    assert "k8s.io/gone" not in changed
    assert changed.endswith("replace k8s.io/new => k8s.io/new v0.37.1\n")


def test_the_modules_of_a_release_are_those_that_its_own_go_mod_replaces() -> None:
    go_mod = "replace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n\texample.com/x => example.com/y v1.0.0\n)\n"
    assert staged_modules(go_mod) == ["k8s.io/api"]


@pytest.mark.parametrize(
    ("version", "tags"), [("v1.34.1", []), ("v1.36.3", ["kubernetes1.35", "kubernetes1.36"])], ids=["oldest", "newer"]
)
def test_a_build_has_the_tag_of_its_release_and_of_those_before(version: str, tags: list[str]) -> None:
    assert release_tags(version) == tags


def test_for_its_own_release_the_module_is_as_it_is() -> None:
    assert module_of(kubernetes_version(MODULE)) == MODULE


@pytest.mark.parametrize("named", ["", kubernetes_version(MODULE), kubernetes_version(MODULE)[1:].rpartition(".")[0]])
def test_without_another_release_the_own_one_is_chosen(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINDRED_E2E_KUBERNETES", named)
    assert chosen_module() == MODULE


def test_a_chosen_release_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINDRED_E2E_KUBERNETES", "1.33")
    with pytest.raises(BuildError, match=r"1\.33: not a release such as .* none of 1\.34, .*1\.37"):
        chosen_module()


@pytest.mark.parametrize("version", ["v1.37", "1.3", "1.37.1", "latest", "v1.37.1/../x"])
def test_what_is_no_release_is_refused_before_a_module_is_made(version: str) -> None:
    with pytest.raises(BuildError, match=r"not a release such as v1\.\d+\.\d+"):
        module_of(version)
