"""Each `kindred` command line that people read: the program's parser takes it, it runs, and the shown output is true.

A line is a line of code in a page, a comment or a script, or inline code with arguments, also in what the program
prints. It runs in this process, in a folder with the files that lines name, beside a service over 20 nodes and the API
server of a cluster with the same objects. A page may bring its own file: a block of code that begins with `# NAME`.
"""

import ast
import json
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import Final, NamedTuple

import click
import httpx
import pytest
import yaml
from click.testing import CliRunner, Result
from fastapi import FastAPI

from app.admin.cluster_routes import units_router
from app.commands import cli
from app.commands.output import WIDTH
from app.feeds.release import ReleaseTracker
from app.settings.settings import Settings
from app.wiring.main import create_service
from core.objects.node import ZONE
from tests.app.api_server.client_setting import write_kubeconfig
from tests.app.asgi import ask
from tests.app.commands.why.cluster import SmallCluster, small_cluster
from tests.app.commands.why.command_runs import service
from tests.app.questions import mirror_of
from tests.builders import Object, make_namespace, make_node, make_pod
from tests.core.decoded import Builder
from tests.core.gangs.gang_setting import GangSetting, member, node
from tests.markdown import assert_rendered
from tests.openssl import Authority

ROOT: Final = Path.cwd()
PAGES: Final = ("README.md", "CONTRIBUTING.md", "SECURITY.md", *map(str, sorted(Path("docs").glob("*.md"))))
OTHERS: Final = (
    "docs/examples/**/*",
    "manifests/**/*",
    "compose/*",
    "release/*",
    "Makefile",
    "docker-compose.yml",
    "Dockerfile",
)

# Finding the lines.

