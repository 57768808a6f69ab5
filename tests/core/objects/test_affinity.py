"""Affinity terms and node selectors: which are the same, and what is told of those that could not be parsed."""

from collections.abc import Sequence

import pytest

from core.objects.affinity import (
    Expression,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PodAffinity,
    PreferredTerm,
    TermError,
    parse_node_selector,
    selector_from_set,
)
from tests.builders import Object, expressed, labelled, term
from tests.core.decoded import matcher_of

WEB = term("zone", labelled(app="web"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(WEB, term("zone", expressed("app", "In", "web")), id="label-or-expression"),
        pytest.param(
            term("zone", labelled(), namespaces=["a", "b"]),
            term("zone", labelled(), namespaces=["b", "a", "b"]),
            id="order-and-repetition-of-namespaces",
        ),
        pytest.param(WEB, term("zone", labelled(app="web"), namespaces=["default"]), id="the-own-namespace-named"),
    ],
)
def test_terms_that_ask_the_same_are_one_value(one: Object, other: Object) -> None:
    expected, got = matcher_of(one), matcher_of(other)
    assert (expected, hash(expected)) == (got, hash(got))


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        pytest.param(
            [TermError("requiredAffinityTerms", "podAffinity[0]", "broken")],
            "requiredAffinityTerms: broken",
            id="one-stands-bare",
        ),
        pytest.param(
            [
                TermError("requiredAffinityTerms", "podAffinity[0]", "broken"),
                TermError("preferredAntiAffinityTerms", "podAntiAffinity[0]", "broken"),
            ],
            "[requiredAffinityTerms: broken, preferredAntiAffinityTerms: broken]",
            id="the-same-in-two-lists-is-told-twice",
        ),
        pytest.param(
            [TermError("requiredAffinityTerms", "", "[one, two]")],
            "requiredAffinityTerms: [one, two]",
            id="an-aggregate-inside-keeps-its-brackets",
        ),
    ],
)
def test_the_parse_error_names_each_broken_list(errors: list[TermError], expected: str) -> None:
    assert expected == PodAffinity(errors=tuple(errors)).parse_error


def test_a_node_selector_is_not_validated() -> None:
    assert selector_from_set({"no key": "no value"}).matches({"no key": "no value"})


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        pytest.param([], "", id="none"),
        pytest.param([("one",)], "one", id="one"),
        pytest.param([("one", "two"), (), ("three",)], "[one, two, three]", id="several"),
    ],
)
def test_the_errors_of_all_preferred_terms_are_told_at_once(errors: list[tuple[str, ...]], expected: str) -> None:
    terms = tuple(PreferredTerm(1, NodeSelectorTerm(errors=each)) for each in errors)
    assert expected == NodeAffinity(preferred=terms).preferred_error


LABELS = {"zone": "a", "disk": "", "cores": "8", "odd": "eight", "signed": "+8", "huge": "9223372036854775808"}


def selector_of(*expressions: Expression) -> NodeSelector:
    return parse_node_selector([(expressions, ())])


def fielded(*fields: Expression) -> NodeSelector:
    return parse_node_selector([((), fields)])


