"""As whom requests are made."""

import asyncio

import pytest

from app.api_server.client import ApiClient
from app.api_server.credential_errors import ConfigurationError
from app.api_server.credentials import load_credentials
from app.api_server.impersonation import NOBODY_ELSE, Impersonation
from tests.app.api_server.api_server import in_turn, response, serving
from tests.app.api_server.kubeconfigs import write_kubeconfig


def test_a_user_and_each_group_have_a_header() -> None:
    assert Impersonation("jane", ["a", "b"]).headers() == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
    )
    assert NOBODY_ELSE.headers() == ()


@pytest.mark.parametrize(
    ("impersonation", "message"),
    [
        (Impersonation("", ["a"]), "--as-group: needs --as"),
        (Impersonation("a\r\nX: y"), "--as: 'a.*' cannot be the value of a header"),
        (Impersonation("jane", ["ä"]), "--as-group: 'ä' cannot be the value of a header"),
        (Impersonation("jane", [""]), "--as-group: '' cannot be the value of a header"),
    ],
    ids=["groups-alone", "line-break", "no-ascii", "empty"],
)
def test_what_no_header_can_hold_is_refused(impersonation: Impersonation, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        impersonation.headers()


def test_requests_of_every_kind_say_it(tmp_path: object) -> None:
    async def ask() -> list[str]:
        async with serving(in_turn(response(b"{}"))) as api:
            kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", api.url)  # type: ignore[operator]  # a Path
            client = ApiClient(load_credentials(kubeconfig, None), Impersonation("jane"))
            await client.get("/api/v1/pods", {})
            await client.post("/api/v1/pods", b"{}")
            await client.post_to_proxy("/proxy/explain", {"node": ["a", "b"]}, b"{}", {"Kindred-Token": "t"})
            await client.close()
            assert api.requests[-1].query == {"node": ["a", "b"]}
            assert api.requests[-1].headers["kindred-token"] == "t"
            return [request.headers.get("impersonate-user", "") for request in api.requests]

    assert asyncio.run(ask()) == ["jane"] * 3
