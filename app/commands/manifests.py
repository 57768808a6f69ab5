"""The input of commands, whole and never without end; and manifests in it, JSON or YAML: one, or a list."""

import codecs
import io
import re
import zlib
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import IO, Final

import click
import msgspec

from app.explain.stored_pod import read_json
from app.explain.workloads import flat, one_workload
from app.objects.decode import DecodeError
from app.objects.yaml_documents import DocumentsError, documents, form_of
from app.settings.limits import DEFAULTS

_AT_ONCE: Final = 1024 * 1024  # bytes
_GZIP: Final = b"\x1f\x8b"
_MESSAGES: Final = re.compile(rb"(?:(?:Warning: |[IWE]\d{4} \d\d:\d\d:)[^\n]*\n)+(?=[{\[]|---|apiVersion:)")
"""Messages of kubectl before its output, where both were written to one file: warnings, and throttled requests."""


class InputError(ValueError):
    """The input cannot be read, or not to its end. The message says why."""


def read_input(file: IO[bytes], most: int, limit: str) -> bytes:
    """Return the whole input, of at most `most` bytes. `limit` names this bound in the error.

    A pipe or a device may have no end. Text has no NUL, so a NUL identifies /dev/zero at once. The bound stops any
    other input. UTF-16 with a byte order mark, as PowerShell writes it, is returned as UTF-8, gzip as what it has, and
    nothing of messages that kubectl prints before its output. Raises InputError.
    """
    found = io.BytesIO()
    for chunk in _utf_8(_unzipped(iter(partial(file.read, _AT_ONCE), b""))):
        nul = chunk.find(b"\0")
        if nul >= 0:
            no_text = f"a NUL at byte {found.tell() + nul}: neither JSON nor YAML in UTF-8 or UTF-16"
            raise InputError(form_of(found.getvalue() or chunk) or no_text)
        found.write(chunk)
        if found.tell() > most:
            raise InputError(f"more than {most} bytes ({limit})")
    text = found.getvalue()  # shares the buffer: no copy, which could take 2 GB
    messages = _MESSAGES.match(text)
    return text[messages.end() :] if messages is not None else text


def _unzipped(chunks: Iterator[bytes]) -> Iterator[bytes]:
    first = next(chunks, b"")
    if not first.startswith(_GZIP):
        yield from chain([first], chunks)
        return
    unzip = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    for chunk in chain([first], chunks):
        rest = chunk
        while rest:  # in pieces, because a short input may have a very long text
            try:
                yield unzip.decompress(rest, _AT_ONCE)
            except zlib.error as error:
                raise InputError(f"gzip: {error}") from None
            rest = unzip.unconsumed_tail
    if not unzip.eof:
        raise InputError("gzip: truncated")


def _utf_8(chunks: Iterator[bytes]) -> Iterator[bytes]:
    first = next(chunks, b"")
    if not first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        yield from chain([first], chunks)
        return
    decoder = codecs.getincrementaldecoder("utf-16")()
    try:
        for chunk in chain([first], chunks):
            yield decoder.decode(chunk).encode()
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise InputError(f"UTF-16: {error.reason}") from None


MAX_MANIFEST_BYTES: Final = DEFAULTS.max_body_bytes
"""A manifest is as large as the request that a service reads."""


def read_manifests(option: str, file: str) -> bytes:
    """Return the contents of a file; - is standard input. Raises UsageError, which names the option."""
    try:
        with click.open_file(file, "rb") as opened:
            return read_input(opened, MAX_MANIFEST_BYTES, "the largest manifest")
    except OSError as error:
        raise click.UsageError(f"{option}: {file}: {error.strerror}.") from None
    except InputError as error:
        raise click.UsageError(f"{option}: {file}: {error}.") from None


def one_manifest(option: str, text: bytes, chosen: str = "", namespace: str = "") -> bytes:
    """Return the JSON of the only pod or pod template, or of the `chosen` one. Raises UsageError with the option.

    A manifest without a namespace is in `namespace`.
    """
    try:
        return one_workload(_documents(option, text), chosen, namespace)
    except DecodeError as error:
        raise click.UsageError(f"{option}: {error}") from None


def all_manifests(option: str, text: bytes) -> list[bytes]:
    """Return the JSON of each manifest, also inside of a List. Raises UsageError, which names the option."""
    documents = _documents(option, text)
    try:
        found = [msgspec.json.encode(each) for document in documents for each in flat(read_json(document))]
    except DecodeError as error:
        raise click.UsageError(f"{option}: {error}") from None
    if not found:
        raise click.UsageError(f"{option}: expected a manifest, found none.")
    return found


def _documents(option: str, text: bytes) -> list[bytes]:
    if form := form_of(text):
        raise click.UsageError(f"{option}: {form}.")
    try:
        return documents(text)
    except DocumentsError as error:
        rendered = "; it has {{ }} of a template, which `helm template` renders" if b"{{" in text else ""
        raise click.UsageError(f"{option}: {error}{rendered}") from None
