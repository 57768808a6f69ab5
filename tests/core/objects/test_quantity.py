"""Quantities as apimachinery v0.34.1 parsed and scaled them (ParseQuantity, Value, MilliValue)."""

from fractions import Fraction
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.objects.quantity import (
    MAX_INT64,
    MAX_LENGTH,
    QuantityError,
    capped,
    json_list,
    millis,
    nanos,
    quoted,
    shortened,
    units,
)

FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
SUFFIX = "unable to parse quantity's suffix"


# text -> in billionths
QUANTITIES = {
    "0": 0,
    "1": 10**9,
    "007": 7 * 10**9,
    "+5": 5 * 10**9,
    "-5": -5 * 10**9,
    "1.5": 1_500_000_000,
    "1.": 10**9,
    ".5": 500_000_000,
    "-.5": -500_000_000,
    "1n": 1,
    "1u": 10**3,
    "1m": 10**6,
    "100m": 10**8,
    "1k": 10**12,
    "1M": 10**15,
    "1G": 10**18,
    "1T": 10**21,
    "1P": 10**24,
    "1E": 10**27,
    "1Ki": 2**10 * 10**9,
    "1Mi": 2**20 * 10**9,
    "1Gi": 2**30 * 10**9,
    "1Ti": 2**40 * 10**9,
    "1Pi": 2**50 * 10**9,
    "1Ei": 2**60 * 10**9,
    "1.5Gi": 3 * 2**29 * 10**9,
    "0.1Ki": 102_400_000_000,
    "1e3": 10**12,
    "1E3": 10**12,
    "1e+3": 10**12,
    "12e-3": 12 * 10**6,
    "1.5E-3": 1_500_000,
    "1e0": 10**9,
}


@pytest.mark.parametrize(("text", "expected"), [pytest.param(*case, id=case[0]) for case in QUANTITIES.items()])
def test_every_form_of_a_quantity_is_exact(text: str, expected: int) -> None:
    assert expected == nanos(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("0.1n", 1, id="a-tenth-of-the-smallest"),
        pytest.param("1.0000000001", 10**9 + 1, id="tenth-decimal-place"),
        pytest.param("-1.0000000001", -(10**9) - 1, id="negative-away-from-zero"),
        pytest.param("0.00000000001Ki", 11, id="binary"),
        pytest.param("1e-400", 1, id="far-below"),
        pytest.param("-1e-400", -1, id="far-below-zero"),
        pytest.param("0e-400", 0, id="nothing"),
    ],
)
def test_what_is_smaller_than_a_billionth_is_rounded_up_to_one(text: str, expected: int) -> None:
    assert expected == nanos(text)


@pytest.mark.parametrize(
    ("text", "whole", "milli"),
    [
        pytest.param("250m", 1, 250, id="millis"),
        pytest.param("1001m", 2, 1001, id="one-more"),
        pytest.param("1u", 1, 1, id="micro"),
        pytest.param("1500u", 1, 2, id="micros"),
        pytest.param("0", 0, 0, id="zero"),
        pytest.param("-1500u", -1, -2, id="negative"),
        pytest.param("64Mi", 67_108_864, 67_108_864_000, id="binary"),
        pytest.param("2", 2, 2000, id="plain"),
    ],
)
def test_whole_units_and_thousandths_are_rounded_away_from_zero(text: str, whole: int, milli: int) -> None:
    assert (whole, milli) == (units(nanos(text)), millis(nanos(text)))


# Value() and MilliValue() of k8s.io/apimachinery v0.37.1, of the text as an API server stores it.
@pytest.mark.parametrize(
    ("text", "whole", "milli"),
    [
        pytest.param("50E", 0, 0, id="kubernetes/kubernetes#102134"),
        pytest.param("10E", 0, 0, id="two-digits"),
        pytest.param("1e19", 0, 0, id="exponent"),
        pytest.param("1e30", 0, 0, id="large-exponent"),
        pytest.param("1e99999", 0, 0, id="larger-exponent"),
        pytest.param("9E", 9 * 10**18, 0, id="millis-alone"),
        pytest.param("10P", 10**16, 0, id="cpu-of-10P"),
        pytest.param("583611676705969G", -6412298053794027008, 0, id="three-factors-of-a-thousand"),
        pytest.param("10000000000000000001", -8446744073709551615, 1864712049423025128, id="twenty-digits"),
        pytest.param("9223372036854775807", MAX_INT64, -1000, id="the-largest"),
        pytest.param("8Ei", MAX_INT64, -1000, id="binary-is-capped"),
        pytest.param("9999Ei", MAX_INT64, -1000, id="binary-far-beyond"),
        pytest.param("50E 1Gi", -5340232220054913024, -9123182752852606976, id="a-sum"),
        pytest.param("8Ei 8Ei", -2, -2000, id="a-sum-of-capped-ones"),
        pytest.param("5E 5E", 0, 0, id="a-sum-of-few-digits"),
    ],
)
def test_what_no_int64_holds_overflows_as_upstream_s(text: str, whole: int, milli: int) -> None:
    total = sum(map(nanos, text.split()))
    assert (units(total), millis(total)) == (whole, milli)


