"""Converts JSON or YAML to JSON documents, with a limit on the expanded text, too (app/process/yaml_traps.py)."""

import codecs
import re
from collections.abc import Hashable, Iterator
from contextlib import suppress
from typing import Any, ClassVar, Final, TypeAlias

import msgspec
import numpy as np
import yaml

from app.process.logs import one_line
from app.process.yaml_traps import MAX_DOCUMENTS, NUMBERS, refuse_traps

_BASE_60: Final = "(?!.*:)"
_TEXT: Final = {str}
_INT64: Final = range(-(2**63), 2**63)
_POSITIONAL: Final = range(-4, 6)
"""The exponents of numbers that Go writes without one."""

_JSON: Final = re.compile(rb"(\xef\xbb\xbf)?\s*[{\[]")
_TRAILING: Final = re.compile(r"trailing characters \(byte ([0-9]+)\)$")
Json: TypeAlias = bytes | msgspec.Raw
_READ_AS_TEXT: Final = {"tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value"}
UNREADABLE: Final = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""The errors of PyYAML and msgspec for a value that does not fit its tag, such as `!!int ""` or `!!timestamp x`."""


class DocumentsError(ValueError):
    """A text without a JSON form, or with one that is too large. The message is one line of limited length."""


class _TextLoader(yaml.CSafeLoader):
    """YAML with the rules of Kubernetes: a bare timestamp, an equals sign or a base-60 number (1:30) is text.

    As in go-yaml, `y` and `n` are booleans, and `1e3` and `0o10` are numbers. A key is text, too, after it was read as
    a value: `yes` is "true", and `1.10` is "1.1". Source: sigs.k8s.io/yaml yaml.go (convertToJSONableObject).
    """

    bool_values: ClassVar = {**yaml.CSafeLoader.bool_values, "y": True, "n": False}

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002  # PyYAML's
        """Return a mapping with texts for keys. Raises ValueError for a key that has none."""
        found = super().construct_mapping(node, deep)
        if {*map(type, found)} <= _TEXT:
            return found
        try:
            return {_key_text(key): value for key, value in found.items()}
        except ValueError as error:
            raise ValueError(f"line {node.start_mark.line + 1}: {error}") from None


def _key_text(key: Hashable) -> str:
    match key:
        case str():
            return key
        case bool():
            return str(key).lower()
        case int() if _INT64.start <= key < _INT64.stop:
            return str(key)
        case int() | float():
            return _go_float(float(key))
        case _:
            raise ValueError(f"a key that is {'null' if key is None else type(key).__name__}, not a text")


def _go_float(number: float) -> str:
    """Return a number as Go's strconv.FormatFloat(number, 'g', -1, 32), which goes for keys."""
    with np.errstate(over="ignore"):
        single = np.float32(number)
    if not np.isfinite(single):
        return ".nan" if np.isnan(single) else ".inf" if single > 0 else "-.inf"
    text = np.format_float_scientific(single, trim="-", exp_digits=2)
    positional = int(text.partition("e")[2]) in _POSITIONAL
    return np.format_float_positional(single, trim="-") if positional else text


def _resolver(tag: str, pattern: re.Pattern[str]) -> tuple[str, re.Pattern[str]]:
    return tag, re.compile(_BASE_60 + pattern.pattern, pattern.flags) if tag in NUMBERS else pattern


_TextLoader.yaml_implicit_resolvers = {
    first: [_resolver(tag, pattern) for tag, pattern in resolvers if tag not in _READ_AS_TEXT]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
_TextLoader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("[yYnN]$"), [*"yYnN"])
_TextLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile("[-+]?[0-9]+[eE][-+]?[0-9]+$"), [*"-+0123456789"]
)
_TextLoader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile("[-+]?0o[0-7]+$"), [*"-+0"])


def is_json(text: bytes) -> bool:
    """Return whether a text is treated as JSON."""
    return _JSON.match(text) is not None


