"""`kindred replay`: of the service as it is now, of a saved state, its exit status, and what is said of bad input."""

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from fastapi import FastAPI

from app.admin.decisions_routes import decisions_router
from app.commands.cli import main
from app.commands.text_columns import WIDTH
from app.explain.conformance_case.case import CaseArgs
from app.explain.replay import Replayer
from app.long_work import LongWork
from app.objects.decode_pod import decode_pod
from app.settings import Settings
from app.wiring.engine import create_extender
from core.events import ClusterEvent
from tests.app.commands.test_debug_command import running
from tests.app.dump.dumps import as_json
from tests.app.explain.noted_decisions import Asking
from tests.app.questions import ANTI_AFFINITY_RULES, EXISTING_ANTI_AFFINITY_RULES, UNKNOWN, ZONE, by_name, shop
from tests.app.serving import kindred as running_kindred
from tests.app.serving import until
from tests.builders import Object, labelled, make_pod, term

REQUESTS = Path("app/demo/requests")
TARGET = "pod-podaffinity-target"
"""The pod on node1 that one of the demo requests wants to be near to, and another one not."""
FILTER_ANTI, FILTER_NEAR, PRIORITIZE, BAD_REQUEST, LARGE, BIND = "123456"
"""The decisions that the service keeps, by number."""


class Saved:
    """A service on the demo cluster that has decided, and what was saved of it afterwards."""

    def __init__(self, url: str, admin: str, folder: Path) -> None:
        self.url, self.folder = admin, folder
        near = json.loads((REQUESTS / "required-affinity.json").read_bytes())
        large = {**near, "NodeNames": [*near["NodeNames"], *(f"stranger-{n:0>60}" for n in range(200))]}
        for verb, body in (
            ("filter", (REQUESTS / "required-anti-affinity.json").read_bytes()),
            ("filter", (REQUESTS / "required-affinity.json").read_bytes()),
            ("prioritize", (REQUESTS / "web.json").read_bytes()),
            ("filter", b'{"Nod":1}'),
            ("filter", json.dumps(large).encode()),
            ("bind", b'{"PodName":"p","PodNamespace":"default","PodUID":"u","Node":"node1"}'),
        ):
            fetched(f"{url}/{verb}", body)
        for number in (FILTER_ANTI, FILTER_NEAR, PRIORITIZE, BAD_REQUEST, LARGE, BIND):
            self.save(f"{number}.json", fetched(f"{admin}/debug/decisions/{number}"))
        self.case: Object = json.loads(self.save("case.jsonl", fetched(f"{admin}/debug/decisions/{FILTER_ANTI}/case")))

    def save(self, name: str, text: bytes) -> bytes:
        (self.folder / name).write_bytes(text)
        return text

    def save_case(self, name: str, **changed: object) -> None:
        self.save(name, as_json({**self.case, **changed}))


def fetched(url: str, body: bytes | None = None) -> bytes:
    with urllib.request.urlopen(url, body) as response:  # noqa: S310  # our own service
        text: bytes = response.read()
    return text


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Saved]:
    folder = tmp_path_factory.mktemp("service")
    with running_kindred(folder, "serve", "--demo", "--port", "0", "--admin-port", "0") as process:
        until(lambda: "Debugging at " in process.stdout)
        (admin,) = re.findall(r"Debugging at (\S+)/debug/mirror", process.stdout)
        found = Saved(process.url, admin, folder)
        found.save_case("without-target.jsonl", pods=without(found.case["pods"], TARGET))
        found.save_case("without-node1.jsonl", nodes=without(found.case["nodes"], "node1"))
        found.save_case("without-shop.jsonl", pods=[
            pod for pod in found.case["pods"] if pod["metadata"]["namespace"] != "shop"
        ])  # fmt: skip
        found.save("two.jsonl", 2 * (found.folder / "case.jsonl").read_bytes())
        found.save("malformed.json", b'{"decision":')
        decision = json.loads(changed(found))["decision"]
        found.save("bad-time.json", changed(found, decision={**decision, "at": "yesterday"}))
        found.save("bad-outcome.json", changed(found, decision={**decision, "outcome": "perhaps"}))
        found.save("of-1-36.json", changed(found, decision={**decision, "kubernetes": "1.36"}))
        del decision["kubernetes"]
        found.save("of-before.json", changed(found, decision=decision))
        found.save("forgotten.json", changed(found, pod_sent=None, request=None))
        found.save(
            "settings.yaml", b"apiVersion: kindred.dev/v1alpha1\nkind: KindredConfiguration\nprofile: NodePorts\n"
        )
        yield found


