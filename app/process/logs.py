"""Logging by the standard library: one line per event on standard error, as JSON for machines or text for people.

Libraries log the same way. Each key of a record's `extra` becomes a field in both forms. The lines of each kind are
limited, because a request must not be able to fill the disk. Text of others is shown without characters that act on a
terminal or have no glyph.
"""

import logging
import re
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from traceback import extract_tb
from typing import Final, Literal, NamedTuple, TextIO

import msgspec

from app.process.json_text import encode

# Text of others: names in any language stay readable. Escapes replace control characters, the ends of lines and
# paragraphs, marks that change the direction of text, and characters without width, such as the joiner in some emoji.

_UNSEEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters that Python calls printable, although they have no glyph (Default_Ignorable_Code_Point of Unicode)."""


def escaped(text: str, allowed: str = "") -> str:
    r"""Return a text with escapes, such as \x1b and \u202e. `kept` are characters that stay in any case."""
    return _with_escapes(text, allowed, _escape)


def escaped_json(text: str) -> str:
    """Return JSON with escapes. Its value stays the same, and so do the newlines between its parts."""
    return _with_escapes(text, "\n", _json_escape)


def _with_escapes(text: str, allowed: str, escape: Callable[[str], str]) -> str:
    if text.isprintable() and (text.isascii() or not _UNSEEN.search(text)):
        return text
    return "".join(each if each in allowed or _is_seen(each) else escape(each) for each in text)


def _is_seen(character: str) -> bool:
    return character.isprintable() and not _UNSEEN.match(character)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


# A limit of log lines a second, so that a storm of events does not fill the disk. The number left out is logged.
# Lines are of one kind if logger, level and template are equal.

LIMIT: Final = "line_limit"
"""Key of a LineLimit in the `extra` of a line that needs another limit."""
MAX_KINDS: Final = 1000
"""Kinds of lines in one second that are counted by themselves. The others are one kind."""
_WINDOW: Final = 1.0  # seconds


class LineLimit(NamedTuple):
    """How many lines of a kind are written in a second."""

    by: tuple[str, ...] = ()
    """Fields of the line. Lines with different values of them are of different kinds."""
    most: int = 10


NO_LIMIT: Final = LineLimit(most=sys.maxsize)
_DEFAULT: Final = LineLimit()


class _Window:
    __slots__ = ("began", "left_out", "like", "written")

    def __init__(self, began: float) -> None:
        self.began = began
        self.written = 0
        self.left_out = 0
        self.like: dict[str, object] = {}


class LineRate:
    """Decides which lines are written. It is for one thread at a time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Take a monotonic clock in seconds."""
        self._clock = clock
        self._windows: dict[Hashable, _Window] = {}
        self._storms: list[_Window] = []
        """The windows in which lines were left out, and whose sum is not written yet."""

    @property
    def is_storm(self) -> bool:
        """Return whether `sums` still has lines to yield, now or later."""
        return bool(self._storms)

    def allows(self, line: logging.LogRecord) -> bool:
        """Return whether a line may be written now. If so, it counts as written."""
        limit: LineLimit = getattr(line, LIMIT, _DEFAULT)
        now = self._clock()
        key: Hashable = (line.name, line.levelno, str(line.msg), *(str(getattr(line, name, "")) for name in limit.by))
        if key not in self._windows and len(self._windows) >= MAX_KINDS:
            self._windows = {each: window for each, window in self._windows.items() if now - window.began < _WINDOW}
            key = key if len(self._windows) < MAX_KINDS else ()
        window = self._windows.get(key)
        if window is None or now - window.began >= _WINDOW:
            window = self._windows[key] = _Window(now)
        window.written += 1
        if window.written <= limit.most:
            return True
        window.left_out += 1
        if window.left_out == 1:
            window.like = _like(line, limit)
            self._storms.append(window)
        return False

    def sums(self, *, all_of_them: bool = False) -> Iterator[logging.LogRecord]:
        """Yield a line for each kind that had lines left out in a second that is over, or also in this one."""
        now = self._clock()
        over = [window for window in self._storms if all_of_them or now - window.began >= _WINDOW]
        self._storms = [window for window in self._storms if window not in over]
        for window in over:
            yield logging.makeLogRecord({**window.like, "msg": "lines left out", "left_out": window.left_out})


def _like(line: logging.LogRecord, limit: LineLimit) -> dict[str, object]:
    """Return the parts of a line that its kind has in common, as the contents of a record."""
    fields = {name: getattr(line, name, "") for name in limit.by}
    return {"name": line.name, "levelno": line.levelno, "levelname": line.levelname, "like": str(line.msg), **fields}


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
    return escaped(cut)


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
            return escaped_json(encode(line, unknown=str).decode())
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
            return escaped_json(encode({name: _encodable(value) for name, value in line.items()}).decode())


class TextLines(logging.Formatter):
    """`TIME LEVEL LOGGER: MESSAGE KEY=VALUE ...`, and an exception on indented lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """Make the line, or lines."""
        head = f"{_time(record)} {record.levelname} {record.name}: {escaped(record.getMessage())}"
        line = " ".join((head, *(f"{name}={_value(value)}" for name, value in _fields(record))))
        exception = _exception(self, record)
        # The message of an exception may have lines, which must not look like lines of the log.
        return "\n".join((line, *(f"  {escaped(each)}" for each in exception.splitlines())))


def _time(record: logging.LogRecord) -> str:
    """Return the time of a record, RFC 3339, in UTC."""
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> Iterable[tuple[str, object]]:
    late: Mapping[str, object] = getattr(record, LATE, dict)()
    return {**late, **{name: value for name, value in vars(record).items() if name not in _OF_EVERY_RECORD}}.items()


def _exception(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    trace = formatter.formatException(record.exc_info) if record.exc_info else record.exc_text or ""
    return f"{trace}\n{formatter.formatStack(record.stack_info)}" if record.stack_info else trace


def _value(value: object) -> str:
    """Return a value in a form that shows where it ends."""
    text = escaped(str(value))
    if text and not any(char in text for char in ' "='):
        return text
    return '"' + text.replace('"', r"\"") + '"'


def _encodable(value: object) -> str:
    """Return a text that JSON rejects, such as half of a surrogate pair, in a form that JSON accepts."""
    return str(value).encode("utf-8", "backslashreplace").decode()
