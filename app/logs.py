"""Logging by the standard library: one line per event on standard error, as JSON for machines or text for people.

Libraries log the same way. Each key of a record's `extra` becomes a field in both forms. app/line_rate.py limits the
lines of each kind: a request must not be able to fill the disk.
"""

import logging
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from traceback import extract_tb
from typing import Final, Literal, TextIO

import msgspec

from app.json_text import encode
from app.line_rate import LIMIT, LineRate
from app.shown_text import shown, shown_json

_MAX_LENGTH: Final = 2000  # characters of text from a request in one message
LATE: Final = "late_fields"
"""Key, in the `extra` of a line, of a function that returns further fields. It is called only for a written line."""
_OF_EVERY_RECORD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", LIMIT, LATE}
_PAUSE: Final = 1.0  # seconds between a line that was left out and the look for sums


def configure(level: str, form: Literal["auto", "json", "text"] = "auto", stream: TextIO | None = None) -> None:
    """Log messages of at least `level` to `stream` (default: standard error). `auto`: text on a terminal, else JSON."""
    out = stream or sys.stderr
    if form == "auto":
        form = "text" if out.isatty() else "json"
    handler = LimitedLines(out)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(capture=True)  # else warnings would be plain text between the JSON lines
    # Uvicorn's four lines at the start have less information than Kindred's own line.
    logging.getLogger("uvicorn").setLevel(max(logging.WARNING, logging.getLogger().level))


class LimitedLines(logging.StreamHandler[TextIO]):
    """Writes lines up to the limit of each kind, and a sum of the others when their second is over, and at the end."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._rate = LineRate(time.monotonic)
        self._timer: threading.Timer | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, or count it as left out. The caller has the lock of the handler."""
        if self._rate.allows(record):
            super().emit(record)
        elif self._timer is None:
            self._look_later()

    def close(self) -> None:
        """Write the sums. The standard library calls this at the end of the process."""
        self._write_sums(all_of_them=True)
        super().close()

    def _look_later(self) -> None:
        # A thread, because lines also come from threads, and because the loop may be held.
        self._timer = threading.Timer(_PAUSE, self._write_sums)
        self._timer.daemon = True
        with suppress(RuntimeError):  # the process ends, and starts no threads: `close` writes the sums
            self._timer.start()

    def _write_sums(self, *, all_of_them: bool = False) -> None:
        self.acquire()
        try:
            for line in self._rate.sums(all_of_them=all_of_them):
                super().emit(line)
            self._timer = None
            if self._rate.is_storm:
                self._look_later()
        finally:
            self.release()


def one_line(text: str) -> str:
    """Return a text from a request for use in a log line: cut, and without line breaks and control characters."""
    cut = text[:_MAX_LENGTH] + ("..." if len(text) > _MAX_LENGTH else "")
    return shown(cut)


def raised_at(error: BaseException) -> str:
    """Return where an exception was raised, innermost first, without its message, which may quote a request."""
    frames = reversed(extract_tb(error.__traceback__))
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames)


class JsonLines(logging.Formatter):
    """One object per line: `time`, `level`, `logger`, `message`, the fields of the event, and `exception`."""

    def format(self, record: logging.LogRecord) -> str:
        """Make the line."""
        line: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name, value in _fields(record):
            line.setdefault(name, value)
        exception = _exception(self, record)
        if exception:
            line["exception"] = exception
        try:
            return shown_json(encode(line, unknown=str).decode())
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
            return shown_json(encode({name: _encodable(value) for name, value in line.items()}).decode())


class TextLines(logging.Formatter):
    """`TIME LEVEL LOGGER: MESSAGE KEY=VALUE ...`, and an exception on indented lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """Make the line, or lines."""
        head = f"{_time(record)} {record.levelname} {record.name}: {shown(record.getMessage())}"
        line = " ".join((head, *(f"{name}={_value(value)}" for name, value in _fields(record))))
        exception = _exception(self, record)
        # The message of an exception may have lines, which must not look like lines of the log.
        return "\n".join((line, *(f"  {shown(each)}" for each in exception.splitlines())))


def _time(record: logging.LogRecord) -> str:
    """Return the time of a record, RFC 3339, in UTC."""
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> Iterable[tuple[str, object]]:
    """Return the fields given as `extra`."""
    late: Mapping[str, object] = getattr(record, LATE, dict)()
    return {**late, **{name: value for name, value in vars(record).items() if name not in _OF_EVERY_RECORD}}.items()


def _exception(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    told = formatter.formatException(record.exc_info) if record.exc_info else record.exc_text or ""
    return f"{told}\n{formatter.formatStack(record.stack_info)}" if record.stack_info else told


def _value(value: object) -> str:
    """Return a value in a form that shows where it ends."""
    text = shown(str(value))
    if text and not any(char in text for char in ' "='):
        return text
    return '"' + text.replace('"', r"\"") + '"'


def _encodable(value: object) -> str:
    """Return a text that JSON rejects, such as half of a surrogate pair, in a form that JSON accepts."""
    return str(value).encode("utf-8", "backslashreplace").decode()
