"""The caller's own token: which one it is, and that only `--send-token` sends it."""

import asyncio
from pathlib import Path

import pytest

from app.api_server.client import ApiClient
from app.api_server.credentials import load_credentials
from app.commands.why.command import _own_token
from app.commands.why.service import Caller
from tests.app.api_server.client_setting import write_kubeconfig


@pytest.mark.parametrize("own_token", ["", "my-0wn"])
def test_the_own_token_is_sent_where_that_is_asked_for(tmp_path: Path, own_token: str) -> None:
    config = write_kubeconfig(tmp_path / "of-token", "https://127.0.0.1:6443", user={"token": "my-0wn"})
    credentials = load_credentials(config, None)
    assert asyncio.run(_own_token(credentials)) == "my-0wn"
    caller = Caller(ApiClient(credentials), "read-0nly", None, own_token)
    assert caller.headers == {
        "Kindred-Token": "read-0nly",
        **({"Kindred-Caller-Token": own_token} if own_token else {}),
    }