def documents(text: bytes) -> list[bytes]:
    """Return the JSON documents of a JSON or YAML text, which may have several. Raises DocumentsError.

    JSON is returned as it is. It may be malformed, but if it is YAML, it is read as that, as kubectl does
    (k8s.io/apimachinery pkg/util/yaml/decoder.go, YAMLOrJSONDecoder).
    """
    found = [bytes(each) for each in views_of_documents(text)]
    if is_json(text) and not _is_well_formed(found[-1]):
        with suppress(DocumentsError):
            return [bytes(each) for each in _yaml_documents(text)]
    return found


def views_of_documents(text: bytes) -> list[Json]:
    """Return the same without a copy of JSON, which may have gigabytes."""
    return list(_json_documents(text)) if is_json(text) else _yaml_documents(text)


def _yaml_documents(text: bytes) -> list[Json]:
    try:
        refuse_traps(text)
        # Each document is encoded before the next is read, because objects take many times the memory of their text.
        return [msgspec.json.encode(each) for each in yaml.load_all(text, _TextLoader) if each is not None]
    except yaml.YAMLError as error:
        raise DocumentsError(f"neither JSON nor YAML: {_message(error)}") from None
    except UNREADABLE as error:
        raise DocumentsError(f"YAML that has no JSON form: {_message(error)}") from None


def _json_documents(text: bytes) -> Iterator[Json]:
    """Yield the JSON texts that follow each other, as `kubectl get` prints them into one file time after time."""
    start = len(codecs.BOM_UTF8) if text.startswith(codecs.BOM_UTF8) else 0
    for _ in range(MAX_DOCUMENTS):
        rest = msgspec.Raw(memoryview(text)[start:]) if start else text
        length = _end_of_first(rest)
        if length is None:
            yield rest
            return
        yield msgspec.Raw(memoryview(text)[start : start + length])
        start += length
    raise DocumentsError(f"more than {MAX_DOCUMENTS} documents")


def _end_of_first(text: Json) -> int | None:
    """Return where the text after the first JSON document begins. None if there is none, or the JSON is malformed."""
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        found = _TRAILING.search(str(error))
        return int(found[1]) - 1 if found is not None else None
    return None


def _is_well_formed(text: bytes) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _message(error: Exception) -> str:
    # Cleaned and cut, because a message may quote the input.
    return one_line(" ".join(str(error).split())) or type(error).__name__


# Texts that are no manifests and no dumps.

_FORMS: Final = (
    (rb"(NAMESPACE +)?(NAME|LAST SEEN)( +[A-Z]|\s*$)", "the table that kubectl prints; add -o json"),
    (rb"Name: {2,}", "what `kubectl describe` prints; use `kubectl get -o json`"),
    (rb"(?i:<(!doctype|html|\?xml))", "a page of HTML or XML, such as that of a proxy or of a login"),
    (rb"(?i:error|unable to|the connection to|no resources found|you must be)\b", "a message of kubectl"),
    (rb"[IWEF]\d{4} \d\d:\d\d|\d{4}-\d\d-\d\d[T ]\d\d:\d\d|time=", "a log"),
    (rb"PK\x03\x04|BZh|\xfd7zXZ|(?s:.{257}ustar)", "an archive; unpack it, and give the folder"),
    (rb"k8s\x00", "an object in protobuf, as etcd has it"),
)
"""The beginning of a text -> what it is."""
_patterns: Final = tuple((re.compile(rb"\s*(?:" + begin + rb")", re.MULTILINE), name) for begin, name in _FORMS)
_HEAD: Final = 1024  # bytes


def form_of(text: bytes) -> str:
    """Return what a text is that has no objects, for errors. Empty if it is not known."""
    head = text[:_HEAD]
    found = next((name for pattern, name in _patterns if pattern.match(head)), "")
    if found == "a message of kubectl":
        found += f": {head.decode(errors='replace').splitlines()[0].strip()[:200]}"
    return f"this is {found}" if found else ""