def without(objects: list[Object], name: str) -> list[Object]:
    left = [each for each in objects if each["metadata"]["name"] != name]
    assert len(left) == len(objects) - 1
    return left


def changed(saved: Saved, **members: object) -> bytes:
    """Return what was told of a decision, with other members."""
    return json.dumps({**json.loads((saved.folder / f"{FILTER_ANTI}.json").read_bytes()), **members}).encode()


def replay(saved: Saved, *arguments: str, stdin: bytes = b"") -> Result:
    """Replay, with `@` before the names of files of the folder, and `@url` for the service."""
    placed = [re.sub(r"^@", f"{saved.folder}/", each) if each != "@url" else saved.url for each in arguments]
    return CliRunner().invoke(main, ["replay", *placed], input=stdin)


def told(result: Result) -> dict[str, Any]:
    assert result.exit_code in {0, 1}, result.output
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


SERVICE, CASE = ("--server", "@url"), ("--snapshot", "@case.jsonl")


# The same, and not the same.


@pytest.mark.parametrize("number", [FILTER_ANTI, FILTER_NEAR, PRIORITIZE, BAD_REQUEST])
def test_while_nothing_has_changed_every_way_to_ask_again_gives_the_same_answer(saved: Saved, number: str) -> None:
    for ways in (
        (number, *SERVICE),
        (number, *SERVICE, *CASE),
        (number, *SERVICE, "--demo"),
        (f"@{number}.json", *CASE),
        (f"@{number}.json", "--demo"),
    ):
        result = replay(saved, *ways)
        assert result.exit_code == 0, result.output
        assert result.stdout.startswith(f"Decision {number}, ")


def test_a_pod_that_is_gone_from_the_saved_state_is_another_answer_for_its_node(saved: Saved) -> None:
    for decision in ((FILTER_ANTI, *SERVICE), (f"@{FILTER_ANTI}.json",)):
        result = replay(saved, *decision, "--snapshot", "@without-target.jsonl")
        assert (result.exit_code, result.stdout.splitlines()[0]) == (
            1,
            "Decision 1, filter of pod dev/pod-podantiaffinity-required: another result for 1",
        )
        *_, head, row = result.stdout.splitlines()
        assert head.split() == ["NODE", "THEN", "NOW"]
        assert row == f"  node1  {ANTI_AFFINITY_RULES}  fits"


def test_what_has_changed_at_the_service_meanwhile_is_told(saved: Saved) -> None:
    asking = Asking(shop())
    asking.ask(by_name(make_pod("in").label("app", "intruder"), "a1", "b1", "c1"))
    asking.mirror.apply(ClusterEvent("Delete", decode_pod(make_pod("hermit").on("b1").json())))
    shy = make_pod("shy").required_anti_affinity(term(ZONE, labelled(app="intruder"))).on("c1")
    asking.mirror.apply(ClusterEvent("Add", decode_pod(shy.json())))
    app = FastAPI()
    replayer = Replayer(asking.mirror, lambda _: create_extender(Settings(), asking.mirror))
    app.include_router(decisions_router(asking.mirror, asking.decisions, replayer, CaseArgs(), LongWork()))
    with running(app) as server:
        result = replay(saved, "1", "--server", server.url, "--limit", "1")
    assert result.exit_code == 1
    assert "another result for 2 nodes." in result.stdout.splitlines()[0]
    assert result.stdout.endswith(f"  b1    {EXISTING_ANTI_AFFINITY_RULES}  fits\n  ... and 1 more node, see --limit\n")