FENCE: Final = re.compile(r"^( *)(```+|~~~+)(\w*)[^\n]*\n(.*?)^ *\2", re.MULTILINE | re.DOTALL)
INLINE: Final = re.compile(r"(?<!`)(`{1,2})(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
BEGIN: Final = re.compile(r"(?:[A-Z_]+=\S+ )*(?:kubectl )?(?:\S*/)?kindred ")
MODULE: Final = "app.commands.cli"
LAUNCHERS: Final = {"uvx", "pipx", "uv", "docker", "podman", "sudo", "exec", "env", "time", "watch", "xargs"}


class Line(NamedTuple):
    """The words behind the name of the program, the variables before it, and the output that the page shows."""

    where: str
    words: tuple[str, ...]
    variables: Mapping[str, str] = {}
    rendered: str = ""
    is_quoted: bool = False
    """Inline code: a name alone is then the name of the command."""

    def __str__(self) -> str:
        variables = "".join(f"{name}={value} " for name, value in self.variables.items())
        return f"{self.where}: {variables}kindred {shlex.join(self.words)}".rstrip()


def segments(text: str) -> Iterator[list[str]]:
    """Yield the words of each simple command of a line of shell, without redirections and comments."""
    while inner := re.search(r"[$<]\(([^()]*)\)", text):
        yield from segments(inner[1])
        text = f"{text[: inner.start()]}SUBSTITUTED{text[inner.end() :]}"
    lexer = shlex.shlex(text, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if word.strip("();|&") == "":
            yield words
            words = []
        elif word.strip("<>&") == "":
            words = words[:-1] if words[-1:] in (["1"], ["2"]) else words
            next(lexer, "")
        else:
            words.append(word)
    yield words


def called(where: str, words: Sequence[str], rendered: str = "", *, is_quoted: bool = False) -> Line | None:
    """Return the call of the program in a simple command. Raises AssertionError if it is unclear what runs it."""
    begin = next((place for place, word in enumerate(words) if not re.fullmatch(r"[A-Za-z_]\w*=.*", word)), 0)
    variables = dict(word.split("=", 1) for word in words[:begin])
    words = words[begin:]
    for place in range(len(words) - 1, -1, -1):
        name, before = PurePath(words[place]).name, words[:place]
        launched = not before or "--" in before or before[0] in LAUNCHERS or (before[-1], before[0]) == ("kubectl",) * 2
        is_image = name.startswith("kindred:") and launched
        is_module = list(words[place - 1 : place + 1]) == ["-m", MODULE]
        if is_image or is_module or (launched and name in {"kindred", "kubectl-kindred"}):
            return Line(where, tuple(words[place + 1 :]), variables, rendered, is_quoted)
        following = words[place + 1] if place + 1 < len(words) else ""
        assert name != "kindred" or following not in cli.COMMANDS, f"{where}: what runs this? {shlex.join(words)}"
    return None


def of_shell(where: str, block: str) -> Iterator[Line | None]:
    """Yield the calls in a block of shell. A line with an open quote goes on in the next ones."""
    lines = block.replace("\\\n", " ").splitlines()
    while lines:
        text, rendered = lines.pop(0), ""
        if "kindred" not in text and MODULE not in text:
            continue
        prompt, text = re.fullmatch(r" *(\$ )?(.*)", text).groups()  # type: ignore[union-attr]  # it matches any line
        while lines and any(text.count(quote) % 2 for quote in "'\""):
            text += "\n" + lines.pop(0)
        try:
            simple = [*segments(text)]
        except ValueError:  # an apostrophe of what a command prints
            continue
        if prompt:
            end = next((place for place, line in enumerate(lines) if line.lstrip().startswith("$ ")), len(lines))
            rendered = "".join(f"{line}\n" for line in lines[:end])
        yield from (called(where, words, rendered) for words in simple)


def of_text(where: str, text: str) -> Iterator[Line | None]:
    """Yield the calls in inline code, and in lines that are a command, also in a comment."""
    for quoted in INLINE.finditer(text):
        content = re.sub(r"\s*\n[#\s]*", " ", quoted[2])
        if re.match(BEGIN, f"{content} "):
            yield from (called(where, words, is_quoted=True) for words in segments(content))
    for line in re.sub(r"\\\n[#\s]*", " ", INLINE.sub("", text)).splitlines():
        content = line.lstrip("#@$ -\t") if not line.lstrip().startswith("$(") else line.strip()
        if re.match(BEGIN, content) or content.startswith("$("):
            yield from (called(where, words) for words in segments(content) if words)


def of_page(where: str, text: str) -> Iterator[Line | None]:
    for _, _, language, block in FENCE.findall(text):
        yield from (of_shell if language in {"console", "sh", "bash", ""} else of_text)(where, block)
    yield from of_text(where, re.sub(r"^#.*$", "", FENCE.sub("", text), flags=re.MULTILINE))


def of_program(path: Path) -> Iterator[Line | None]:
    """Yield the calls that a module names in its texts: help, messages and docstrings."""
    for each in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and "kindred" in each.value:
            yield from of_text(str(path), each.value)


def found() -> Iterator[Line | None]:
    for page in PAGES:
        yield from of_page(page, Path(page).read_text("utf-8"))
    for path in (path for pattern in OTHERS for path in sorted(Path().glob(pattern)) if path.is_file()):
        yield from (of_page if path.suffix == ".md" else of_text)(str(path), path.read_text("utf-8"))
    for path in sorted(Path("app").rglob("*.py")):
        yield from of_program(path)


LINES: Final = {str(line): line for line in found() if line and (line.words or line.variables)}
NO_LINES: Final = {"docs/explain.md: kindred and kube-scheduler": "a value of judged_by"}
MARKS: Final = {
    ("-f", "FILE"): "deployment.yaml",
    ("--add-node", "FILE"): "node.yaml",
    ("--config", "FILE"): "kindred.yaml",
    ("--kubeconfig", "FILE"): ".kube/config",
    ("--scheduler-config", "FILE"): "scheduler.yaml",
    ("--context", "NAME"): "prod",
    ("--scheduler-feature-gates", "TEXT"): "GenericWorkload=true",
    ("drain", "NODE"): "node-7",
    ("explain", "NAME"): "web",
    ("explain", "POD"): "shop/web-0",
    ("why", "POD"): "web-0",
    ("--why-not", "NODE"): "node-7",
    ("", "COMMAND"): "serve",
}
"""What stands for a name in capital letters behind an option or a command. Another such name is an error."""
MAY_SAY_NO: Final = {("explain",), ("why",), ("drain",), ("loss",), ("capacity",), ("removal",)}
"""Commands of which the status 1 is an answer."""
OF_A_POD: Final = {"explain": "shop/web-0", "why": "web-0"}
"""Commands of which inline code may leave out the pod, as in `kindred why --local`."""


def test_what_is_no_command_line_is_still_there() -> None:
    assert NO_LINES.keys() <= LINES.keys()
    assert len(LINES) > 100


# Parsing them.


def completed(line: Line) -> list[str]:
    """Return the words with names that exist. Raises AssertionError for a name in capitals that stands for nothing."""
    words = [MARKS.get((before, word), word) for before, word in zip(("", *line.words), line.words, strict=False)]
    assert not [word for word in words if re.fullmatch(r"[A-Z/]+", word)], f"{line}: what stands for that?"
    if line.is_quoted and words[0] in OF_A_POD:
        chosen = context_of([*words, *(["--help"] if len(words) == 1 else [])], is_lax=True).params
        return words if chosen["pod"] or chosen.get("file") else [*words, OF_A_POD[words[0]]]
    return words


def context_of(words: list[str], *, is_lax: bool = False) -> click.Context:
    """Parse words as the program does, without running it. Raises ClickException."""
    context = click.Context(cli.main, info_name="kindred")
    command = cli.main.get_command(context, words[0])
    if command is None:
        raise click.UsageError(f"no command {words[0]}")
    return command.make_context(words[0], words[1:], context, resilient_parsing=is_lax)


OF_OTHERS: Final = {"--runtime-config": "kube-apiserver", "--health-cmd": "docker"}


def test_an_option_that_a_sentence_names_is_one_of_a_command() -> None:
    context = click.Context(cli.main)
    commands = [command for name in cli.COMMANDS if (command := cli.main.get_command(context, name)) is not None]
    options = [option for command in (cli.main, *commands) for each in command.params for option in each.opts]
    known = {"--help", *options}
    texts = [FENCE.sub("", Path(page).read_text("utf-8")) for page in PAGES if page != "CONTRIBUTING.md"]
    assert {option for text in texts for option in re.findall(r"`(--[\w-]+)", text)} - known == OF_OTHERS.keys()


@pytest.mark.parametrize("name", sorted(LINES.keys() - NO_LINES.keys()))
def test_a_line_is_parsed(name: str, folder: Path) -> None:
    del folder
    line = LINES[name]
    if not line.words or line.words[0] == "--version":
        return
    words = completed(line)
    with context_of(words, is_lax="--help" in words or len(line.words) == 1):
        pass


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("$ .venv/bin/kindred status  # all", ["status"]),
        ("KINDRED_PROFILE=full kubectl kindred pending | head -3", ["pending"]),
        ("docker run --rm -v .:/x kindred:0.1.0 filter --pod a.yaml 2>/dev/null", ["filter", "--pod", "a.yaml"]),
        ("kubectl -n kindred exec deploy/kindred -- kindred status -o wide", ["status", "-o", "wide"]),
        ("docker exec kindred kindred units && true", ["units"]),
        ("uv run --with x kindred config > a.yaml", ["config"]),
        (".venv/bin/python -m app.commands.cli rbac \\\n  --bind true", ["rbac", "--bind", "true"]),
        ("cat <<EOT | kindred explain -f - --demo\nkind: Pod\nEOT", ["explain", "-f", "-", "--demo"]),
        ("diff <(kindred rbac) rbac.yaml", ["rbac"]),
        ('test -n "$(kindred pending -n shop -o name)"', ["pending", "-n", "shop", "-o", "name"]),
        ("kindred explain a/b --profile 'x,\ny'", ["explain", "a/b", "--profile", "x,\ny"]),
    ],
)
def test_a_line_is_found_in_whatever_runs_it(text: str, words: list[str]) -> None:
    page = f"Text.\n\n1. A list:\n\n   ```console\n   {text}\n   ```\n"
    assert [[*line.words] for line in of_page("page", page) if line is not None] == [words]


