"""The words with which label keys and values are refused, as apimachinery v0.34.1 printed them."""

import pytest

from core.objects.labels import label_key_errors, label_value_errors

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