@pytest.mark.parametrize("text", ["9223372036854775808", "8Ei", "10E", "1e19", "1e400"])
def test_what_is_compared_as_a_quantity_is_capped(text: str) -> None:
    assert (capped(nanos(text)), capped(nanos(f"-{text}"))) == (MAX_INT64, -MAX_INT64)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", FORMAT, id="empty"),
        pytest.param("lots", FORMAT, id="word"),
        pytest.param("1 Gi", FORMAT, id="space"),
        pytest.param(" 1", FORMAT, id="leading-space"),
        pytest.param("1\n", FORMAT, id="trailing-newline"),
        pytest.param("1.1.M", FORMAT, id="two-points"),
        pytest.param("1+1.0M", FORMAT, id="sum"),
        pytest.param("--1", SUFFIX, id="two-signs"),
        pytest.param("1e3m", FORMAT, id="exponent-and-suffix"),
        pytest.param("1_000", FORMAT, id="underscore"),
        pytest.param("1Kib", FORMAT, id="unknown-letter"),
        pytest.param("\N{FULLWIDTH DIGIT ONE}", FORMAT, id="digit-outside-ascii"),
        pytest.param("1K", SUFFIX, id="capital-kilo"),
        pytest.param("1ki", SUFFIX, id="small-kibi"),
        pytest.param("0.1mi", SUFFIX, id="mebi-in-small-letters"),
        pytest.param("1i", SUFFIX, id="half-a-suffix"),
        pytest.param("1MM", SUFFIX, id="two-suffixes"),
        pytest.param("1m5", SUFFIX, id="digit-after-the-suffix"),
        pytest.param("1-5", SUFFIX, id="exponent-without-its-letter"),
        pytest.param("1e", SUFFIX, id="exponent-without-digits"),
        pytest.param("-3.01e-", SUFFIX, id="exponent-of-a-sign"),
        pytest.param("1e9223372036854775808", SUFFIX, id="exponent-over-int64"),
        pytest.param("1" * 1023 + "x", FORMAT, id="digits-and-no-suffix"),
        pytest.param("1" * 10_000_000 + "x", "quantities must be no more than 1024 characters", id="endless"),
        pytest.param("1" * 1025, "quantities must be no more than 1024 characters", id="long"),
    ],
)
def test_what_is_no_quantity_is_refused_in_upstreams_words(text: str, expected: str) -> None:
    with pytest.raises(QuantityError) as caught:
        nanos(text)
    assert expected == str(caught.value)


@pytest.mark.parametrize("text", ["k", "+", ".", "-m"])
def test_a_number_without_digits_is_zero_as_upstream_has_it(text: str) -> None:
    assert nanos(text) == 0


@pytest.mark.parametrize(
    "text", ["1e9223372036854775807", "1e-9223372036854775807", "9" * 1024, "0." + "9" * 1000 + "Ei"]
)
def test_a_hostile_quantity_costs_no_time(text: str) -> None:
    began = process_time()
    nanos(text)
    assert process_time() - began < 0.1


POWERS = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(1000),
    "M": Fraction(10**6),
    "Ki": Fraction(1024),
    "Mi": Fraction(1024**2),
    "e1": Fraction(10),
    "E-2": Fraction(1, 100),
    "e+3": Fraction(1000),
}


@given(st.integers(-(10**9), 10**9), st.integers(0, 999_999), st.sampled_from(sorted(POWERS)))
def test_a_quantity_is_its_number_times_its_suffix(whole: int, fraction: int, suffix: str) -> None:
    number = f"{whole}.{fraction:06d}"
    exact = Fraction(number) * POWERS[suffix]
    for scaled, scale in ((nanos(f"{number}{suffix}"), 10**9), (millis(nanos(f"{number}{suffix}")), 1000)):
        assert scaled * exact >= 0
        assert 0 <= abs(scaled) - abs(exact) * scale < 1


@pytest.mark.parametrize("text", ["Ei", "Pi", "-Ei", ".Ei", "e-12", "+e-10", ".e-12", "e-99999999999"])
def test_a_suffix_alone_that_needs_upstream_s_slow_path_is_no_number(text: str) -> None:
    with pytest.raises(QuantityError, match=r"^unable to parse numeric part of quantity$"):
        nanos(text)


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