@pytest.mark.parametrize(
    ("bound", "label", "expected"),
    [
        pytest.param("9223372036854775807", "-9223372036854775808", True, id="least"),
        pytest.param("0", "-9223372036854775809", False, id="below-the-least"),
        pytest.param("1", "0" * 100, True, id="many-zeros"),
        pytest.param("1", "-0", True, id="minus-nothing"),
        pytest.param("1", "1_0", False, id="underscore"),
        pytest.param("1", "\N{ARABIC-INDIC DIGIT ZERO}", False, id="digit-outside-ascii"),
        pytest.param("1", " 0", False, id="space"),
        pytest.param("1", "0\n", False, id="newline"),
        pytest.param("1", "1" * 5000, False, id="very-long"),
    ],
)
def test_a_label_is_a_number_as_go_reads_it(
    bound: str,
    label: str,
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert expected is selector_of(("n", "Lt", [bound])).matches({"n": label})


IN_A: Expression = ("zone", "In", ["a"])
MANY: Expression = ("cores", "Gt", ["100"])


KEY_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
    "regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
AT = "nodeSelectorTerms[0].matchExpressions[0]"
SUPPORTED = 'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
ONE_VALUE = "for 'Gt', 'Lt' operators, exactly one value is required"
INTEGER = "for 'Gt', 'Lt' operators, the value must be an integer"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param(("zone", "Near", []), f'{AT}.operator: Unsupported value: "Near": {SUPPORTED}', id="operator"),
        pytest.param(("a b", "Exists", []), f'{AT}.key: Invalid value: "a b": {KEY_RULE}', id="key"),
        pytest.param(
            ("zone", "In", []),
            f"{AT}.values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
            id="in-nothing",
        ),
        pytest.param(
            ("zone", "Exists", ["a"]),
            f'{AT}.values: Invalid value: ["a"]: values set must be empty for exists and does not exist',
            id="exists-with-a-value",
        ),
        pytest.param(
            ("zone", "In", ["a", "-"]), f'{AT}.values[1][zone]: Invalid value: "-": {VALUE_RULE}', id="broken-value"
        ),
        pytest.param(("zone", "Gt", []), f"{AT}.values: Invalid value: null: {ONE_VALUE}", id="greater-than-nothing"),
        pytest.param(
            ("zone", "Lt", ["1", "2"]), f'{AT}.values: Invalid value: ["1","2"]: {ONE_VALUE}', id="less-than-two"
        ),
        pytest.param(("zone", "Gt", ["x"]), f'{AT}.values[0]: Invalid value: "x": {INTEGER}', id="no-integer"),
        pytest.param(
            ("zone", "Gt", ["9223372036854775808"]),
            f'{AT}.values[0]: Invalid value: "9223372036854775808": {INTEGER}',
            id="over-int64",
        ),
        pytest.param(
            ("zone", "Gt", ["-1"]),
            f'{AT}.values[0][zone]: Invalid value: "-1": {VALUE_RULE}',
            id="negative-is-no-label",
        ),
        pytest.param(
            ("zone", "Lt", ["x", "-"]),
            f'[{AT}.values: Invalid value: ["x","-"]: {ONE_VALUE}, {AT}.values[0]: Invalid value: "x": {INTEGER}, '
            f'{AT}.values[1]: Invalid value: "-": {INTEGER}, {AT}.values[1][zone]: Invalid value: "-": {VALUE_RULE}]',
            id="everything-at-once",
        ),
    ],
)
def test_a_broken_expression_is_reported_in_upstreams_words(expression: Expression, expected: str) -> None:
    assert expected == selector_of(expression).parse_error


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        pytest.param(
            ("metadata.name", "Exists", []),
            'operator: Unsupported value: "Exists": supported values: "In", "NotIn"',
            id="operator",
        ),
        pytest.param(("metadata.name", "In", []), "values: Invalid value: null: must have one element", id="no-value"),
        pytest.param(
            ("metadata.name", "NotIn", ["a", "b"]),
            'values: Invalid value: ["a","b"]: must have one element',
            id="two-values",
        ),
    ],
)
def test_a_broken_field_is_reported_in_upstreams_words(field: Expression, expected: str) -> None:
    assert f"nodeSelectorTerms[0].matchFields[0].{expected}" == fielded(field).parse_error


def test_a_broken_requirement_breaks_its_whole_term() -> None:
    assert not selector_of(IN_A, ("zone", "In", [])).matches(LABELS, "n1")
    assert not parse_node_selector([([IN_A], [("metadata.name", "Exists", [])])]).matches(LABELS, "n1")


def test_errors_name_their_place_among_all_terms_and_are_all_told() -> None:
    selector = parse_node_selector([((), ()), ([IN_A, ("zone", "Near", [])], [("metadata.name", "In", [])])])
    expected = (
        f'[nodeSelectorTerms[1].matchExpressions[1].operator: Unsupported value: "Near": {SUPPORTED}, '
        "nodeSelectorTerms[1].matchFields[0].values: Invalid value: null: must have one element]"
    )
    assert expected == selector.parse_error


@pytest.mark.parametrize(
    "same",
    [
        pytest.param([IN_A, ("disk", "Exists", []), MANY, ("cores", "Lt", ["9"])], id="order"),
        pytest.param([MANY, ("cores", "Lt", ["9"]), IN_A, ("disk", "Exists", []), IN_A, MANY], id="repetition"),
        pytest.param(
            [("zone", "In", ["a", "a"]), ("cores", "Lt", ["09"]), ("disk", "Exists", []), MANY], id="spelling"
        ),
    ],
)
def test_terms_that_ask_the_same_are_equal(same: Sequence[Expression]) -> None:
    one = selector_of(("cores", "Lt", ["9"]), MANY, ("disk", "Exists", []), IN_A)
    assert (one, hash(one)) == (selector_of(*same), hash(selector_of(*same)))