def test_inline_code_and_comments_are_lines_and_the_output_below_a_prompt_is_shown() -> None:
    page = (
        "Run `kindred\nstatus`, ``kindred `x` ``.\n\n```console\n$ kindred units\nNone\n$ ls\n```\n\n    kindred rbac\n"
    )
    reported = [(*line.words, line.rendered) for line in of_page("page", page) if line is not None]
    assert reported == [("units", "None\n"), ("status", ""), ("`x`", ""), ("rbac", "")]
    comment = "# Made by\n#   kindred rbac --config a \\\n#     --bind true\na: b\nrun:\n\t@$(BIN)/kindred serve\n"
    assert [[*line.words] for line in of_text("file", comment) if line is not None] == [
        ["rbac", "--config", "a", "--bind", "true"],
        ["serve"],
    ]
    with pytest.raises(AssertionError, match="what runs this"):
        [*of_page("page", "```sh\nnsenter -t 1 kindred status\n```\n")]


@pytest.mark.parametrize(
    "words",
    [
        "exlpain a/b",
        "explain a/b --why",
        "explain a/b -o names",
        "filter",
        "why a --locl",
        "units x",
        "pending --limit x",
    ],
)
def test_a_wrong_line_is_found(words: str) -> None:
    with pytest.raises(click.ClickException):
        context_of(words.split())