def test_scores_that_differ_are_told(saved: Saved) -> None:
    answer = told(replay(saved, f"@{PRIORITIZE}.json", "--snapshot", "@without-shop.jsonl", "-o", "json"))
    then = {each["Host"]: each["Score"] for each in json.loads((saved.folder / "3.json").read_bytes())["answer"]}
    assert answer["differing_nodes"] == len(answer["differences"]) > 1
    assert {each["node"]: each["then"] for each in answer["differences"]}.items() <= then.items()
    assert all(each["now"] != each["then"] for each in answer["differences"])


def test_a_node_that_the_saved_state_does_not_have_is_unknown_there(saved: Saved) -> None:
    answer = told(replay(saved, f"@{FILTER_NEAR}.json", "--snapshot", "@without-node1.jsonl", "-o", "json"))
    assert answer["differences"] == [{"node": "node1", "then": "", "now": UNKNOWN}]
    assert (answer["then"]["outcome"], answer["now"]["outcome"]) == ("fit", "no_fit")


@pytest.mark.parametrize(
    ("arguments", "then", "now"),
    [
        pytest.param(["@of-1-36.json", *CASE], "1.36", "1.36", id="the release of then"),
        pytest.param(["@of-1-36.json", *CASE, "--kubernetes", "1.35"], "1.36", "1.35", id="the setting"),
        pytest.param(["@of-before.json", *CASE], "", "1.34", id="a release that was not recorded"),
    ],
)
def test_a_saved_decision_is_asked_again_as_of_its_release(
    saved: Saved, arguments: list[str], then: str, now: str
) -> None:
    answer = told(replay(saved, *arguments, "-o", "json"))
    assert (answer["then"]["kubernetes"], answer["now"]["kubernetes"]) == (then, now)


def test_a_saved_state_answers_as_the_service_does(saved: Saved) -> None:
    for number in (FILTER_ANTI, PRIORITIZE, LARGE):
        asked = told(replay(saved, number, *SERVICE, "-o", "json"))
        read = told(replay(saved, f"@{number}.json", *CASE, "-o", "json"))
        assert asked["now"].pop("generation") >= read["now"].pop("generation")
        assert asked == read


def test_what_was_too_large_to_be_kept_is_held_against_how_it_ended(saved: Saved) -> None:
    decision = json.loads((saved.folder / f"{LARGE}.json").read_bytes())
    assert (decision["request"], decision["answer"]) == (None, None)
    for ways in ((LARGE, *SERVICE), (f"@{LARGE}.json", *CASE)):
        same = replay(saved, *ways)
        assert (same.exit_code, same.stdout.splitlines()[0]) == (
            0,
            "Decision 5, filter of pod dev/pod-podaffinity-required: the same outcome.",
        )
    other = replay(saved, f"@{LARGE}.json", "--snapshot", "@without-node1.jsonl")
    assert (other.exit_code, "another outcome" in other.stdout) == (1, True)


def test_as_many_differences_are_told_as_are_asked_for(saved: Saved) -> None:
    asked = (f"@{PRIORITIZE}.json", "--snapshot", "@without-shop.jsonl")
    number = told(replay(saved, *asked, "-o", "json"))["differing_nodes"]
    assert len(told(replay(saved, *asked, "-o", "json", "--limit", "1"))["differences"]) == 1
    assert replay(saved, *asked, "--limit", "1").stdout.endswith(f"  ... and {number - 1} more nodes, see --limit\n")
    assert len(told(replay(saved, PRIORITIZE, *SERVICE, "-o", "json", "--limit", "0"))["differences"]) == 0


def test_the_request_that_was_kept_is_asked_and_not_one_made_of_the_answer(saved: Saved) -> None:
    request = json.loads(changed(saved))["request"]
    decision = changed(saved, request={**request, "NodeNames": ["node1"]})
    answer = told(replay(saved, "-", *CASE, "-o", "json", stdin=decision))
    assert (answer["now"]["nodes"], answer["differing_nodes"]) == (1, 5)


