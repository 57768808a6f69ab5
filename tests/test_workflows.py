"""The workflows for GitHub have no more rights than they need, run pinned actions, and call targets that exist."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

WORKFLOWS: dict[str, dict[str, Any]] = {
    path.stem: yaml.safe_load(path.read_text("utf-8")) for path in sorted(Path(".github/workflows").glob("*.yml"))
}
each_workflow = pytest.mark.parametrize("name", WORKFLOWS)


ACTION = re.compile(r"uses: ([^@\s]+)@(\S+)(?:  # (\S+))?$", re.MULTILINE)


def steps(name: str) -> Iterator[Mapping[str, Any]]:
    for job in WORKFLOWS[name]["jobs"].values():
        yield from job["steps"]


def commands(name: str) -> list[str]:
    return [step["run"] for step in steps(name) if "run" in step]


def targets(text: str) -> list[str]:
    return re.findall(r"^make ([a-z0-9-]+)", text, re.MULTILINE)


@each_workflow
def test_a_target_that_is_called_is_in_the_makefile(name: str) -> None:
    makefile = Path("Makefile").read_text("utf-8")
    called = [target for command in commands(name) for target in targets(command)]
    assert called
    for target in called:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@each_workflow
def test_a_workflow_may_read_and_a_job_with_rights_has_those_that_it_needs(name: str) -> None:
    workflow = WORKFLOWS[name]
    assert workflow["permissions"] == {"contents": "read"}
    rights = {job: each["permissions"] for job, each in workflow["jobs"].items() if "permissions" in each}
    assert (
        rights
        == {
            "ci": {},
            "release": {
                "sign": {"id-token": "write", "attestations": "write"},
                "publish": {"contents": "write", "packages": "write"},
            },
            "update": {"propose": {"contents": "write", "pull-requests": "write"}},
        }[name]
    )


@each_workflow
def test_no_text_of_another_person_gets_into_a_command(name: str) -> None:
    assert not any("${{" in command for command in commands(name)), (
        "variables of the environment are quoted, these are not"
    )


def test_only_a_tag_makes_a_release_and_the_tag_is_held_against_the_version() -> None:
    # Unquoted, YAML 1.1 would read the key as true.
    assert WORKFLOWS["release"]["on"] == {"push": {"tags": ["v*"]}}
    assert 'TAG="$GITHUB_REF_NAME"' in "\n".join(commands("release"))


def test_an_action_is_pinned_by_its_commit_and_the_same_one_everywhere() -> None:
    texts = [path.read_text("utf-8") for path in Path(".github/workflows").glob("*.yml")]
    pins: dict[str, set[tuple[str, str]]] = {}
    for action, commit, version in (found for text in texts for found in ACTION.findall(text)):
        assert re.fullmatch("[0-9a-f]{40}", commit), action
        assert re.fullmatch(r"v\d+\.\d+\.\d+", version), action
        pins.setdefault(action, set()).add((commit, version))
    assert pins.keys() == {
        step["uses"].partition("@")[0] for name in WORKFLOWS for step in steps(name) if "uses" in step
    }
    assert {action: len(each) for action, each in pins.items()} == dict.fromkeys(pins, 1)


@each_workflow
def test_no_variable_of_the_environment_becomes_one_of_make(name: str) -> None:
    taken = set(re.findall(r"\$\(([A-Z_]+)\)", Path("Makefile").read_text("utf-8")))
    assert {"IMAGE", "TAG", "BASE_DIGEST"} <= taken
    workflow = WORKFLOWS[name]
    places = [workflow, *workflow["jobs"].values(), *steps(name)]
    assert {variable for place in places for variable in place.get("env", {})} & taken == set()
