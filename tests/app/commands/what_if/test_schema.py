"""The answers in JSON are those of the published schema; the job of the examples ends with 1 if a zone cannot fail."""

import json
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from tests.app.commands.invoked import kindred
from tests.app.commands.what_if.asking import deployment, dump, node, replica, response

SCHEMA = json.loads(Path("docs/schemas/what-if.json").read_text("utf-8"))
JOB = yaml.safe_load(Path("docs/examples/zones.yaml").read_text("utf-8"))


@pytest.mark.parametrize(
    "words",
    [
        "drain node35 node36",
        "loss",
        "loss --by node --only node1",
        "removal node1 node2",
        "capacity shop/deploy/web --replicas 9",
    ],
)
def test_an_answer_is_of_the_schema(words: str) -> None:
    _, found = response(*words.split(), "--demo")
    titled = {each["title"]: each["$ref"] for each in SCHEMA["oneOf"]}
    schema = {"$ref": titled[words.split(maxsplit=1)[0]], "$defs": SCHEMA["$defs"]}
    jsonschema_rs.validator_for(schema).validate(found)


@pytest.mark.parametrize(("cpu", "status"), [("1", 0), ("3", 1)])
def test_the_job_ends_with_1_if_a_zone_cannot_fail(tmp_path: Path, cpu: str, status: int) -> None:
    pods = [replica(f"web-1a-{zone}", f"n{zone}", cpu) for zone in "abc"]
    path = dump(tmp_path, *(node(f"n{zone}", zone) for zone in "abc"), *pods, deployment(cpu=cpu))
    (step,) = JOB["jobs"]["zones"]["steps"]
    program, *words = step["run"].split()
    assert program == "kindred"
    assert kindred(*words, "--snapshot", path).exit_code == status
