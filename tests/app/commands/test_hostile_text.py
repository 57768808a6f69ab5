"""No command prints a control character of others, and no data begin a line. A new command needs an entry here."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml
from click.testing import CliRunner

from app.commands import cli
from app.commands.cli import main
from app.commands.output import OutputFormat
from app.objects.decode_groups import decode_scheduling_group
from app.process.logs import escaped
from app.settings.settings import Settings
from app.wiring.main import create_service
from core.events import ClusterEvent
from tests.app.api_server.client_setting import write_kubeconfig
from tests.app.asgi import ask
from tests.app.commands.running import running
from tests.app.commands.why.cluster import small_cluster
from tests.app.questions import by_name, mirror_of
from tests.builders import make_node, make_pod
from tests.http_server import Handler, http_server

WORD: Final = "FORGED"
HOSTILE: Final = (
    f"x\x1b[7m\x1b]0;title\x07\r\n{WORD}: line\n{WORD}\x7f\x9b7m\u202e\u2066\u061c\u200b\ufe0f\u2028{WORD}\x85{WORD}"
)
"""For arguments, file names and YAML. None of our own colours is `7`."""
WITH_NUL: Final = f"{HOSTILE}\x00"
"""For JSON."""
SHORT: Final = f"x\x1b[7m\x9b\n{WORD}\u202e\u2028{WORD}\x00"
"""For labels, which have 63 bytes."""
OUR_COLOURS: Final = re.compile(r"\x1b\[(?:0|1|2|3[0-7])m")


class Places(NamedTuple):
    """What the commands are given: everything in it is hostile."""

    folder: Path
    dump: str
    """A dump that can be read, but for some of its objects."""
    broken: str
    """A file with names that no reader accepts."""
    settings: str
    scheduler: str
    kubeconfig: str
    service: str
    """The admin port of a service with hostile names."""
    foreign: str
    """A server that refuses each request with hostile words."""
    nonsense: str
    """A server that returns hostile JSON."""
    manifest: str


Runs = Callable[[Places], Sequence[Sequence[str]]]


def of_service(*words: str) -> Runs:
    return lambda at: [
        [*words, "--server", at.service],
        [*words, "--server", at.service, "-o", "wide"],
        [*words, "--server", at.service, "-o", "json"],
        [*words, "--server", at.service, "-o", "yaml"],
        [*words, "--server", at.foreign],
        [*words, "--server", at.nonsense],
        [*words, "--server", f"http://{HOSTILE}/"],
        [*words, "--server", at.service, "--token-file", str(at.folder / HOSTILE)],
    ]


def of_dump(*words: str) -> Runs:
    """Return runs in every format, and of bad input in one."""
    return lambda at: [
        *([*words, "--snapshot", at.dump, "--skip-invalid", "-o", each.value] for each in OutputFormat),
        [*words, "--snapshot", at.broken],
        [*words, "--snapshot", at.dump, "--skip-invalid", "--config", at.settings],
        [*words, "--snapshot", at.dump, "--skip-invalid", "--profile", HOSTILE],
    ]


def what_if(*words: str) -> Runs:
    return lambda at: [
        *(
            [*words, "--snapshot", at.dump, "--skip-invalid", "-o", output]
            for output in ("table", "wide", "json", "yaml")
        ),
        [*words, "--snapshot", at.broken],
        [*words, "--snapshot", at.dump, "--skip-invalid", "--scheduler-config", at.scheduler],
        [*words, "--kubeconfig", at.kubeconfig, "--context", HOSTILE],
    ]


def both(*runs: Runs) -> Runs:
    return lambda at: [each for run in runs for each in run(at)]


COMMANDS: Final[Mapping[str, Runs]] = {
    "capacity": both(
        what_if("capacity", "-f", "MANIFEST"),
        what_if("capacity", f"shop/{HOSTILE}"),
        of_service("capacity", f"shop/{HOSTILE}"),
    ),
    "config": lambda at: [
        ["config", "--config", at.settings],
        ["config", "--config", str(at.folder / HOSTILE)],
        ["config", "--partition", HOSTILE],
        ["config", "--partition", HOSTILE, "-o", "json"],
        ["config", "--partition", HOSTILE, "-o", "table"],
        ["config", "--listen", HOSTILE],
    ],
    "doctor": lambda at: [
        ["doctor", "--scheduler-config", at.scheduler],
        ["doctor", "--scheduler-config", at.scheduler, "-o", "wide"],
        ["doctor", "--scheduler-config", at.scheduler, "-o", "yaml"],
        ["doctor", "--scheduler-config", at.broken],
        ["doctor", "--scheduler-config", str(at.folder / HOSTILE)],
        ["doctor", "--url", at.foreign],
        ["doctor", "--url", HOSTILE],
        ["doctor", "--kubeconfig", at.kubeconfig, "--context", HOSTILE],
        ["doctor", "--scheduler-config", at.scheduler, "--extender", HOSTILE, "--config", at.settings],
    ],
    "drain": both(what_if("drain", "n1"), what_if("drain", HOSTILE), of_service("drain", HOSTILE)),
    "explain": both(
        of_service("explain", f"shop/{HOSTILE}"),
        of_service("explain", "-f", "MANIFEST"),
        of_dump("explain", f"shop/{HOSTILE}"),
        of_dump("explain", "-f", "MANIFEST", "--why-not", HOSTILE),
        of_dump("explain", "-f", "MANIFEST", "--assume", f"shop/{HOSTILE}@{HOSTILE}"),
        lambda at: [["explain", "-f", at.manifest, "--snapshot", at.dump, "--scheduler-config", at.scheduler]],
    ),
    "filter": of_dump("filter", "--pod", "MANIFEST", "--nodes", HOSTILE),
    "loss": both(
        what_if("loss", "--by", "zone"), what_if("loss", "--by", HOSTILE), of_service("loss", "--by", HOSTILE)
    ),
    "pending": both(of_service("pending", "-n", HOSTILE), of_service("pending"), of_dump("pending")),
    "rbac": lambda at: (
        [["rbac", "--service-account", HOSTILE, "-o", output] for output in ("table", "yaml", "json", "name")]
        + [["rbac", "--leader-election", HOSTILE], ["rbac", "--config", at.settings], ["rbac", "--profile", HOSTILE]]
    ),
    "removal": both(what_if("removal"), what_if("removal", HOSTILE), of_service("removal")),
    "serve": lambda at: [
        ["serve", "--config", at.settings],
        ["serve", "--snapshot", at.broken],
        ["serve", "--demo", "--context", HOSTILE, "--listen", HOSTILE],
        ["serve", "--kubeconfig", at.kubeconfig, "--context", HOSTILE],
        ["serve", "--kubeconfig", str(at.folder / HOSTILE)],
    ],
    "status": of_service("status"),
    "units": both(of_service("units"), of_service("units", "-n", HOSTILE)),
    "why": lambda at: (
        [
            ["why", *words, "--kubeconfig", at.kubeconfig, *more]
            for words in ([HOSTILE], [f"{HOSTILE}/x"], ["a", "b", HOSTILE], [f"deploy/{HOSTILE}"])
            for more in (["-n", "shop"], ["-n", HOSTILE], ["--context", HOSTILE], ["-A"])
        ]
        + [
            ["why", "gated", "-n", "shop", "--kubeconfig", at.kubeconfig, "--local", "--why-not", HOSTILE, "-o", output]
            for output in ("table", "wide", "json", "yaml", "name")
        ]
        + [["why", "gated", "-n", "shop", "--kubeconfig", at.kubeconfig, "--service", HOSTILE]]
    ),
}


def objects() -> list[dict[str, Any]]:
    waiting = make_pod("waiting").in_namespace("shop").requests(cpu="100").obj()
    waiting["metadata"] |= {"labels": {"app": SHORT, SHORT: "x"}, "annotations": {WITH_NUL: WITH_NUL}}
    condition = {"type": "PodScheduled", "status": "False", "reason": WITH_NUL, "message": WITH_NUL}
    waiting["status"] = {"phase": "Pending", "nominatedNodeName": WITH_NUL, "conditions": [condition]}
    waiting["spec"] |= {"schedulerName": WITH_NUL, "schedulingGroup": {"podGroupName": "team"}}
    gated = make_pod("gated").in_namespace("shop").obj()
    gated["spec"]["schedulingGates"] = [{"name": WITH_NUL}]
    node = make_node("n1").label("zone", SHORT).allocatable(cpu="1").taint(HOSTILE, HOSTILE, "NoSchedule").obj()
    named = make_pod(HOSTILE).in_namespace("shop").obj()
    invalid = {"kind": "Pod", "metadata": {"name": WITH_NUL, "namespace": SHORT, "labels": {"a": 1}}, "spec": {}}
    return [
        {"kind": "Namespace", "metadata": {"name": "shop", "labels": {"a": SHORT}}},
        {"kind": "Node", **node},
        {"kind": "Node", **make_node(WITH_NUL).allocatable(cpu="1").obj()},
        *({"kind": "Pod", **each} for each in (waiting, gated, named)),
        pod_group(),
        invalid,
    ]


def pod_group() -> dict[str, Any]:
    condition = {"type": WITH_NUL, "status": "False", "reason": WITH_NUL, "message": WITH_NUL}
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PodGroup",
        "metadata": {"name": "team", "namespace": "shop"},
        "status": {"conditions": [{**condition, "lastTransitionTime": WITH_NUL}]},
    }


@contextmanager
def server(status: int, body: object) -> Iterator[str]:
    text = json.dumps(body).encode()

    class Same(Handler):
        def respond(self) -> None:
            self.body()
            self.reply(status, text)

    with http_server(Same) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    folder = tmp_path_factory.mktemp("hostile")

    def written(name: str, text: str) -> str:
        (folder / name).write_text(text, "utf-8")
        return str(folder / name)

    items = objects()
    pods = [make_pod("waiting").in_namespace("shop").requests(cpu="100"), make_pod(HOSTILE).in_namespace("shop")]
    pods[0] = pods[0].in_scheduling_group("team").scheduler(HOSTILE)
    mirror = mirror_of(make_node(HOSTILE).allocatable(cpu="1"), *pods)
    mirror.apply(ClusterEvent("Add", decode_scheduling_group(json.dumps(pod_group()).encode())))
    service = create_service(Settings(admin="127.0.0.1:0"), mirror, None)
    ask(service.app, "POST", "/filter", by_name(make_pod(HOSTILE), HOSTILE))
    assert service.admin is not None
    extender = {"urlPrefix": f"http://{WITH_NUL}", "filterVerb": WITH_NUL, "managedResources": [{"name": WITH_NUL}]}
    profile = {"schedulerName": WITH_NUL, "plugins": {"filter": {"enabled": [{"name": WITH_NUL}]}}}
    scheduler = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
        "extenders": [extender],
        WITH_NUL: 1,
    }
    with (
        small_cluster() as cluster,
        running(service.admin) as admin,
        server(418, {"detail": WITH_NUL}) as foreign,
        server(200, {WITH_NUL: WITH_NUL}) as nonsense,
    ):
        for item in items:
            metadata = {"namespace": "", "uid": "u", **item["metadata"]}
            cluster.add(f"{item['kind'].lower()}s", {**item, "metadata": metadata})
        kubeconfig = yaml.safe_load(Path(write_kubeconfig(folder / "plain", cluster.url)).read_text("utf-8"))
        kubeconfig["contexts"].append({"name": HOSTILE, "context": {"cluster": HOSTILE, "user": HOSTILE}})
        yield Places(
            folder,
            dump=written("dump.json", json.dumps({"kind": "List", "items": items})),
            broken=written("broken.json", json.dumps({"kind": "List", "items": items[-1:], WITH_NUL: 1})),
            settings=written(f"s{HOSTILE}.yaml", yaml.safe_dump({HOSTILE: HOSTILE, "profile": HOSTILE})),
            scheduler=written("scheduler.yaml", json.dumps(scheduler)),
            kubeconfig=written("kubeconfig", yaml.safe_dump(kubeconfig)),
            service=admin.url,
            foreign=foreign,
            nonsense=nonsense,
            manifest=written("pod.json", json.dumps(items[3])),
        )


def problem(printed: str) -> str:
    """Return what no output may have: a character that has to be escaped, or a line that begins with data."""
    plain = OUR_COLOURS.sub("", printed)
    raw = sorted({repr(each) for each in plain if each != "\n" and escaped(each) != each})
    forged = [line for line in plain.split("\n") if line.lstrip().startswith(WORD)]
    return f"{raw} {forged}" if raw or forged else ""


def test_each_command_has_an_entry() -> None:
    assert sorted(cli.COMMANDS) == sorted(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_prints_a_control_character_or_a_line_of_others(command: str, places: Places) -> None:
    runs = [
        *COMMANDS[command](places),
        [command, f"--{HOSTILE}"],
        [command, "extra", HOSTILE, HOSTILE],
    ]
    quoting = 0
    for run in runs:
        words = [places.manifest if word == "MANIFEST" else word for word in run]
        result = CliRunner().invoke(main, words, color=True)
        assert isinstance(result.exception, SystemExit | None), (words, result.exception)
        assert not problem(result.stdout), (words, result.stdout)
        assert not problem(result.stderr), (words, result.stderr)
        quoting += WORD in result.stdout + result.stderr
    assert quoting >= len(runs) / 3, "few of these runs print something hostile at all"


@pytest.mark.parametrize("words", [[HOSTILE], ["config", HOSTILE], [f"--{HOSTILE}"]], ids=["command", "sub", "option"])
def test_an_unknown_command_is_quoted_with_escapes(words: Sequence[str]) -> None:
    result = CliRunner().invoke(main, words, color=True)
    assert (result.exit_code, problem(result.stderr), WORD in result.stderr) == (2, "", True)


def test_the_program_itself_prints_the_same(places: Places) -> None:
    ran = subprocess.run(  # noqa: S603  # our own program
        [sys.executable, "-m", "app.commands.cli", "pending", "--skip-invalid", "--snapshot", places.dump],
        capture_output=True,
        check=False,
        timeout=120,
    )
    for printed in (ran.stdout.decode(), ran.stderr.decode()):
        assert not problem(printed), printed
    assert WORD in ran.stderr.decode()


def test_a_fault_of_kindred_is_printed_with_escapes() -> None:
    program = (
        "from app.commands.cli import main; "
        f"main.callback = lambda: (_ for _ in ()).throw(ValueError({HOSTILE!r})); "
        "main(['config', 'schema'], prog_name='kindred')"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=120)  # noqa: S603  # our own
    assert ran.returncode == 1
    assert "ValueError" in ran.stderr.decode()
    assert not [line for line in ran.stderr.decode().split("\n") if line.startswith(WORD)]
    assert "\x1b" not in ran.stderr.decode()
