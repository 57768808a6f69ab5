"""The syntax of label keys and values, with upstream's messages.

A selector with an invalid key or value fails the whole affinity term, and kube-scheduler prints the message. So the
messages here equal upstream's. Source: k8s.io/apimachinery pkg/util/validation/validation.go until v1.34; since v1.35
pkg/api/validate/content, see `in_bytes`.
"""

import re

_QUALIFIED_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_QUALIFIED_NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_LABEL_VALUE = f"({_QUALIFIED_NAME})?"
_LABEL_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = f"{_DNS_LABEL}(\\.{_DNS_LABEL})*"
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_MAX_NAME = 63
_MAX_SUBDOMAIN = 253

# re.ASCII is implied by the explicit classes; fullmatch because Python's "$" also matches before a newline.
_qualified_name = re.compile(_QUALIFIED_NAME)
_label_value = re.compile(_LABEL_VALUE)
_subdomain = re.compile(_SUBDOMAIN)
_too_long_text = re.compile(f"must be no more than ({_MAX_NAME}|{_MAX_SUBDOMAIN}) characters")


def label_key_errors(key: str) -> list[str]:
    """Return the errors of a label key (upstream IsQualifiedName). Empty if the key is valid."""
    prefix, slash, name = key.partition("/")
    errors: list[str] = []
    if not slash:
        name = key
    elif "/" in name:
        hint = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return ["a qualified name " + _broken_name() + hint]
    elif not prefix:
        errors.append("prefix part must be non-empty")
    else:
        errors += ["prefix part " + error for error in _subdomain_errors(prefix)]
    if not name:
        errors.append("name part must be non-empty")
    elif _length(name) > _MAX_NAME:
        errors.append("name part " + _too_long(_MAX_NAME))
    if not _qualified_name.fullmatch(name):
        errors.append("name part " + _broken_name())
    return errors


def label_value_errors(value: str) -> list[str]:
    """Return the errors of a label value (upstream IsValidLabelValue). Empty if the value is valid."""
    if len(value) <= _MAX_NAME and _label_value.fullmatch(value):  # a match means that the value is ASCII
        return []
    errors = [_too_long(_MAX_NAME)] if _length(value) > _MAX_NAME else []
    if not _label_value.fullmatch(value):
        errors.append(_mismatch(_LABEL_VALUE_RULE, _LABEL_VALUE, "MyValue", "my_value", "12345"))
    return errors


def in_bytes(message: str) -> str:
    """Return a message in the wording since v1.35, which says "label key", and gives lengths in bytes."""
    message = message.replace("a qualified name " + _QUALIFIED_NAME_RULE, "a valid label key " + _QUALIFIED_NAME_RULE)
    return _too_long_text.sub(r"must be no more than \1 bytes", message)


def _subdomain_errors(value: str) -> list[str]:
    errors = [_too_long(_MAX_SUBDOMAIN)] if _length(value) > _MAX_SUBDOMAIN else []
    if not _subdomain.fullmatch(value):
        errors.append(_mismatch(_SUBDOMAIN_RULE, _SUBDOMAIN, "example.com"))
    return errors


def _broken_name() -> str:
    return _mismatch(_QUALIFIED_NAME_RULE, _QUALIFIED_NAME, "MyName", "my.name", "123-abc")


def _mismatch(rule: str, pattern: str, *examples: str) -> str:
    # The stray comma before "regex" is upstream's (validation.RegexError).
    listed = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {listed}regex used for validation is '{pattern}')"


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} characters"


def _length(value: str) -> int:
    # Go's len counts bytes.
    return len(value.encode())
