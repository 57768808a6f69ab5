"""What is refused before it is decoded, and how much is told of it."""

import json

import pytest

from app.limits import error_json, refuse_too_many_elements
from app.watch.decode import DecodeError


def test_five_million_elements_are_allowed_and_more_are_not() -> None:
    refuse_too_many_elements(b"," * 5_000_000)
    with pytest.raises(DecodeError, match=r"^body: more than 5000000 elements$"):
        refuse_too_many_elements(b"," * 5_000_001)


def test_a_message_is_cut_to_a_length_that_a_log_line_can_take() -> None:
    assert json.loads(error_json('say "no"')) == 'say "no"'
    assert len(json.loads(error_json("é" * 20_000))) == 8192
