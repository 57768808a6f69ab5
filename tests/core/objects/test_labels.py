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
    Operator,
    Requirement,
    Selector,
    SelectorError,
    errors_text,
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


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        pytest.param(of_labels(a="x"), {"a": "x", "b": "z"}, True, id="label-matches-among-others"),
        pytest.param(of_labels(a="x"), {"a": "y"}, False, id="label-has-another-value"),
        pytest.param(of_labels(a="x"), {}, False, id="label-is-absent"),
        pytest.param(of_labels(a=""), {"a": ""}, True, id="empty-value-matches-empty-value"),
        pytest.param(of_labels(a=""), {}, False, id="empty-value-is-not-absence"),
        pytest.param(of_labels(a="x", b="y"), {"a": "x"}, False, id="every-label-is-demanded"),
        pytest.param(of_expressions(("a", "In", ["x", "y"])), {"a": "y"}, True, id="in-matches-any-value"),
        pytest.param(of_expressions(("a", "In", ["x", "y"])), {"a": "z"}, False, id="in-refuses-others"),
        pytest.param(of_expressions(("a", "In", ["xy"])), {"a": "x"}, False, id="in-compares-whole-values"),
        pytest.param(of_expressions(("a", "NotIn", ["x"])), {"a": "y"}, True, id="not-in-matches-others"),
        pytest.param(of_expressions(("a", "NotIn", ["x"])), {"a": "x"}, False, id="not-in-refuses-its-values"),
        pytest.param(of_expressions(("a", "NotIn", ["x"])), {"b": "x"}, True, id="not-in-is-met-by-absence"),
        pytest.param(of_expressions(("a", "NotIn", [""])), {}, True, id="not-in-empty-value-is-met-by-absence"),
        pytest.param(of_expressions(("a", "Exists", [])), {"a": ""}, True, id="an-empty-value-exists"),
        pytest.param(of_expressions(("a", "Exists", [])), {"A": "x"}, False, id="keys-have-case"),
        pytest.param(of_expressions(("a", "DoesNotExist", [])), {"b": "x"}, True, id="absence-meets-does-not-exist"),
        pytest.param(of_expressions(("a", "DoesNotExist", [])), {"a": ""}, False, id="empty-value-is-no-absence"),
        pytest.param(of_expressions(("a", "In", ["x"]), ("a", "In", ["y"])), {"a": "x"}, False, id="contradiction"),
        pytest.param(EVERYTHING, {}, True, id="everything-matches-no-labels"),
        pytest.param(EVERYTHING, {"a": "x"}, True, id="everything-matches-labels"),
        pytest.param(NOTHING, {}, False, id="nothing-does-not-match-no-labels"),
        pytest.param(NOTHING, {"a": "x"}, False, id="nothing-does-not-match-labels"),
    ],
)
def test_a_selector_matches_labels_that_meet_all_its_requirements(
    selector: Selector,
    labels: Mapping[str, str],
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert expected is selector.matches(labels)


def test_only_the_empty_selector_is_everything() -> None:
    assert EVERYTHING.everything
    assert not NOTHING.everything
    assert not of_expressions(("a", "DoesNotExist", [])).everything


def test_a_requirement_keeps_its_values_sorted_and_once() -> None:
    selector = of_expressions(("b", "NotIn", ["y", "", "x", "y"]), ("a", "Exists", []))
    expected = (Requirement("a", Operator.EXISTS), Requirement("b", Operator.NOT_IN, ("", "x", "y")))
    assert expected == selector.requirements


def bad_value(index: int, shown: str = '"-"', key: str = "a") -> str:
    return f"values[{index}][{key}]: Invalid value: {shown}: {VALUE_RULE}"


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
    with pytest.raises(SelectorError) as refused:
        parse_selector(match_labels, match_expressions)
    assert (field, expected) == (refused.value.field, str(refused.value))


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
    with pytest.raises(SelectorError) as refused:
        parse_selector(match_labels, match_expressions)
    assert expected == str(refused.value)


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