# Running them.

NODES: Final = ("node-a", "node-b", *(f"node-{number}" for number in range(1, 19)))
_WEB: Final = make_pod("web-0").in_namespace("shop").label("app", "web").requests(cpu="8").phase("Pending")
WEB: Final = _WEB.label("pod-template-hash", "5c").owned_by("ReplicaSet", "web-5c", "r")
WEB_TEMPLATE: Final = {"metadata": {"labels": {"app": "web"}}, "spec": WEB.obj()["spec"]}
DEPLOYMENT: Final = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": WEB_TEMPLATE},
}
CLUSTER: Final[Mapping[str, Sequence[Builder]]] = {
    "nodes": [
        make_node(name).label("kubernetes.io/hostname", name).label(ZONE, f"z{place % 2}").allocatable(cpu=4, pods=9)
        for place, name in enumerate(NODES)
    ],
    "pods": [WEB, *(make_pod(f"cache-{each}").in_namespace("shop").requests(cpu="1").on("node-7") for each in (1, 2))],
    "namespaces": [make_namespace("shop"), make_namespace("default")],
}


def manifest(kind: str, each: Object) -> Object:
    return {"apiVersion": "v1", "kind": kind, **each}


def write_files(folder: Path, api_server: str) -> None:
    """Write the files that lines name."""
    for name in ("docs", "manifests"):
        (folder / name).symlink_to(ROOT / name)
    kinds = {"nodes": "Node", "pods": "Pod", "namespaces": "Namespace"}
    items = [manifest(kinds[plural], each.obj()) for plural, objects in CLUSTER.items() for each in objects]
    node = make_node("node-19").allocatable(cpu=64, pods=9).obj()
    contents = {
        "cluster.json": {"apiVersion": "v1", "kind": "List", "items": items},
        "deployment.yaml": DEPLOYMENT,
        "node.yaml": manifest("Node", node),
        "pod.yaml": manifest("Pod", WEB.obj()),
        "kindred.yaml": {"apiVersion": "kindred.dev/v1alpha1", "kind": "KindredConfiguration"},
        "read-token": "secret",
        "token": "secret",
    }
    for name, content in contents.items():
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    for name in ("scheduler.yaml", "etc/kubernetes/kindred-scheduler.yaml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy("manifests/scheduler/score-offload.yaml", folder / name)
    (folder / ".kube").mkdir()
    kubeconfig = yaml.safe_load(Path(write_kubeconfig(folder / ".kube/config", api_server)).read_text())
    kubeconfig["contexts"][0]["context"]["namespace"] = "shop"
    kubeconfig["contexts"].append({**kubeconfig["contexts"][0], "name": "prod"})
    (folder / ".kube/config").write_text(json.dumps(kubeconfig))
    authority = Authority(folder / "etc")
    authority.make("server", "subjectAltName=IP:127.0.0.1")
    shutil.copytree(authority.directory(clients=True), folder, dirs_exist_ok=True)


def gangs() -> FastAPI:
    """Return the page of units of docs/gangs.md: 20 nodes, with room for three members of a gang of eight."""
    setting = GangSetting(*(node(name, 1) for name in NODES))
    web = [member(f"web-{number}", 4, "web").in_namespace("shop") for number in range(4)]
    train = [member(f"train-{number}", 8).in_namespace("shop") for number in range(8)]
    setting.see(*web, *train, *(make_pod(f"other-{each}").requests(cpu=1).on(NODES[each]) for each in range(13)))
    for pod in web:
        setting.ask(pod)
    setting.now = 239.0
    setting.ask(train[0])
    setting.now = 300.0
    app = FastAPI()
    app.include_router(units_router(lambda: setting.gangs.unit_statuses(setting.now)))
    return app


def served() -> tuple[FastAPI, FastAPI, FastAPI]:
    """Return the scheduler's port and the admin port of a service over the cluster, and the page of units."""
    settings = Settings(admin="127.0.0.1:0")
    mirror = mirror_of(*(each for objects in CLUSTER.values() for each in objects))
    release = ReleaseTracker(settings, mirror)
    release.take("v1.36.2", "server")
    found = create_service(settings, mirror, None, release=release)
    assert found.admin is not None
    return found.app, found.admin, gangs()


def fill(cluster: SmallCluster, admin: FastAPI) -> None:
    for plural, objects in CLUSTER.items():
        cluster.add(plural, *(each.obj() for each in objects))
    cluster.add("services", service("kindred-admin", {"name": "admin", "port": 8890}))
    cluster.admin = admin


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Go to a folder with the files, beside a service at the addresses of the pages and an API server."""
    made = tmp_path_factory.mktemp("lines")
    extender, admin, units = served()
    apps = {"127.0.0.1:8888": extender, "127.0.0.1:8890": admin}

    def response(request: httpx.Request) -> httpx.Response:
        app = units if request.url.path == "/units" else apps[request.url.netloc.decode()]
        reported = ask(app, request.method, str(request.url.raw_path, "ascii"), request.content, request.headers)
        return httpx.Response(reported.status_code, content=reported.content)

    client = partial(httpx.Client, transport=httpx.MockTransport(response))
    with small_cluster() as cluster, pytest.MonkeyPatch.context() as patched:
        fill(cluster, admin)
        write_files(made, cluster.url)
        patched.chdir(made)
        patched.setenv("HOME", str(made))
        patched.delenv("KUBECONFIG", raising=False)
        patched.setattr("httpx.Client", client)
        patched.setattr("app.commands.serve.logs.configure", lambda *_: None)
        patched.setattr(
            "app.commands.serve.process.run", lambda *_: 0
        )  # what is left of `serve` is to listen until a signal
        yield made


def bring(folder: Path, line: Line) -> None:
    """Write the files that the page or the file of a line brings."""
    text = (ROOT / line.where).read_text("utf-8")
    brought = {name: block for _, _, _, block in FENCE.findall(text) for name in re.findall(r"\A# (\S+)\n", block)}
    if line.where not in PAGES:
        brought[Path(line.where).name] = text
    for name in brought.keys() & {*line.words}:
        (folder / name).write_text(brought[name], "utf-8")


def run(folder: Path, line: Line) -> Result:
    bring(folder, line)
    words = [re.sub(r"^(~|(?=/etc/))", str(folder), word) for word in (completed(line) if line.words else [])]
    web = json.dumps(manifest("Pod", WEB.obj()))
    return CliRunner().invoke(cli.main, words, input=web, env=dict(line.variables), prog_name="kindred")


RUN: Final = [
    name for name, line in LINES.items() if name not in NO_LINES and not (line.is_quoted and len(line.words) == 1)
]


@pytest.mark.parametrize("name", sorted(RUN))
def test_a_line_runs_and_prints_what_the_page_shows(name: str, folder: Path) -> None:
    line = LINES[name]
    result = run(folder, line)
    if isinstance(result.exception, Exception):
        raise result.exception
    is_wrong = any("broken" in word for word in line.words)
    assert result.exit_code in ({0, 1} if line.words[:1] in MAY_SAY_NO else {is_wrong}), result.output
    if line.rendered:
        assert max(map(len, line.rendered.splitlines())) <= WIDTH
        # The numbers of the status in docs/commands.md are those of a large cluster.
        assert_rendered(result.output, line.rendered, *([r"\d[\d,.]*"] if line.words[0] == "status" else []))
