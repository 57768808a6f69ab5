"""An event is a line of the log, as JSON or as text, whatever stands in it; the levels are tested with the service."""

import io
import json
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any, Literal

import pytest

from app.process import logs
from app.process.logs import JsonLines, TextLines, one_line
from tests.app.serving import until

AT = 1_763_776_800.25


@pytest.fixture
def _logging_is_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    logging.captureWarnings(capture=False)  # of a service in an earlier test
    yield
    logging.captureWarnings(capture=False)
    root.handlers[:], root.level = handlers, level


def record(message: str, *arguments: object, **extra: object) -> logging.LogRecord:
    made = logging.makeLogRecord(
        {"name": "app.feeds", "levelno": logging.WARNING, "levelname": "WARNING", "msg": message, "args": arguments}
    )
    made.created = AT
    vars(made).update(extra)
    return made


def failed() -> logging.LogRecord:
    made = record("failed")
    nodes: dict[str, int] = {}
    try:
        nodes["node-1"] += 1
    except KeyError:
        made.exc_info = sys.exc_info()
    return made


def json_line(made: logging.LogRecord) -> Any:  # noqa: ANN401 - whatever stands in the line
    line = JsonLines().format(made)
    assert line.splitlines() == [line]
    return json.loads(line)


def test_json_has_the_event_its_words_and_its_fields() -> None:
    assert json_line(record("%s: %d objects", "pods", 7, resource="pods", objects=7, shares={"a": 0.5})) == {
        "time": "2025-11-22T02:00:00.250Z",
        "level": "warning",
        "logger": "app.feeds",
        "message": "pods: 7 objects",
        "resource": "pods",
        "objects": 7,
        "shares": {"a": 0.5},
    }


def test_text_has_the_same() -> None:
    line = TextLines().format(record("synced", resource="pods", objects=7, because='it is "new"', pod="", eq="a=b"))
    assert line == (
        "2025-11-22T02:00:00.250Z WARNING app.feeds: synced "
        'resource=pods objects=7 because="it is \\"new\\"" pod="" eq="a=b"'
    )


def test_an_exception_is_one_string_of_json_and_lines_of_text() -> None:
    exception = json_line(failed())["exception"]
    assert exception.startswith("Traceback (most recent call last):\n")
    assert exception.endswith("KeyError: 'node-1'")
    first, second, *_, last = TextLines().format(failed()).splitlines()
    assert first.endswith("WARNING app.feeds: failed")
    assert (second, last) == ("  Traceback (most recent call last):", "  KeyError: 'node-1'")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a\nb\r\n2025-11-22T02:00:00.250Z ERROR root: forged", id="line-breaks"),
        pytest.param("a\u2028b\x85c", id="line-breaks-of-unicode"),
        pytest.param("half \ud83d", id="half-a-character"),
        pytest.param("\x00\x1b[31m", id="control-characters"),
    ],
)
def test_whatever_the_words_they_are_one_line(text: str) -> None:
    assert len(JsonLines().format(record("%s", text, pod=text)).split("\n")) == 1
    json.loads(JsonLines().format(record("%s", text, pod=text)))
    assert len(TextLines().format(record("%s", text, pod=text)).splitlines()) == 1
    TextLines().format(record("%s", text, pod=text)).encode()


def test_what_is_no_json_is_told_as_text() -> None:
    assert json_line(record("m", kind=KeyError, of={1, 2}))["kind"] == "<class 'KeyError'>"
    deep: list[object] = []
    deep.append(deep)
    assert json_line(record("m", deep=deep))["deep"] == "[[...]]"


class Terminal(io.StringIO):
    """A stream that people look at."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("form", "stream", "is_json"),
    [
        pytest.param("auto", io.StringIO(), True, id="to-a-file"),
        pytest.param("auto", Terminal(), False, id="to-a-terminal"),
        pytest.param("json", Terminal(), True, id="json"),
        pytest.param("text", io.StringIO(), False, id="text"),
    ],
)
@pytest.mark.usefixtures("_logging_is_as_before")
def test_the_form_follows_the_stream_unless_it_is_said(
    form: Literal["auto", "json", "text"],
    stream: io.StringIO,
    is_json: bool,  # noqa: FBT001 - one of two cases
) -> None:
    logs.configure("info", form, stream)
    logging.getLogger("app").info("hello")
    assert stream.getvalue().startswith("{") is is_json
    assert stream.getvalue().count("hello") == 1


@pytest.mark.usefixtures("_logging_is_as_before")
def test_warnings_and_the_libraries_go_the_same_way_and_lines_below_the_level_do_not() -> None:
    stream = io.StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logs.configure("warning", "json", stream)
        warnings.warn("of Python", UserWarning, stacklevel=1)
    logging.getLogger("uvicorn.error").warning("of uvicorn")
    logging.getLogger("uvicorn.error").info("chatter")
    logging.getLogger("asyncio").error("of asyncio")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["logger"], line["level"], line["message"].split(": ")[-1].split("\n")[0]) for line in lines] == [
        ("py.warnings", "warning", "of Python"),
        ("uvicorn.error", "warning", "of uvicorn"),
        ("asyncio", "error", "of asyncio"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("NodeNames[2]: café is at position 0 already", None, id="text-stays"),
        pytest.param("a\nb\r\nc", "a\\nb\\r\\nc", id="line-breaks"),
        pytest.param("a\x1b[31mb\x00", "a\\x1b[31mb\\x00", id="control-characters"),
        pytest.param("a\u2028b\u202ec\x85", "a\\u2028b\\u202ec\\x85", id="line-breaks-of-unicode"),
    ],
)
def test_the_words_of_a_request_are_one_line(text: str, expected: str | None) -> None:
    assert one_line(text) == (text if expected is None else expected)
    assert len(one_line(text).splitlines()) == 1


@pytest.mark.usefixtures("_logging_is_as_before")
def test_a_storm_of_any_line_is_ten_lines_and_a_sum_without_a_further_line() -> None:
    stream = io.StringIO()
    logs.configure("info", "json", stream)
    threads = [threading.Thread(target=storm) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    def lines_of(message: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in stream.getvalue().splitlines()]
        return [line for line in lines if line["message"].startswith(message)]

    # A storm of more than a second has more than one sum.
    until(lambda: len(lines_of("bind:")) + sum(line["left_out"] for line in lines_of("lines left out")) == 2000)
    lines = lines_of("")
    assert len(lines_of("bind:")) <= 10 * len({line["time"][:19] for line in lines})
    assert (lines[-1]["like"], lines[-1]["logger"], lines[-1]["level"]) == ("bind: %d", "app", "warning")


def storm() -> None:
    for number in range(500):
        logging.getLogger("app").warning("bind: %d", number)


@pytest.mark.usefixtures("_logging_is_as_before")
def test_the_end_of_the_process_writes_the_sums() -> None:
    stream = io.StringIO()
    logs.configure("info", "text", stream)
    storm()
    logging.getLogger().handlers[0].close()
    assert stream.getvalue().splitlines()[-1].endswith('app: lines left out like="bind: %d" left_out=490')


def test_fields_that_cost_much_are_made_for_a_written_line_alone() -> None:
    assert json_line(record("m", first=1, late_fields=lambda: {"second": 2})) == json_line(
        record("m", second=2, first=1)
    )


def test_the_words_of_a_request_are_cut_short() -> None:
    assert one_line("x" * 2000) == "x" * 2000
    assert one_line("x" * 10_000_000) == "x" * 2000 + "..."
