"""What is said of a right that is missing."""

import asyncio

import pytest

from app.api_server.client import StatusError
from app.commands.why.cluster import MissingRightsError, Right, needing, user_in

FORBIDDEN = 'pods "web" is forbidden: User "system:serviceaccount:shop:dev" cannot get resource "pods"'


def test_the_user_the_verb_the_resource_the_namespace_and_the_rule_are_named() -> None:
    error = MissingRightsError([Right("get", "pods", namespace="shop")], "dev")
    assert [str(error), *error.rules] == [
        "dev may not get pods in namespace shop. Add to a Role in namespace shop:",
        '  - {apiGroups: [""], resources: ["pods"], verbs: ["get"]}',
    ]


def test_two_verbs_are_two_in_the_rule() -> None:
    error = MissingRightsError([Right("get,create", "pods/portforward", namespace="kindred")], "dev")
    assert [str(error), *error.rules] == [
        "dev may not get and create pods/portforward in namespace kindred. Add to a Role in namespace kindred:",
        '  - {apiGroups: [""], resources: ["pods/portforward"], verbs: ["get", "create"]}',
    ]


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (StatusError(403, "Forbidden", FORBIDDEN), MissingRightsError),
        (StatusError(403, "", "this token may only read"), StatusError),
        (StatusError(404, "NotFound", "not found"), StatusError),
    ],
    ids=["api-server", "service-behind-it", "another-refusal"],
)
def test_only_what_the_api_server_forbids_is_a_missing_right(raised: StatusError, expected: type[Exception]) -> None:
    async def ask() -> None:
        async with needing(Right("get", "pods", namespace="shop")):
            raise raised

    with pytest.raises(expected):
        asyncio.run(ask())


def test_the_user_is_the_one_that_the_api_server_names() -> None:
    assert user_in(FORBIDDEN) == "system:serviceaccount:shop:dev"
    assert user_in("no") == ""
