"""A file is read up to a bound; no module does it in another way."""

import ast
import os
import re
import subprocess
from collections.abc import Iterator
from errno import EFBIG, ETIMEDOUT
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from app.api_server.login import bearer_of_file
from app.api_server.tls import ConfigurationError, CredentialsError, PemSource
from app.commands.cli import main
from app.process.files import read_file
from app.server.auth import AdminToken

ENDLESS: Final = Path("/dev/zero")
ROOM: Final = Path(__file__).parents[2] / "app"
IN_ANOTHER_WAY: Final = {
    "process/files.py": "the functions themselves",
    "feeds/memory.py": "files of the kernel",
    "process/forked.py": "a file of the kernel",
    "admin/page_routes.py": "files of the package",
    "demo/__init__.py": "files of the package",
    "commands/serve.py": "files of the package",
    "commands/dump.py": "a file of the package; --snapshot goes through read_input",
    "commands/manifests.py": "opens for read_input, which has a bound",
    "commands/output.py": "the null device, in place of a stream that is closed",
    "api_server/tls.py": "writes a key for OpenSSL into memory",
}
OPENING: Final = {
    "read_text",
    "read_bytes",
    "write_text",
    "write_bytes",
    "open",
    "open_file",
    "load_cert_chain",
    "NamedTemporaryFile",
    "File",
}


def test_a_file_of_exactly_the_bound_is_read_and_a_longer_one_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 200_000)
    assert read_file(tmp_path / "f", 200_000) == b"x" * 200_000
    with pytest.raises(OSError, match="more than 199999 bytes") as caught:
        read_file(tmp_path / "f", 199_999)
    assert (caught.value.errno, caught.value.filename) == (EFBIG, str(tmp_path / "f"))


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
def test_a_device_without_end_is_refused_at_the_bound(device: str) -> None:
    with pytest.raises(OSError, match="more than 1000 bytes"):
        read_file(Path(device), 1000)


def test_a_pipe_is_read_to_its_end_also_if_its_writer_comes_later(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f")
    with subprocess.Popen(["/bin/sh", "-c", f"sleep 0.1; (echo a; sleep 0.1; echo b) > {tmp_path}/f"]):  # noqa: S603  # our own
        assert read_file(tmp_path / "f", 1000) == b"a\nb\n"


def test_a_pipe_that_never_ends_is_given_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f")
    writer = os.open(tmp_path / "f", os.O_RDWR)
    os.write(writer, b"begun")
    try:
        with pytest.raises(OSError, match="does not end") as caught:
            read_file(tmp_path / "f", 1000, patience=0.05)
    finally:
        os.close(writer)
    assert caught.value.errno == ETIMEDOUT


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_file(tmp_path, 1000)


BOUNDED: Final = {
    "settings": ("config", "--config", ENDLESS),
    "token": ("status", "--token-file", ENDLESS),
    "token-of-the-caller": ("status", "--caller-token-file", ENDLESS),
    "authorities": ("status", "--server", "https://127.0.0.1:1", "--ca-file", ENDLESS),
    "doctor-configuration": ("doctor", "--scheduler-config", ENDLESS),
    "doctor-authorities": ("doctor", "--url", "https://127.0.0.1:1", "--ca-file", ENDLESS),
    "doctor-certificate": ("doctor", "--url", "https://127.0.0.1:1", "--cert-file", ENDLESS, "--key-file", ENDLESS),
    "kubeconfig": ("why", "web", "--kubeconfig", ENDLESS),
    "scheduler-configuration": ("explain", "data/queue-3", "--demo", "--scheduler-config", ENDLESS),
    "manifest": ("filter", "--demo", "--pod", ENDLESS),
    "manifest-to-explain": ("explain", "--demo", "-f", ENDLESS),
    "dump": ("pending", "--snapshot", ENDLESS),
}


@pytest.mark.parametrize("arguments", BOUNDED.values(), ids=BOUNDED)
def test_a_command_reads_no_input_without_end(arguments: tuple[object, ...]) -> None:
    result = CliRunner().invoke(main, [*map(str, arguments)])
    assert (result.exit_code, type(result.exception)) == (2, SystemExit)
    error = result.stderr.splitlines()[-1]
    assert re.search(r"more than [0-9]+ bytes|a NUL at byte 0", error), error
    assert "/dev/zero" in error or error.startswith("Error: --"), error


def test_the_error_names_the_file_and_the_bound() -> None:
    result = CliRunner().invoke(main, ["config", "--config", "/dev/zero"])
    assert result.stderr == "Error: /dev/zero: more than 1048576 bytes\n"


def test_a_service_reads_no_token_and_no_key_without_end() -> None:
    with pytest.raises(ConfigurationError, match="KINDRED_ADMIN_TOKEN_FILE: token /dev/zero: more than 65536 bytes"):
        AdminToken(ENDLESS)
    with pytest.raises(CredentialsError, match="Prometheus: token file /dev/zero: more than 65536 bytes"):
        bearer_of_file(ENDLESS, "Prometheus")
    with pytest.raises(ConfigurationError, match="KINDRED_TLS_DIRECTORY: key /dev/zero: more than 1048576 bytes"):
        PemSource("KINDRED_TLS_DIRECTORY", "key", file="/dev/zero").read()


def opened_in(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in OPENING:
            yield called.attr
        elif isinstance(called, ast.Name) and called.id == "open":
            yield called.id


def test_no_module_reads_or_writes_a_file_in_another_way() -> None:
    opening = {str(module.relative_to(ROOM)) for module in ROOM.rglob("*.py") if any(opened_in(module))}
    assert opening == IN_ANOTHER_WAY.keys(), "use app.process.files"
