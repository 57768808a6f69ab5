"""Pods by what people call them: one, none, or several of one name."""

import pytest

from app.explain.explain_request import UnknownError
from app.explain.known_pods import the_one
from core.objects.pod import Pod

WEB, AGAIN = (Pod(uid, "default", "web") for uid in ("u1", "u2"))


def test_a_pod_that_alone_has_the_name_is_the_one() -> None:
    assert the_one({"default/web": [WEB]}, "default/web", "pod") is WEB


@pytest.mark.parametrize(
    ("pods", "problem"),
    [
        ([], "pod default/web: neither in the mirror nor in a recent request"),
        ([WEB, AGAIN], "pod default/web: there are several of that name: u1, u2"),
    ],
    ids=["none", "two"],
)
def test_none_and_several_are_told(pods: list[Pod], problem: str) -> None:
    with pytest.raises(UnknownError, match=problem):
        the_one({"default/web": pods}, "default/web", "pod")
