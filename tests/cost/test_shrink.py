"""Delta debugging of JSON documents."""

from typing import Any

from tests.cost.shrink import shrunk


def _bad(document: Any) -> list[Any]:  # noqa: ANN401 - JSON
    return [each for each in document.get("list", ()) if each == {"bad": 1}]


def test_what_is_needed_is_all_that_stays() -> None:
    document = {"other": "x" * 1000, "list": [{"bad": 1}, *({"good": n} for n in range(100)), {"bad": 1}, {"bad": 1}]}
    assert shrunk(document, lambda each: isinstance(each, dict) and len(_bad(each)) >= 2) == {"list": [{"bad": 1}] * 2}


def test_a_text_is_halved_as_long_as_it_is_too_long() -> None:
    assert len(shrunk({"name": "x" * 4096}, lambda each: len(each.get("name", "")) > 1000)["name"]) == 1024


def test_it_ends_after_so_many_tries() -> None:
    tried: list[object] = []

    def still(document: object) -> bool:
        tried.append(document)
        return False

    shrunk({"list": [*range(1000)]}, still, most_tries=5)
    assert len(tried) == 5


def test_the_document_that_was_given_stays_as_it_is() -> None:
    document = {"list": [{"bad": 1}, {"good": 1}]}
    shrunk(document, lambda each: isinstance(each, dict) and len(_bad(each)) == 1)
    assert document == {"list": [{"bad": 1}, {"good": 1}]}
