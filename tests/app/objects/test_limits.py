"""What is refused before it is decoded, and how much is told of it."""

import json

import pytest

from app.objects.decode import DecodeError
from app.objects.limits import error_json, reason_json, refuse_too_many_elements


def test_five_million_elements_are_allowed_and_more_are_not() -> None:
    refuse_too_many_elements(b"," * 5_000_000)
    with pytest.raises(DecodeError, match=r"^body: more than 5000000 elements$"):
        refuse_too_many_elements(b"," * 5_000_001)


def test_a_message_is_cut_to_a_length_that_a_log_line_can_take() -> None:
    assert json.loads(error_json('say "no"')) == 'say "no"'
    assert len(json.loads(error_json("é" * 20_000))) == 8192


def test_why_a_node_failed_is_cut_shorter_as_it_stands_once_for_each_node() -> None:
    assert json.loads(reason_json('say "no"')) == 'say "no"'
    assert len(json.loads(reason_json("é" * 20_000))) == 1024
