"""Node selectors as component-helpers v0.34.1 parsed and matched them, with its words for broken ones."""

from collections.abc import Sequence

import pytest

from core.objects.affinity import Expression, NodeSelector, parse_node_selector

LABELS = {"zone": "a", "disk": "", "cores": "8", "odd": "eight", "signed": "+8", "huge": "9223372036854775808"}


def expressed(*expressions: Expression) -> NodeSelector:
    return parse_node_selector([(expressions, ())])


def fielded(*fields: Expression) -> NodeSelector:
    return parse_node_selector([((), fields)])


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        pytest.param("zone", "In", ["b", "a"], True, id="in"),
        pytest.param("zone", "In", ["b"], False, id="in-others"),
        pytest.param("rack", "In", ["a"], False, id="in-absent"),
        pytest.param("zone", "NotIn", ["a"], False, id="not-in"),
        pytest.param("zone", "NotIn", ["b"], True, id="not-in-others"),
        pytest.param("rack", "NotIn", ["a"], True, id="not-in-absent"),
        pytest.param("disk", "Exists", [], True, id="exists-though-empty"),
        pytest.param("rack", "Exists", [], False, id="exists-absent"),
        pytest.param("disk", "DoesNotExist", [], False, id="does-not-exist"),
        pytest.param("rack", "DoesNotExist", [], True, id="does-not-exist-absent"),
        pytest.param("cores", "Gt", ["7"], True, id="greater"),
        pytest.param("cores", "Gt", ["8"], False, id="not-greater-when-equal"),
        pytest.param("cores", "Lt", ["9"], True, id="less"),
        pytest.param("cores", "Lt", ["8"], False, id="not-less-when-equal"),
        pytest.param("cores", "Gt", ["007"], True, id="leading-zeros"),
        pytest.param("signed", "Gt", ["7"], True, id="label-with-a-sign"),
        pytest.param("rack", "Lt", ["9"], False, id="absent-label-is-no-number"),
        pytest.param("disk", "Lt", ["9"], False, id="empty-label-is-no-number"),
        pytest.param("odd", "Lt", ["9"], False, id="word-is-no-number"),
        pytest.param("huge", "Gt", ["9"], False, id="number-over-int64"),
    ],
)
def test_a_requirement_matches_by_its_operator(
    key: str,
    operator: str,
    values: Sequence[str],
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    selector = expressed((key, operator, values))
    assert selector.parse_error == ""
    assert expected is selector.matches(LABELS, "n1")


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
    assert expected is expressed(("n", "Lt", [bound])).matches({"n": label})


@pytest.mark.parametrize(
    ("fields", "name", "expected"),
    [
        pytest.param([("metadata.name", "In", ["n1"])], "n1", True, id="in"),
        pytest.param([("metadata.name", "In", ["n1"])], "n2", False, id="in-another"),
        pytest.param([("metadata.name", "NotIn", ["n1"])], "n2", True, id="not-in"),
        pytest.param([("metadata.name", "NotIn", ["n1"])], "n1", False, id="not-in-itself"),
        pytest.param([("metadata.name", "In", ["n1"]), ("metadata.name", "In", ["n2"])], "n1", False, id="both"),
        pytest.param([("metadata.uid", "In", ["n1"])], "n1", False, id="unknown-field-is-empty"),
        pytest.param([("metadata.uid", "In", [""])], "n1", True, id="unknown-field-matches-empty"),
        pytest.param([("metadata.name", "In", ["n1"])], "", True, id="not-looked-at-without-a-name"),
    ],
)
def test_fields_of_a_node(
    fields: Sequence[Expression],
    name: str,
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert expected is fielded(*fields).matches({}, name)


IN_A: Expression = ("zone", "In", ["a"])
IN_B: Expression = ("zone", "In", ["b"])
MANY: Expression = ("cores", "Gt", ["100"])
N1: Expression = ("metadata.name", "In", ["n1"])
N2: Expression = ("metadata.name", "In", ["n2"])


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param([], False, id="no-terms-match-nothing"),
        pytest.param([((), ())], False, id="empty-term-matches-nothing"),
        pytest.param([((), ()), ([IN_A], ())], True, id="empty-term-beside-another"),
        pytest.param([([IN_B], ()), ([IN_A], ())], True, id="any-term"),
        pytest.param([([IN_B], ()), ([IN_B], ())], False, id="no-term"),
        pytest.param([([IN_A, IN_B], ())], False, id="every-expression"),
        pytest.param([([IN_A, MANY], ())], False, id="every-comparison"),
        pytest.param([([IN_A], [N1])], True, id="expressions-and-fields"),
        pytest.param([([IN_A], [N2])], False, id="fields-fail"),
        pytest.param([([IN_B], [N1])], False, id="expressions-fail"),
        pytest.param([([("zone", "Near", ["a"])], ()), ([IN_A], ())], True, id="broken-term-beside-another"),
        pytest.param([([("zone", "Near", ["a"])], ())], False, id="broken-term-matches-nothing"),
    ],
)
def test_terms_are_ored_and_what_stands_in_one_is_anded(
    terms: Sequence[tuple[Sequence[Expression], Sequence[Expression]]],
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert expected is parse_node_selector(terms).matches(LABELS, "n1")


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
    assert expected == expressed(expression).parse_error


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
    assert not expressed(IN_A, ("zone", "In", [])).matches(LABELS, "n1")
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
    one = expressed(("cores", "Lt", ["9"]), MANY, ("disk", "Exists", []), IN_A)
    assert (one, hash(one)) == (expressed(*same), hash(expressed(*same)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(expressed(("n", "Gt", ["1"])), expressed(("n", "Lt", ["1"])), id="direction"),
        pytest.param(expressed(("n", "Gt", ["1"])), expressed(("n", "Gt", ["2"])), id="bound"),
        pytest.param(expressed(("n", "In", ["1"])), expressed(("n", "Gt", ["1"])), id="operator"),
        pytest.param(fielded(N1), fielded(("metadata.name", "NotIn", ["n1"])), id="field-operator"),
        pytest.param(fielded(N1), fielded(N2), id="field-value"),
    ],
)
def test_terms_that_ask_other_things_differ(one: NodeSelector, other: NodeSelector) -> None:
    assert one != other
