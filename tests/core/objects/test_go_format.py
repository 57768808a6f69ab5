"""Text as Go prints it; the expected texts were printed by fmt and encoding/json."""

import pytest

from core.objects.quantity import MAX_LENGTH, json_list, quoted, shortened


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", '""', id="empty"),
        pytest.param("app=web's", '''"app=web's"''', id="plain"),
        pytest.param("a b", '"a b"', id="space"),
        pytest.param('a"b', r'"a\"b"', id="quote"),
        pytest.param("a\\b", r'"a\\b"', id="backslash"),
        pytest.param("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"', id="named-escapes"),
        pytest.param("\x00\x01\x1b\x1f", r'"\x00\x01\x1b\x1f"', id="other-control-characters"),
        pytest.param("~\x7f\x80\xa0\xad", r'"~\x7f\u0080\u00a0\u00ad"', id="around-the-end-of-ascii"),
        pytest.param("<none>&/", '"<none>&/"', id="markup"),
        pytest.param("é日\N{COMBINING GRAVE ACCENT}", '"é日\N{COMBINING GRAVE ACCENT}"', id="letters-and-marks"),
        pytest.param("\N{GRINNING FACE}", '"\N{GRINNING FACE}"', id="emoji"),
        pytest.param("\N{ZERO WIDTH SPACE}\N{IDEOGRAPHIC SPACE}", r'"\u200b\u3000"', id="other-spaces"),
        pytest.param("\N{LINE SEPARATOR}\N{ZERO WIDTH NO-BREAK SPACE}", r'"\u2028\ufeff"', id="separators"),
        pytest.param("\ue000\ufffd\uffff", '"\\ue000\N{REPLACEMENT CHARACTER}\\uffff"', id="end-of-the-basic-plane"),
        pytest.param("\U00010000\U0010ffff", '"\U00010000\\U0010ffff"', id="beyond-the-basic-plane"),
    ],
)
def test_a_text_is_quoted_as_percent_q_quotes_it(text: str, expected: str) -> None:
    assert expected == quoted(text)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param([], "[]", id="none"),
        pytest.param([""], '[""]', id="empty"),
        pytest.param(["x", "y", "x"], '["x","y","x"]', id="without-spaces"),
        pytest.param(['a"b', "c\\d"], r'["a\"b","c\\d"]', id="quote-and-backslash"),
        pytest.param(["\b\f\n\r\t"], r'["\b\f\n\r\t"]', id="named-escapes"),
        pytest.param(["\a\v\x00\x1b"], r'["\u0007\u000b\u0000\u001b"]', id="other-control-characters"),
        pytest.param(["<none>", "a&b"], r'["\u003cnone\u003e","a\u0026b"]', id="what-html-would-misread"),
        pytest.param(
            ["\N{LINE SEPARATOR}\N{PARAGRAPH SEPARATOR}"], r'["\u2028\u2029"]', id="what-javascript-would-misread"
        ),
        pytest.param(["é\x7f\N{NO-BREAK SPACE}'/"], '["é\x7f\N{NO-BREAK SPACE}\'/"]', id="all-else-stands"),
    ],
)
def test_texts_are_listed_as_encoding_json_writes_them(texts: list[str], expected: str) -> None:
    assert expected == json_list(texts)


def test_what_is_longer_than_any_name_is_cut_short() -> None:
    assert quoted("a" * MAX_LENGTH) == '"' + "a" * MAX_LENGTH + '"'
    assert quoted("a" * 1_000_000) == '"' + "a" * MAX_LENGTH + '..."'
    assert json_list(["a"] * 1_000_000) == json_list(["a"] * MAX_LENGTH)
    assert shortened("b" * (MAX_LENGTH + 1)) == "b" * MAX_LENGTH + "..."
