"""What is replaced, patched and deleted: the request, and the answers that are success."""

import pytest

from app.api_server.client import ApiClient, StatusError
from tests.app.api_server.api_server import ApiServer, Request, in_turn, response
from tests.app.api_server.client_setting import PODS, Setting

POD = f"{PODS}/web"


async def patch(client: ApiClient, server: ApiServer) -> tuple[bytes, Request]:
    return await client.patch(f"{POD}/status", b'{"status":{}}'), server.requests[0]


async def delete(client: ApiClient, server: ApiServer) -> tuple[bytes, Request]:
    return await client.delete(POD, b'{"kind":"DeleteOptions"}'), server.requests[0]


async def put(client: ApiClient, server: ApiServer) -> tuple[bytes, Request]:
    return await client.put(POD, b'{"kind":"Pod"}'), server.requests[0]


def test_a_replacement_is_the_whole_object(setting: Setting) -> None:
    answer, request = setting.run(in_turn(response(b'{"kind":"Pod","spec":{}}')), put)
    assert answer == b'{"kind":"Pod","spec":{}}'
    assert request.line.startswith(f"PUT {POD} ")
    assert (request.body, request.headers["content-type"]) == (b'{"kind":"Pod"}', "application/json")


def test_a_patch_is_a_strategic_merge_patch(setting: Setting) -> None:
    answer, request = setting.run(in_turn(response(b'{"kind":"Pod"}')), patch)
    assert answer == b'{"kind":"Pod"}'
    assert request.line.startswith(f"PATCH {POD}/status ")
    assert request.body == b'{"status":{}}'
    assert request.headers["content-type"] == "application/strategic-merge-patch+json"


@pytest.mark.parametrize("status", ["200 OK", "202 Accepted"])
def test_a_deletion_says_with_which_options_and_may_take_its_time(setting: Setting, status: str) -> None:
    answer, request = setting.run(in_turn(response(b"{}", status=status)), delete)
    assert answer == b"{}"
    assert request.line.startswith(f"DELETE {POD} ")
    assert (request.body, request.headers["content-type"]) == (b'{"kind":"DeleteOptions"}', "application/json")


def test_accepted_is_no_success_of_a_patch(setting: Setting) -> None:
    with pytest.raises(StatusError, match="202 Accepted"):
        setting.run(in_turn(response(b"{}", status="202 Accepted")), patch)
