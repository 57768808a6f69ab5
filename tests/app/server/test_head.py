"""The head of a request: found wherever it is cut, and of a limited size."""

import pytest

from app.server.exchange import Head, KnownHeads, LargeHeadError

HEAD = b"POST /filter HTTP/1.1\r\nContent-Length: 7\r\nHost: k\r\n\r\n"


@pytest.mark.parametrize("piece", range(1, len(HEAD) + 1))
def test_a_head_is_found_wherever_it_is_cut(piece: int) -> None:
    reader = Head(1024)
    sent = HEAD + b"a body" * 10
    sizes = [reader.read(sent[:end]) for end in range(piece, len(HEAD), piece)]
    assert not any(sizes)
    assert reader.read(sent) == len(HEAD)
    assert reader.scope({})["path"] == "/filter"
    assert reader.length == 7


@pytest.mark.parametrize(
    ("number", "fits"), [(20, True), (23, False), (200, False)], ids=["as-many-as-fit", "one-too-many", "far-too-many"]
)
@pytest.mark.parametrize("piece", [1 << 20, 10], ids=["at-once", "in-pieces"])
def test_each_header_counts_for_more_than_its_bytes(number: int, piece: int, *, fits: bool) -> None:
    head = b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * number + b"\r\n"  # 38 bytes for each header

    def read() -> int:
        reader = Head(23 * 38)
        return max(reader.read(head[:end]) for end in (*range(piece, len(head), piece), len(head)))

    if fits:
        assert read() == len(head)
    else:
        with pytest.raises(LargeHeadError):
            read()


def _known(heads: KnownHeads, text: bytes) -> Head:
    head = Head(1024)
    assert head.read(text) == len(text)
    assert head.scope({})["path"] == "/filter"
    heads.keep(text, head)
    return head


def test_the_head_of_an_earlier_request_is_known_by_all_of_its_bytes() -> None:
    heads = KnownHeads()
    head = _known(heads, HEAD)
    assert heads.get(HEAD + b"a body\r\n\r\n") is head
    assert head.read(HEAD) == len(HEAD)
    assert head.scope({"scheme": "http"})["scheme"] == "http"
    assert heads.get(HEAD.replace(b"7", b"8")) is None
    assert heads.get(HEAD[:-1]) is None
    assert heads.get(b"") is None


def test_few_heads_are_known_and_no_long_ones() -> None:
    heads = KnownHeads()
    texts = [HEAD.replace(b"7", b"%d" % number) for number in range(100, 300)]
    for text in texts:
        _known(heads, text)
    assert 1 <= sum(heads.get(text) is not None for text in texts) <= 64
    long = HEAD.replace(b"k", b"k" * 600)
    _known(heads, long)
    assert heads.get(long) is None