def test_yaml_says_what_json_says(saved: Saved) -> None:
    asked = (f"@{PRIORITIZE}.json", "--snapshot", "@without-shop.jsonl", "-o")
    assert yaml.safe_load(replay(saved, *asked, "yaml").stdout) == told(replay(saved, *asked, "json"))


def test_nothing_is_wider_than_a_hundred_columns(saved: Saved) -> None:
    for ways in ((BAD_REQUEST, *SERVICE), (f"@{LARGE}.json", *CASE), (f"@{PRIORITIZE}.json", *CASE)):
        assert max(map(len, replay(saved, *ways).stdout.splitlines())) <= WIDTH


# The settings of a saved state.


@pytest.mark.parametrize("given", [("--profile", "NodePorts"), ("--config", "@settings.yaml")])
def test_the_plugins_are_those_of_the_settings(saved: Saved, given: tuple[str, str]) -> None:
    answer = told(replay(saved, f"@{FILTER_ANTI}.json", *CASE, *given, "-o", "json"))
    assert answer["differences"] == [{"node": "node1", "then": ANTI_AFFINITY_RULES, "now": ""}]


@pytest.mark.parametrize(
    ("variable", "value", "told_now"),
    [
        pytest.param("PARTITION", '{"out":["node2"]}', ("fit", ["node2"]), id="partition"),
        pytest.param("BYPASS_NAMESPACES", "dev", ("bypassed", ["node1"]), id="bypass"),
    ],
)
def test_all_settings_hold_that_schedulers_are_answered_by(
    saved: Saved, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, told_now: tuple[str, list[str]]
) -> None:
    monkeypatch.setenv(f"KINDRED_{variable}", value)
    answer = told(replay(saved, f"@{FILTER_ANTI}.json", *CASE, "-o", "json"))
    assert (answer["now"]["outcome"], [each["node"] for each in answer["differences"]]) == told_now


def test_broken_objects_of_a_saved_state_are_passed_over_where_that_is_asked_for(saved: Saved) -> None:
    saved.save_case("broken.jsonl", pods=[*saved.case["pods"], {"metadata": {}}])
    asked = (f"@{FILTER_ANTI}.json", "--snapshot", "@broken.jsonl")
    refused, passed_over = replay(saved, *asked), replay(saved, *asked, "--skip-invalid")
    place = f"pods[{len(saved.case['pods'])}] (Pod ?): metadata.name: required"
    assert (refused.exit_code, refused.stderr) == (2, f"Error: {place}\n")
    assert (passed_over.exit_code, passed_over.stderr.splitlines()[0]) == (0, f"Invalid: {place}")


# Bad input.


