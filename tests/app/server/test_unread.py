"""Where received bytes are cut before they are parsed."""

import pytest

from app.server.unread import Unread, head_of_whole_request

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


def pieces(*received: bytes, most: int = 1000) -> list[bytes]:
    """Take pieces after each reception until nothing is left."""
    unread, found = Unread(), []
    for data in received:
        unread.add(data)
        while unread:
            found.append(bytes(unread.take_until_end(most)))
    return found


def test_a_piece_ends_with_the_head() -> None:
    assert pieces(GET + GET + b"garbage") == [GET, GET, b"garbage"]


@pytest.mark.parametrize("cut", range(len(GET) - 3, len(GET)))
@pytest.mark.parametrize("most", [1, 2, 3, 1000])
def test_an_end_is_found_that_came_in_two_parts(cut: int, most: int) -> None:
    found = pieces(GET[:cut], GET[cut:] + b"xyz", most=most)
    assert GET in [b"".join(found[:count]) for count in range(len(found))]


def test_an_end_that_came_byte_by_byte_is_found() -> None:
    unread, found = Unread(), []
    for byte in b"a\r\n\r\r\n\r\n":
        unread.add(bytes([byte]))
        unread.take_until_end(100)
        found.append(unread.at_end)
    assert found == [False] * 7 + [True]


def test_a_new_request_does_not_complete_the_end_of_the_last_one() -> None:
    assert pieces(b"a\r\n\r\n", b"\r\nb") == [b"a\r\n\r\n", b"\r\nb"]


def test_no_piece_is_larger_than_wanted() -> None:
    assert pieces(b"a" * 25, most=10) == [b"a" * 10, b"a" * 10, b"a" * 5]


def test_what_is_put_back_comes_first() -> None:
    unread = Unread()
    unread.add(b"abcdef")
    piece = unread.take(4)
    unread.put_back(piece[2:])
    unread.add(b"gh")
    assert bytes(unread.take(100)) == b"cdefgh"
    assert not unread


def test_empty_lines_are_skipped_at_once() -> None:
    unread = Unread()
    unread.add(b"\r\n" * 1000 + b"GET")
    assert unread.skip_empty_lines() == 2000
    assert unread.skip_empty_lines() == 0
    assert bytes(unread.take(10)) == b"GET"


HEAD = b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (HEAD + b"{}", len(HEAD)),
        (HEAD + b"{", 0),
        (HEAD + b"{}garbage", 0),
        (HEAD.replace(b": 2", b": 20") + b"{}", 0),
        (GET, 0),
        (b"\r\n\r\nContent-Length: 2\r\n", 0),
        (b"Content-Length: 2", 0),
    ],
    ids=["whole", "a-part", "more", "longer", "no-length", "behind-the-head", "no-head"],
)
def test_only_one_request_to_its_last_byte_is_whole(data: bytes, expected: int) -> None:
    assert head_of_whole_request(data, 1000) == expected


def test_a_large_head_is_taken_in_pieces() -> None:
    assert head_of_whole_request(b"X: " + b"a" * 100 + HEAD + b"{}", 100) == 0
