"""`kindred filter` in every format."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click import unstyle
from click.testing import CliRunner, Result

from app.commands.cli import main
from app.commands.filter import filter_names, filter_text
from app.commands.output import WIDTH, laid_out
from tests.app.dump.dumps import as_json, kinded, listed
from tests.builders import make_namespace, make_node, make_pod, term

HOST = "kubernetes.io/hostname"
WEB = {"matchLabels": {"app": "web"}}
RULES = "node(s) didn't match pod anti-affinity rules"
FILTERED: dict[str, Any] = {
    "Nodes": None,
    "NodeNames": ["a1"],
    "FailedNodes": {"b1": RULES},
    "FailedAndUnresolvableNodes": {"c1": "node(s) didn't match pod affinity rules"},
    "Error": "",
}


@pytest.fixture
def asked(tmp_path: Path) -> list[str]:
    """Return the arguments for a pod that must not be beside the one on b1."""
    pod = make_pod("next").required_anti_affinity(term(HOST, WEB))
    nodes = (make_node(name).label(HOST, name) for name in ("a1", "b1"))
    dump = listed(*kinded(*nodes, make_pod("web").label("app", "web").on("b1"), make_namespace("default")))
    (tmp_path / "dump.json").write_bytes(as_json(dump))
    (tmp_path / "pod.json").write_text(json.dumps(pod.obj()))
    return ["--snapshot", str(tmp_path / "dump.json"), "--pod", str(tmp_path / "pod.json")]


def kindred(*arguments: str) -> Result:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return result


def test_filter_prints_the_message_of_the_protocol_unless_another_format_is_wanted(asked: list[str]) -> None:
    plain = kindred("filter", *asked).stdout
    assert json.loads(plain)["FailedNodes"] == {"b1": RULES}
    assert kindred("filter", *asked, "-o", "json").stdout == plain
    assert yaml.safe_load(kindred("filter", *asked, "-o", "yaml").stdout) == json.loads(plain)
    assert kindred("filter", *asked, "-o", "name").stdout == "node/a1\n"
    assert kindred("filter", *asked, "-o", "table").stdout.splitlines() == [
        "Fits on 1 of 2 nodes.",
        "NODE  VERDICT  REASON",
        "a1    fits",
        f"b1    fails    {RULES}",
    ]


def test_unresolvable_nodes_are_apart_from_those_that_preemption_could_help() -> None:
    lines = unstyle(laid_out(filter_text(FILTERED, wide=False))).splitlines()
    assert lines[0] == "Fits on 1 of 3 nodes."
    assert [line.split()[:2] for line in lines[2:]] == [["a1", "fits"], ["b1", "fails"], ["c1", "unresolvable"]]
    assert list(filter_names(FILTERED)) == ["node/a1"]


def test_an_error_is_all_there_is_to_say() -> None:
    refused = {**dict.fromkeys(FILTERED), "Error": "too much work"}
    assert laid_out(filter_text(refused, wide=False)) == "Error: too much work"
    assert list(filter_names(refused)) == []


def test_long_names_are_whole_in_wide_text_alone() -> None:
    long = "n" * 253
    filtered = {**FILTERED, "NodeNames": [], "FailedNodes": {long: RULES}}
    assert max(map(len, unstyle(laid_out(filter_text(filtered, wide=False))).splitlines())) <= WIDTH
    assert f"{long}  fails" in laid_out(filter_text(filtered, wide=True))