NOT_FOR_FILES = "is for a decision by its number, not from a file."
NOT_FOR_SERVICES = "is for a dump (--snapshot or --demo), not for a running service."
EXPECTED = "expected the response of GET /debug/decisions/N."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param([], "Missing argument 'DECISION'.", id="nothing"),
        pytest.param(["@1.json"], "1.json: not a number, so a file. A file needs a dump: give --snapshot FILE "
                     "or --demo.", id="file-alone"),
        pytest.param(["@1.json", *SERVICE], f"--server {NOT_FOR_FILES}", id="file-of-a-service"),
        pytest.param(["@1.json", *CASE, "--token-file", "@1.json"], f"--token-file {NOT_FOR_FILES}", id="file-token"),
        pytest.param(["1", *SERVICE, "--profile", "full"], f"--profile {NOT_FOR_SERVICES}", id="profile-of-a-service"),
        pytest.param(["1", *SERVICE, "--config", "@settings.yaml"], f"--config {NOT_FOR_SERVICES}",
                     id="config-of-a-service"),
        pytest.param(["1", *SERVICE, "--skip-invalid"], f"--skip-invalid {NOT_FOR_SERVICES}", id="skip-of-a-service"),
        pytest.param(["@1.json", "--demo", *CASE], "Give either --snapshot FILE or --demo.", id="two-dumps"),
        pytest.param(["-", "--snapshot", "-"], "DECISION -: --snapshot reads standard input already.",
                     id="one-input-for-two"),
        pytest.param(["-", *CASE], f"DECISION -: malformed JSON: input data was truncated; {EXPECTED}", id="empty"),
        pytest.param(["@absent.json", *CASE], "absent.json: No such file or directory.", id="no-such-file"),
        pytest.param(["@1.json", "--snapshot", "@absent.json"], "absent.json': No such file or directory",
                     id="no-such-dump"),
        pytest.param(["@malformed.json", *CASE], "malformed.json: malformed JSON: input data was truncated; "
                     f"{EXPECTED}", id="malformed"),
        pytest.param(["@case.jsonl", *CASE], f"case.jsonl: object missing required field decision; {EXPECTED}",
                     id="a-case-as-decision"),
        pytest.param(["@bad-time.json", *CASE], "bad-time.json: decision.at: expected a time in the format of "
                     f"RFC 3339, got 'yesterday'; {EXPECTED}", id="time"),
        pytest.param(["@bad-outcome.json", *CASE], "bad-outcome.json: decision.outcome: invalid enum value 'perhaps'; "
                     f"{EXPECTED}", id="outcome"),
        pytest.param(["@1.json", "--snapshot", "@two.jsonl"], "2 golden cases, one in each line; a dump is one of them",
                     id="two-cases"),
        pytest.param(["@1.json", "--snapshot", "@1.json"], "items: required; a dump is what", id="a-decision-as-dump"),
        pytest.param(["@1.json", *CASE, "--profile", "nonsense"], "KINDRED_PROFILE='nonsense'", id="profile"),
        pytest.param(["@1.json", "--demo", "--limit", "1001"], "'--limit': 1001 is not in the range 0<=x<=1000.",
                     id="limit"),
        pytest.param(["@6.json", *CASE], "decision 6: only filter and prioritize can be replayed, and this was bind",
                     id="another-verb"),
        pytest.param(["6", *SERVICE, *CASE], "Error: decision 6: only filter and prioritize can be replayed",
                     id="another-verb-by-number"),
        pytest.param(["6", *SERVICE], "409 Conflict: decision 6: only filter and prioritize can be replayed, and this "
                     "was bind", id="another-verb-of-a-service"),
        pytest.param(["@forgotten.json", *CASE], "decision 1: the service no longer has its request or its pod",
                     id="forgotten"),
        pytest.param(["7", *SERVICE], "404 Not Found: decision 7: there was none yet", id="not-yet"),
        pytest.param(["7", *SERVICE, *CASE], "404 Not Found: decision 7: there was none yet", id="not-yet-with-a-case"),
        pytest.param(["0", *SERVICE], "number: Input should be greater than or equal to 1",
                     id="zero"),
        pytest.param(["1", "--server", "http://127.0.0.1:1"], "Error: no service at 127.0.0.1:1 (Connection refused): ",
                     id="nobody-there"),
        pytest.param(["1", "--server", "http://127.0.0.1:1", *CASE], "Error: no service at 127.0.0.1:1 (Conn",
                     id="nobody-there-with-a-case"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line_that_names_it(saved: Saved, arguments: list[str], message: str) -> None:
    result = replay(saved, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    line = result.stderr.splitlines()[-1]
    assert line.startswith("Error: ")
    assert message in line


def test_another_service_is_told_from_the_admin_port(saved: Saved) -> None:
    app = FastAPI()
    with running(app) as server:
        assert replay(saved, "1", "--server", server.url).stderr == f"Error: {server.url}: 404 Not Found: Not Found\n"
        app.post("/debug/decisions/1/replay")(lambda: ["hello"])
        app.get("/debug/decisions/1")(lambda: ["hello"])
        for ways in ((), CASE):
            result = replay(saved, "1", "--server", server.url, *ways)
            assert (result.exit_code, result.stderr) == (2, f"Error: {server.url}: is that the admin port?\n")
