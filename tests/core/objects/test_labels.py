"""Selectors: equal when they ask the same, what they match, and the words with which upstream refuses them.

The expected messages were printed by apimachinery v0.34.1 (LabelSelectorAsSelector).
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.objects.labels import (
    EVERYTHING,
    NOTHING,
    Selector,
    SelectorError,
    errors_text,
    label_key_errors,
    label_value_errors,
    parse_selector,
)

Expression: TypeAlias = tuple[str, str, Sequence[str]]

NO_VALUES = "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
    "regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
EMPTY_SET_RULE = "values set must be empty for exists and does not exist"


def of_labels(**match_labels: str) -> Selector:
    return parse_selector(match_labels, [])


def of_expressions(*match_expressions: Expression) -> Selector:
    return parse_selector({}, match_expressions)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(of_labels(a="x"), of_expressions(("a", "In", ["x"])), id="a-match-label-is-in-with-one-value"),
        pytest.param(of_labels(a="x", b="y"), of_labels(b="y", a="x"), id="order-of-labels"),
        pytest.param(
            of_expressions(("a", "Exists", []), ("b", "NotIn", ["x"])),
            of_expressions(("b", "NotIn", ["x"]), ("a", "Exists", [])),
            id="order-of-expressions",
        ),
        pytest.param(
            of_expressions(("a", "In", ["x", "y"])), of_expressions(("a", "In", ["y", "x"])), id="order-of-values"
        ),
        pytest.param(of_expressions(("a", "In", ["x"])), of_expressions(("a", "In", ["x", "x"])), id="repeated-values"),
        pytest.param(
            of_expressions(("a", "Exists", [])),
            of_expressions(("a", "Exists", []), ("a", "Exists", [])),
            id="repeated-expressions",
        ),
        pytest.param(
            of_labels(a="x"), parse_selector({"a": "x"}, [("a", "In", ["x"])]), id="the-same-as-label-and-expression"
        ),
        pytest.param(EVERYTHING, parse_selector({}, []), id="no-requirements"),
    ],
)
def test_selectors_that_ask_the_same_are_one_value(one: Selector, other: Selector) -> None:
    assert (one, hash(one)) == (other, hash(other))


def test_selectors_that_ask_something_else_are_other_values() -> None:
    different = [
        NOTHING,
        EVERYTHING,
        of_labels(a="x"),
        of_labels(a="y"),
        of_labels(b="x"),
        of_labels(a=""),
        of_expressions(("a", "NotIn", ["x"])),
        of_expressions(("a", "Exists", [])),
        of_expressions(("a", "DoesNotExist", [])),
        of_expressions(("a", "In", ["x", "y"])),
        of_expressions(("a", "In", ["x"]), ("a", "In", ["y"])),
    ]
    assert len(different) == len(set(different))


expressions: st.SearchStrategy[Expression] = st.one_of(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.sampled_from(["In", "NotIn"]),
        st.lists(st.sampled_from(["x", "y", ""]), min_size=1, max_size=4),
    ),
    st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["Exists", "DoesNotExist"]), st.just([])),
)


@settings(deadline=None)
@given(st.lists(expressions, max_size=5), st.randoms(use_true_random=False))
def test_no_order_and_no_repetition_changes_a_selector(written: list[Expression], random: Random) -> None:
    shuffled = [(key, operator, [*values, *values[:1]]) for key, operator, values in written + written[:2]]
    random.shuffle(shuffled)
    one, other = of_expressions(*written), of_expressions(*shuffled)
    assert (one, hash(one)) == (other, hash(other))


def bad_value(index: int, rendered: str = '"-"', key: str = "a") -> str:
    return f"values[{index}][{key}]: Invalid value: {rendered}: {VALUE_RULE}"


@pytest.mark.parametrize(
    ("match_labels", "match_expressions", "field", "expected"),
    [
        pytest.param(
            {"": "x"},
            [],
            "matchLabels[]",
            f'key: Invalid value: "": name part must be non-empty; {NAME_RULE}',
            id="empty-key-with-two-faults",
        ),
        pytest.param({"a": "-"}, [], "matchLabels[a]", bad_value(0), id="broken-value-of-a-label"),
        pytest.param(
            {"-": "-"},
            [],
            "matchLabels[-]",
            f'[key: Invalid value: "-": {NAME_RULE}, {bad_value(0, key="-")}]',
            id="broken-key-and-value-together",
        ),
        pytest.param({}, [("a", "In", [])], "matchExpressions[0]", NO_VALUES, id="in-without-values"),
        pytest.param({}, [("a", "NotIn", [])], "matchExpressions[0]", NO_VALUES, id="not-in-without-values"),
        pytest.param(
            {},
            [("-", "In", [])],
            "matchExpressions[0]",
            f'[key: Invalid value: "-": {NAME_RULE}, {NO_VALUES}]',
            id="broken-key-and-no-values",
        ),
        pytest.param(
            {},
            [("a", "Exists", ["x"])],
            "matchExpressions[0]",
            f'values: Invalid value: ["x"]: {EMPTY_SET_RULE}',
            id="exists-with-a-value",
        ),
        pytest.param(
            {},
            [("a", "Exists", [""])],
            "matchExpressions[0]",
            f'values: Invalid value: [""]: {EMPTY_SET_RULE}',
            id="exists-with-an-empty-value",
        ),
        pytest.param(
            {},
            [("a", "DoesNotExist", ["y", "x", "y"])],
            "matchExpressions[0]",
            f'values: Invalid value: ["y","x","y"]: {EMPTY_SET_RULE}',
            id="values-are-shown-as-written",
        ),
        pytest.param(
            {},
            [("a", "Exists", ["-"])],
            "matchExpressions[0]",
            f'[values: Invalid value: ["-"]: {EMPTY_SET_RULE}, {bad_value(0)}]',
            id="exists-with-a-broken-value",
        ),
        pytest.param(
            {},
            [("a", "In", ["-", "x", "-"])],
            "matchExpressions[0]",
            f"[{bad_value(0)}, {bad_value(2)}]",
            id="each-broken-value-by-its-index",
        ),
        pytest.param(
            {},
            [("a", "Gt", ["1"])],
            "matchExpressions[0].operator",
            '"Gt" is not a valid label selector operator',
            id="operator-of-node-selectors",
        ),
        pytest.param(
            {},
            [("a", "in", ["x"])],
            "matchExpressions[0].operator",
            '"in" is not a valid label selector operator',
            id="operators-have-case",
        ),
        pytest.param(
            {},
            [("-", "", [])],
            "matchExpressions[0].operator",
            '"" is not a valid label selector operator',
            id="operator-before-key",
        ),
        pytest.param({"a": "-"}, [("a", "Near", [])], "matchLabels[a]", bad_value(0), id="labels-before-expressions"),
        pytest.param(
            {},
            [("a", "Exists", []), ("a", "In", ["-"]), ("a", "Near", [])],
            "matchExpressions[1]",
            bad_value(0),
            id="the-first-broken-expression-alone",
        ),
    ],
)
def test_a_broken_selector_is_refused_in_the_words_of_upstream(
    match_labels: Mapping[str, str], match_expressions: Sequence[Expression], field: str, expected: str
) -> None:
    with pytest.raises(SelectorError) as rejected:
        parse_selector(match_labels, match_expressions)
    assert (field, expected) == (rejected.value.field, str(rejected.value))


@pytest.mark.parametrize(
    ("match_labels", "match_expressions", "expected"),
    [
        pytest.param({"a": "\x7f"}, [], bad_value(0, r'"\x7f"'), id="value"),
        pytest.param({"\x7f": "x"}, [], rf'key: Invalid value: "\x7f": {NAME_RULE}', id="key"),
        pytest.param({}, [("a", "\x7f", [])], r'"\x7f" is not a valid label selector operator', id="operator"),
        pytest.param(
            {},
            [("a", "Exists", ["<none>"])],
            rf'[values: Invalid value: ["\u003cnone\u003e"]: {EMPTY_SET_RULE}, ' + bad_value(0, '"<none>"') + "]",
            id="list-and-value",
        ),
    ],
)
def test_what_is_refused_is_shown_in_the_notation_of_go(
    match_labels: Mapping[str, str], match_expressions: Sequence[Expression], expected: str
) -> None:
    with pytest.raises(SelectorError) as rejected:
        parse_selector(match_labels, match_expressions)
    assert expected == str(rejected.value)


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        pytest.param(["one"], "one", id="one-stands-bare"),
        pytest.param(["one", "two"], "[one, two]", id="several-stand-in-brackets"),
        pytest.param(["two", "one", "two"], "[two, one]", id="repetitions-are-dropped-in-order"),
        pytest.param(["one", "one"], "one", id="one-repeated-stands-bare"),
    ],
)
def test_errors_are_joined_as_an_aggregate_prints_them(errors: Sequence[str], expected: str) -> None:
    assert expected == errors_text(errors)


@pytest.mark.parametrize("count", [1, 16, 17, 1000])
def test_long_lists_are_searched_as_short_ones_are(count: int) -> None:
    listed = [f"v{2 * number}" for number in range(count)]
    selects, excludes = (of_expressions(("key", operator, listed)) for operator in ("In", "NotIn"))
    for value in (*listed[:20], *listed[-20:], "", "v1", "v3", "a", "z"):
        assert selects.matches({"key": value}) is (value in listed)
        assert excludes.matches({"key": value}) is (value not in listed)
    assert (selects.matches({}), excludes.matches({})) == (False, True)


def test_many_broken_values_are_told_as_a_few_and_long_keys_are_cut_short() -> None:
    with pytest.raises(SelectorError) as caught:
        of_expressions(("k" * 100_000, "In", ["!"] * 100_000))
    assert "Too many errors: the other values are not looked at" in str(caught.value)
    assert len(str(caught.value)) < 100_000


CHARACTERS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', "
    "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
NAME_CHARACTERS = f"name part {CHARACTERS}"
NAME_EMPTY = "name part must be non-empty"
NAME_TOO_LONG = "name part must be no more than 63 characters"
PREFIX_EMPTY = "prefix part must be non-empty"
PREFIX_TOO_LONG = "prefix part must be no more than 253 characters"
PREFIX_CHARACTERS = (
    "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
QUALIFIED_NAME = (
    f"a qualified name {CHARACTERS} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
VALUE_TOO_LONG = "must be no more than 63 characters"
VALUE_CHARACTERS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
    "regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    "key",
    [
        pytest.param("a", id="one-letter"),
        pytest.param("A", id="capital"),
        pytest.param("9", id="digit"),
        pytest.param("a-b_c.d", id="all-punctuation"),
        pytest.param("a" * 63, id="longest-name"),
        pytest.param("app.kubernetes.io/name", id="prefix"),
        pytest.param("1/2", id="prefix-of-a-digit"),
        pytest.param("a" * 253 + "/b", id="longest-prefix"),
    ],
)
def test_a_qualified_name_is_a_label_key(key: str) -> None:
    assert label_key_errors(key) == []


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param("", [NAME_EMPTY, NAME_CHARACTERS], id="empty"),
        pytest.param("-a", [NAME_CHARACTERS], id="leading-dash"),
        pytest.param("a.", [NAME_CHARACTERS], id="trailing-dot"),
        pytest.param("_a", [NAME_CHARACTERS], id="leading-underscore"),
        pytest.param("a b", [NAME_CHARACTERS], id="space"),
        pytest.param("a\n", [NAME_CHARACTERS], id="trailing-newline"),
        pytest.param("é", [NAME_CHARACTERS], id="letter-outside-ascii"),
        pytest.param("\N{FULLWIDTH DIGIT ONE}", [NAME_CHARACTERS], id="digit-outside-ascii"),
        pytest.param("a" * 64, [NAME_TOO_LONG], id="long-name"),
        pytest.param("-" + "a" * 63, [NAME_TOO_LONG, NAME_CHARACTERS], id="long-name-with-leading-dash"),
        pytest.param("é" * 31, [NAME_CHARACTERS], id="62-bytes"),
        pytest.param("é" * 32, [NAME_TOO_LONG, NAME_CHARACTERS], id="64-bytes-in-32-characters"),
        pytest.param("/", [PREFIX_EMPTY, NAME_EMPTY, NAME_CHARACTERS], id="slash-alone"),
        pytest.param("/a", [PREFIX_EMPTY], id="no-prefix-before-the-slash"),
        pytest.param("a/", [NAME_EMPTY, NAME_CHARACTERS], id="no-name-after-the-slash"),
        pytest.param("a/-", [NAME_CHARACTERS], id="broken-name-under-a-prefix"),
        pytest.param("A/b", [PREFIX_CHARACTERS], id="prefix-with-a-capital"),
        pytest.param(".a/b", [PREFIX_CHARACTERS], id="prefix-with-a-leading-dot"),
        pytest.param("a./b", [PREFIX_CHARACTERS], id="prefix-with-a-trailing-dot"),
        pytest.param("a..b/c", [PREFIX_CHARACTERS], id="prefix-with-two-dots"),
        pytest.param("a_b/c", [PREFIX_CHARACTERS], id="prefix-with-an-underscore"),
        pytest.param("a\n/b", [PREFIX_CHARACTERS], id="prefix-with-a-trailing-newline"),
        pytest.param("a" * 254 + "/b", [PREFIX_TOO_LONG], id="long-prefix"),
        pytest.param("A" * 254 + "/b", [PREFIX_TOO_LONG, PREFIX_CHARACTERS], id="long-prefix-of-capitals"),
        pytest.param("A/" + "b" * 64, [PREFIX_CHARACTERS, NAME_TOO_LONG], id="both-parts-broken"),
        pytest.param("a/b/c", [QUALIFIED_NAME], id="two-slashes"),
        pytest.param("a//b", [QUALIFIED_NAME], id="two-slashes-together"),
        pytest.param("//", [QUALIFIED_NAME], id="slashes-alone"),
    ],
)
def test_what_is_wrong_with_a_label_key_is_told_in_full(key: str, expected: list[str]) -> None:
    assert expected == label_key_errors(key)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("", id="empty"),
        pytest.param("a", id="one-letter"),
        pytest.param("v1.2_3-X", id="all-punctuation"),
        pytest.param("a" * 63, id="longest"),
    ],
)
def test_a_label_value_may_also_be_empty(value: str) -> None:
    assert label_value_errors(value) == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("-", [VALUE_CHARACTERS], id="dash-alone"),
        pytest.param("a-", [VALUE_CHARACTERS], id="trailing-dash"),
        pytest.param(".a", [VALUE_CHARACTERS], id="leading-dot"),
        pytest.param("a b", [VALUE_CHARACTERS], id="space"),
        pytest.param("a/b", [VALUE_CHARACTERS], id="slash"),
        pytest.param("a\n", [VALUE_CHARACTERS], id="trailing-newline"),
        pytest.param("\n", [VALUE_CHARACTERS], id="newline-alone"),
        pytest.param("\N{FULLWIDTH DIGIT ONE}", [VALUE_CHARACTERS], id="digit-outside-ascii"),
        pytest.param("a" * 64, [VALUE_TOO_LONG], id="long"),
        pytest.param("-" * 64, [VALUE_TOO_LONG, VALUE_CHARACTERS], id="long-and-only-dashes"),
        pytest.param("é" * 32, [VALUE_TOO_LONG, VALUE_CHARACTERS], id="64-bytes-in-32-characters"),
    ],
)
def test_what_is_wrong_with_a_label_value_is_told_in_full(value: str, expected: list[str]) -> None:
    assert expected == label_value_errors(value)
