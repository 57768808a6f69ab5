"""List options: which requests a kube-apiserver refuses before it looks for anything."""

from collections.abc import Mapping

import pytest

from tests.fake_apiserver.options import WatchListMode, kind_of, parse_options
from tests.fake_apiserver.resources import PODS
from tests.fake_apiserver.statuses import RefusedError

WATCH: Mapping[str, str] = {"watch": "true"}
INITIAL: Mapping[str, str] = {"watch": "true", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
GATE = "Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"


@pytest.mark.parametrize(
    ("query", "mode", "errors"),
    [
        (
            {"sendInitialEvents": "true"},
            "on",
            {"sendInitialEvents": "Forbidden: sendInitialEvents is forbidden for list"},
        ),
        (
            {"resourceVersionMatch": "Exact"},
            "on",
            {"resourceVersionMatch": "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"},
        ),
        (
            {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
            "on",
            {
                "resourceVersionMatch": 'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
            },
        ),
        (
            {"resourceVersionMatch": "Newest", "resourceVersion": "1"},
            "on",
            {
                "resourceVersionMatch": 'Unsupported value: "Newest": supported values: "Exact", "NotOlderThan", ""',
            },
        ),
        (
            {"resourceVersionMatch": "Exact", "resourceVersion": "1", "continue": "x"},
            "on",
            {"resourceVersionMatch": "Forbidden: resourceVersionMatch is forbidden when continue is provided"},
        ),
        (
            {**WATCH, "sendInitialEvents": "true"},
            "on",
            {
                "resourceVersionMatch": "Forbidden: sendInitialEvents requires setting resourceVersionMatch to "
                "NotOlderThan"
            },
        ),
        (INITIAL, "off", {"sendInitialEvents": GATE}),
        (
            {**INITIAL, "sendInitialEvents": "false"},
            "off",
            {"sendInitialEvents": GATE},
        ),
        (
            {**WATCH, "resourceVersionMatch": "NotOlderThan"},
            "on",
            {
                "resourceVersionMatch": "Forbidden: resourceVersionMatch is forbidden for watch unless "
                "sendInitialEvents is provided"
            },
        ),
        (
            {**INITIAL, "continue": "x"},
            "on",
            {"resourceVersionMatch": "Forbidden: resourceVersionMatch is forbidden when continue is provided"},
        ),
    ],
)
def test_options_that_do_not_fit_are_invalid(
    query: Mapping[str, str], mode: WatchListMode, errors: Mapping[str, str]
) -> None:
    with pytest.raises(RefusedError) as refused:
        parse_options(query, "", PODS, mode)
    status = refused.value.status
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert {cause["field"]: cause["message"] for cause in status["details"]["causes"]} == errors
    ((field, message),) = errors.items()
    assert status["message"] == f'ListOptions.meta.k8s.io "" is invalid: {field}: {message}'


def test_two_errors_are_told_together() -> None:
    with pytest.raises(RefusedError) as refused:
        parse_options({**WATCH, "sendInitialEvents": "true", "resourceVersionMatch": "Exact"}, "", PODS, "on")
    status = refused.value.status
    assert [cause["reason"] for cause in status["details"]["causes"]] == [
        "FieldValueForbidden",
        "FieldValueNotSupported",
    ]
    assert status["message"].startswith('ListOptions.meta.k8s.io "" is invalid: [resourceVersionMatch: Forbidden: ')
    assert status["message"].endswith('supported values: "NotOlderThan"]')


@pytest.mark.parametrize("version", ["x", "-1", "1.5"])
def test_a_version_that_is_no_number_is_a_bad_request(version: str) -> None:
    with pytest.raises(RefusedError) as refused:
        parse_options({"resourceVersion": version}, "", PODS, "on")
    assert refused.value.status["code"] == 400


@pytest.mark.parametrize(
    ("accept", "partial"),
    [
        ("", False),
        ("application/json", False),
        ("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", True),
        ("application/json; as=PartialObjectMetadataList", True),
        ("application/json,application/json;as=PartialObjectMetadataList", False),
    ],
    ids=["nothing", "json", "metadata", "with-a-blank", "second-choice"],
)
def test_the_first_accepted_form_counts(accept: str, partial: bool) -> None:  # noqa: FBT001 - what is expected
    assert parse_options({}, accept, PODS, "on").partial is partial


def test_kinds_of_requests() -> None:
    queries: list[Mapping[str, str]] = [{}, {"continue": "x"}, WATCH, {"watch": "1"}, INITIAL, {"watch": "false"}]
    assert [kind_of(query) for query in queries] == ["list", "page", "watch", "watch", "watch-list", "list"]
