"""The modes that are measured are the registrations as they are shipped."""

import argparse

import pytest

from tests.throughput.modes import DEFAULT_MODES, MODES, chosen

URL = "http://127.0.0.1:1"


def test_the_ceiling_is_decide_without_its_extender() -> None:
    decide = MODES["decide"].config(URL)
    assert decide.pop("extenders")
    assert MODES["ceiling"].config(URL) == decide


def test_in_tree_is_what_the_scheduler_does_by_default() -> None:
    assert set(MODES["in-tree"].config(URL)) == {"apiVersion", "kind"}


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("in-tree", "default-scheduler"),
        ("score-offload", "default-scheduler"),
        ("full-offload", "default-scheduler"),
        ("decide", "kindred"),
        ("decide-any-node", "kindred"),
        ("ceiling", "kindred"),
    ],
)
def test_pods_ask_for_the_first_profile_of_the_mode(mode: str, expected: str) -> None:
    assert MODES[mode].scheduler_name == expected


def test_kindred_binds_in_full_offload_alone() -> None:
    assert [name for name in DEFAULT_MODES if "KINDRED_BIND" in MODES[name].settings] == ["full-offload"]


def test_names_are_read_in_the_order_in_which_they_are_given() -> None:
    assert chosen(MODES)("ceiling,in-tree") == [MODES["ceiling"], MODES["in-tree"]]


def test_a_name_that_is_not_known_is_an_error_that_lists_those_that_are() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"^best: not one of in-tree, score-offload, "):
        chosen(MODES)("in-tree,best")
