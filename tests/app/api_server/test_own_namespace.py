"""The namespace of this replica: what the settings say, else what kubelet has mounted."""

from pathlib import Path

import pytest

import app.api_server.own_namespace
from app.api_server.own_namespace import own_namespace


@pytest.fixture
def mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "namespace"
    monkeypatch.setattr(app.api_server.own_namespace, "_SERVICE_ACCOUNT_NAMESPACE", file)
    return file


def test_our_own_namespace_is_that_of_the_service_account(mounted: Path) -> None:
    mounted.write_text("infra\n")
    assert own_namespace() == "infra"


def test_the_namespace_of_the_downward_api_comes_before_that_of_the_service_account(
    mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted.write_text("infra\n")
    monkeypatch.setenv("POD_NAMESPACE", "other")
    assert own_namespace() == "other"


@pytest.mark.parametrize("content", [None, b"\xff\xfe"], ids=["no-file", "not-utf-8"])
def test_no_namespace_is_known_where_the_file_cannot_be_read(mounted: Path, content: bytes | None) -> None:
    if content is not None:
        mounted.write_bytes(content)
    assert not own_namespace()
