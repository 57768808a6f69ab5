"""docker-compose.yml: mounted files and named targets exist, and ports are open only on the loopback."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from app.settings.configuration import load_configuration
from app.settings.settings import PortRule, port_rule
from tests.app.serving import demo_server

DOCUMENT: Final[dict[str, Any]] = yaml.safe_load(Path("docker-compose.yml").read_text("utf-8"))
SERVICES: Final[dict[str, dict[str, Any]]] = DOCUMENT["services"]
DOCS: Final = Path("docs/install.md").read_text("utf-8")
each_service = pytest.mark.parametrize("name", SERVICES)


def mounts(name: str) -> dict[str, Path]:
    """Return path in the container -> mounted file, for a service."""
    parts = [volume.split(":") for volume in SERVICES[name].get("volumes", [])]
    assert all(mode == "ro" for _, _, mode in parts)
    return {inside: Path(outside) for outside, inside, _ in parts}


def mounted(name: str, inside: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(mounts(name)[inside].read_text("utf-8"))
    return document


def address(service: str) -> str:
    """Return the address of a service for other services: its name, and its port in the container."""
    (port,) = SERVICES[service]["ports"]
    return f"{service}:{port.rpartition(':')[2]}"


def test_the_demo_alone_is_started_unless_a_profile_is_named() -> None:
    profiles = {name: service.get("profiles", []) for name, service in SERVICES.items()}
    assert profiles == {"kindred": [], "load": ["load"], "prometheus": ["observe"], "grafana": ["observe"]}


def test_the_docs_name_the_profiles_and_the_ports_of_what_they_add() -> None:
    for name in ("load", "observe"):
        assert f"docker compose --profile {name} up" in DOCS
    for service in SERVICES.values():
        for port in service["ports"]:
            assert f"127.0.0.1:{port.split(':')[1]}" in DOCS


@each_service
def test_it_has_no_rights_no_port_beyond_the_loopback_a_healthcheck_without_shell_and_files_that_exist(
    name: str,
) -> None:
    service = SERVICES[name]
    assert [port for port in service["ports"] if not re.fullmatch(r"127\.0\.0\.1:(\d+):\1", port)] == []
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "network_mode", "pid", "cap_add", "user"} & set(service)
    assert service["healthcheck"]["test"][0] == "CMD"
    assert [str(file) for file in mounts(name).values() if not file.is_file()] == []


def test_the_checks_of_health_find_a_service_and_miss_none(tmp_path: Path) -> None:
    text = Path("Dockerfile").read_text("utf-8").replace("\\\n", "")
    of_image = json.loads(re.findall(r"^HEALTHCHECK .* CMD (\[.*\])$", text, re.MULTILINE)[0])
    _, *of_compose = SERVICES["kindred"]["healthcheck"]["test"]

    def finds(command: Sequence[str], **environment: str) -> bool:
        requested = [sys.executable, *command[1:]]
        run = subprocess.run(requested, env=environment, capture_output=True, check=False)  # noqa: S603  # our own arguments
        return run.returncode == 0

    closed = "1"
    with demo_server(tmp_path) as server:
        port = server.url.rpartition(":")[2]
        assert finds(of_image, KINDRED_LISTEN=f"0.0.0.0:{port}", http_proxy=f"http://127.0.0.1:{closed}")
        assert finds(of_image, KINDRED_LISTEN=f"0.0.0.0:{closed}", KINDRED_HEALTH_PORT=port)
        assert not finds(of_image, KINDRED_LISTEN=f"0.0.0.0:{port}", KINDRED_HEALTH_PORT=closed)
        assert finds([word.replace("8888", port) for word in of_compose])
    assert not finds([word.replace("8888", closed) for word in of_compose])


@each_service
def test_images_have_a_tag_or_a_target_and_can_be_pinned(name: str) -> None:
    service = SERVICES[name]
    if "build" in service:
        text = Path("Dockerfile").read_text("utf-8")
        assert re.search(rf"^FROM \S+ AS {service['build'].get('target', 'kindred')}$", text, re.MULTILINE)
        for argument, value in service["build"]["args"].items():
            assert re.search(rf'^ARG {argument}=""$', text, re.MULTILINE)
            assert value == f"${{{argument}:-}}"
    else:
        variable = f"{name.upper()}_IMAGE"
        assert re.fullmatch(rf"\${{{variable}:-[\w./-]+:v?\d+\.\d+\.\d+}}", service["image"])
        assert variable in DOCS


def test_the_load_asks_the_demo_what_the_demo_can_answer() -> None:
    *options, user = SERVICES["load"]["command"]
    assert f"--host=http://{address('kindred')}" in options
    # Not imported: locust replaces the sockets and threads of the whole process.
    assert f"class {user}(SchedulerUser):" in Path("tests/load/locustfile.py").read_text("utf-8")
    requests = [option.partition("=")[2] for option in options if option.startswith("--request=")]
    assert requests
    for request in requests:
        assert (Path("app/demo") / request).is_file()


def test_prometheus_scrapes_the_demo_and_loads_the_alerts() -> None:
    config = mounted("prometheus", "/etc/prometheus/prometheus.yml")
    (job,) = config["scrape_configs"]
    assert job["static_configs"] == [{"targets": [address("kindred")]}]
    rules = mounted("prometheus", "/etc/prometheus/prometheusrule.yaml")
    jobs = re.findall(r'job=~?"([^"]+)"', str(rules))
    assert jobs
    assert [pattern for pattern in jobs if not re.fullmatch(pattern, job["job_name"])] == []


def test_prometheus_extracts_the_rules_as_the_file_says() -> None:
    rule = mounts("prometheus")["/etc/prometheus/prometheusrule.yaml"].read_text("utf-8")
    reported = re.search(r"^#   (sed '[^']+') (\S+) > (\S+)$", rule, re.MULTILINE)
    assert reported is not None
    (command,) = SERVICES["prometheus"]["command"]
    (loaded,) = mounted("prometheus", "/etc/prometheus/prometheus.yml")["rule_files"]
    assert command.startswith(f"{reported[1]} /etc/prometheus/{reported[2]} > {loaded} && exec prometheus ")
    assert loaded.endswith(f"/{reported[3]}")
    command_line = shlex.split(reported[1])
    extracted = subprocess.run(  # noqa: S603  # sed, of the file
        command_line, input=rule, capture_output=True, text=True, check=True
    ).stdout
    assert yaml.safe_load(extracted) == yaml.safe_load(rule)["spec"]


def test_grafana_finds_prometheus_and_the_dashboard() -> None:
    provisioning = "/etc/grafana/provisioning"
    (source,) = mounted("grafana", f"{provisioning}/datasources/kindred.yaml")["datasources"]
    assert (source["type"], source["url"]) == ("prometheus", f"http://{address('prometheus')}")
    assert source["isDefault"] is True, "the dashboard takes the default one"
    (provider,) = mounted("grafana", f"{provisioning}/dashboards/kindred.yaml")["providers"]
    dashboards = {inside for inside in mounts("grafana") if inside.startswith(f"{provider['options']['path']}/")}
    assert dashboards == {SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]}


def test_what_the_image_is_made_of_is_in_the_context_of_the_build() -> None:
    copied = re.findall(r"^COPY (?!--from)(\S+) ", Path("Dockerfile").read_text("utf-8"), re.MULTILINE)
    retained = {line[1:] for line in Path(".dockerignore").read_text("utf-8").split() if line.startswith("!")}
    for path in copied:
        parts = Path(path).parts
        known = {"requirements*.lock" if parts[0].startswith("requirements") else parts[0], "/".join(parts[:2])}
        assert known & retained, path


def test_the_image_of_the_load_has_every_module_that_locust_imports(tmp_path: Path) -> None:
    copied = re.findall(r"^COPY (tests/\S+) ", Path("Dockerfile").read_text("utf-8"), re.MULTILINE)
    (tmp_path / "tests").mkdir()
    for each in map(Path, copied):
        (shutil.copytree if each.is_dir() else shutil.copy)(each, tmp_path / each)
    # Without the site module, so that the editable install does not add the tests of this checkout.
    path = [str(tmp_path), str(Path.cwd()), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    program = f"import sys; sys.path += {path!r}; import tests.load.locustfile"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)  # noqa: S603 - our own program
    assert done.returncode == 0, done.stderr


def test_the_image_is_described_as_the_project_is_and_made_of_locks_that_are_there() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    text = Path("Dockerfile").read_text("utf-8")
    named = set(re.findall(r"requirements[\w-]*\.lock", DOCS + text))
    assert {"requirements.lock", "requirements-load.lock"} <= named
    assert [lock for lock in named if not Path(lock).is_file()] == []
    assert f'image.description="{project["description"]}"' in text
    assert f'image.licenses="{project["license"]}"' in text


def test_compose_itself_finds_no_fault() -> None:
    command = next((tool for tool in (["docker", "compose"], ["docker-compose"]) if works(tool)), None)
    if command is None:
        pytest.skip("there is no docker compose here")
    options = ["--profile", "load", "--profile", "observe", "config", "--quiet"]
    found = subprocess.run([*command, *options], capture_output=True, text=True, check=False)  # noqa: S603  # our own arguments
    assert (found.returncode, found.stderr) == (0, "")


def works(tool: Sequence[str]) -> bool:
    if shutil.which(tool[0]) is None:
        return False
    return not subprocess.run([*tool, "version"], capture_output=True, check=False).returncode  # noqa: S603  # our own arguments


def test_the_image_and_the_service_start_with_their_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    image = Path("Dockerfile").read_text("utf-8")
    for name, value in re.findall(r"^(?:ENV)?\s+(KINDRED_\w+)=(\S+)", image, re.MULTILINE):
        monkeypatch.setenv(name, value)
    for name, value in SERVICES["kindred"].get("environment", {}).items():
        monkeypatch.setenv(name, value)
    (command,) = re.findall(r'^CMD (\["serve".*\])$', image, re.MULTILINE)
    assert SERVICES["kindred"].get("command", json.loads(command)) == ["serve", "--demo", "--listen", "0.0.0.0:8888"]
    settings = load_configuration(flags={"listen": "0.0.0.0:8888"}).settings  # the flag of the command
    assert int(SERVICES["kindred"]["stop_grace_period"].removesuffix("s")) > settings.grace_period
    assert "KINDRED_LISTEN" not in re.sub(r"(?m)^port = .*$", "", image)  # a variable would win over a file of settings
    assert port_rule(settings, "extender") == PortRule(is_open=True, guarded=())
