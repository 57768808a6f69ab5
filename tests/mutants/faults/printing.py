"""Faults of logs, of the output of commands, and of files."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
    Fault(
        id="closed-pipe-is-no",
        breaks="A command whose reader closes the pipe ends with 2, whatever the answer is.",
        old="if not (err or isinstance(error, BrokenPipeError)):",
        new="if not err:",
        tests=("test_cli.py",),
    ),
    Fault(
        id="long-base-60-number",
        breaks="A file of settings with one long number keeps `serve` from starting for minutes.",
        old="(is_long_and_plain and _BASE_60.fullmatch(value))",
        new="(is_long_and_plain and False)",
        tests=("test_configuration_file.py",),
    ),
    Fault(
        id="log-without-a-limit",
        breaks="A storm of requests fills the log.",
        old="        if self._rate.allows(record):\n",
        new="        if self._rate.allows(record) or record:\n",
        tests=("test_logs.py", "test_log_storms.py"),
    ),
    Fault(
        id="sums-lost-at-the-end",
        breaks="The number of the lines that were left out is lost when the process ends.",
        old="        self._write_sums(all_of_them=True)\n",
        new="",
        tests=("test_logs.py",),
    ),
    Fault(
        id="kinds-of-lines-without-bound",
        breaks="Lines with ever new templates take memory without end.",
        old="            key = key if len(self._windows) < MAX_KINDS else ()\n",
        new="",
        tests=("test_line_rate.py",),
    ),
    Fault(
        id="line-printed-raw",
        breaks="A name with an escape sequence acts on the terminal.",
        old="        return escaped(line)\n",
        new="        return line\n",
        tests=("test_hostile_text.py",),
    ),
    Fault(
        id="colour-printed-raw",
        breaks="A name in a coloured line acts on the terminal.",
        old="click.style(escaped(line.text), ",
        new="click.style(line.text, ",
    ),
    Fault(
        id="error-of-click-printed-raw",
        breaks="A word of the command line acts on the terminal in a message of Click.",
        old="click.UsageError(escaped(error.format_message()), error.ctx).show()",
        new="error.show()",
        tests=("test_hostile_text.py",),
    ),
    Fault(
        id="yaml-escapes-without-quotes",
        breaks="YAML has an escape where it is no escape, so that its value changes.",
        old="style='\"' if escaped(text) != text else None)",
        new="style=None)",
    ),
    Fault(
        id="characters-without-glyph-shown",
        breaks="Characters that have no glyph make two names look alike.",
        old="    if text.isprintable() and (text.isascii() or not _UNSEEN.search(text)):\n",
        new="    if text.isprintable():\n",
        tests=("test_shown_text.py",),
    ),
    Fault(
        id="file-of-the-bound-refused",
        breaks="A file of exactly the largest size is refused.",
        old="        while len(found) <= most:\n",
        new="        while len(found) < most:\n",
        tests=("test_files.py",),
    ),
    Fault(
        id="what-is-not-judged-cut",
        breaks="A short explanation leaves out rules that were not judged.",
        old="for line in lines], least=sys.maxsize)",
        new="for line in lines])",
    ),
)
