"""CEL selectors of devices: an expression is compiled once by `compile_selector`, and `Selector.matches` evaluates it.

Source: k8s.io/dynamic-resource-allocation cel/compile.go. A selector that this module cannot evaluate exactly as
cel-go has an error of the kind NOT_EVALUATED. It is never guessed.
"""

import re
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, Final

import msgspec

from core.plugins.dynamicresources import cel_environment
from core.releases.release import Release

MAX_LENGTH: Final = 10 * 1024
"""Upstream's limit of an expression, in bytes (CELSelectorExpressionMaxLength)."""
LISTS_SINCE: Final = Release(1, 37)
"""Before, a list needs the alpha gate DRAListTypeAttributes, and is otherwise an "unsupported attribute value"."""

_version: Final = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?"
)


class Version(msgspec.Struct, frozen=True):
    """The text of a semantic version, as in `version` of an attribute."""

    text: str


Scalar = bool | int | str | Version
AttributeValue = Scalar | tuple[Scalar, ...] | None
"""A value of an attribute. None stands for one of a type that Kindred does not know."""


class SelectedDevice(msgspec.Struct, frozen=True):
    """What a selector reads of a device. Names are qualified by a domain or not, as in the ResourceSlice."""

    driver: str
    attributes: Mapping[str, AttributeValue] = {}
    capacity: Mapping[str, int] = {}
    """Amounts in `core.objects.quantity.nanos`."""
    allow_multiple_allocations: bool | None = None


class SelectorErrorKind(Enum):
    """What kept a selector from a result."""

    COMPILE = "compile"
    RUNTIME = "runtime"
    COST = "cost"
    """Above upstream's limit of cost, as far as that is known without cel-go."""
    NOT_EVALUATED = "not evaluated"
    """It needs what the CEL library lacks, or could differ from cel-go."""


class SelectorError(Exception):
    """A selector has no result."""

    def __init__(self, kind: SelectorErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class Selector:
    """A compiled selector. One that did not compile has an `error`."""

    def __init__(self, expression: str, release: Release) -> None:
        self.expression = expression
        self.error: SelectorError | None = None
        self._lists = release >= LISTS_SINCE
        self._program: cel_environment.Program | None = None
        try:
            self._program = _compiled(expression)
        except SelectorError as error:
            self.error = error

    def matches(self, device: SelectedDevice) -> bool:
        """Return whether the device matches. Raises SelectorError."""
        if self._program is None:
            raise self.error or SelectorError(SelectorErrorKind.COMPILE, "not compiled")
        result = self._program.evaluate(_variables(device, lists=self._lists))
        if isinstance(result, bool):
            return result
        raise SelectorError(SelectorErrorKind.RUNTIME, str(result))


@lru_cache(maxsize=1024)
def compile_selector(expression: str, release: Release) -> Selector:
    """Return the selector of an expression. Raises nothing: see `Selector.error`."""
    return Selector(expression, release)


def _compiled(expression: str) -> "cel_environment.Program":
    if len(expression.encode()) > MAX_LENGTH:
        raise SelectorError(SelectorErrorKind.NOT_EVALUATED, f"longer than {MAX_LENGTH} bytes")
    environment = cel_environment.environment()
    if environment is None:
        raise SelectorError(SelectorErrorKind.NOT_EVALUATED, "the package cel-expr-python is not installed")
    try:
        return environment.compiled(expression)
    except (ValueError, LookupError, RuntimeError) as error:
        raise SelectorError(SelectorErrorKind.COMPILE, str(error)) from error


def _variables(device: SelectedDevice, *, lists: bool) -> dict[str, Any]:
    attributes: dict[str, dict[str, Any]] = {}
    for name, value in device.attributes.items():
        domain, _, identifier = name.rpartition("/") if "/" in name else (device.driver, "", name)
        attributes.setdefault(domain, {})[identifier] = _attribute(name, value, lists=lists)
    capacity: dict[str, dict[str, Any]] = {}
    for name, amount in device.capacity.items():
        domain, _, identifier = name.rpartition("/") if "/" in name else (device.driver, "", name)
        capacity.setdefault(domain, {})[identifier] = cel_environment.quantity_value(amount)
    return {
        "device.driver": device.driver,
        "device.allowMultipleAllocations": bool(device.allow_multiple_allocations),
        "device.attributes": attributes,
        "device.capacity": capacity,
    }


def _attribute(name: str, value: AttributeValue, *, lists: bool) -> object:
    if isinstance(value, Version):
        if not _version.fullmatch(value.text):
            raise SelectorError(SelectorErrorKind.RUNTIME, f"attribute {name}: parse semantic version: {value.text}")
        return cel_environment.version_value(value.text)
    if value is None or (isinstance(value, tuple) and not lists):
        raise SelectorError(SelectorErrorKind.RUNTIME, f"attribute {name}: unsupported attribute value")
    return [_attribute(name, each, lists=False) for each in value] if isinstance(value, tuple) else value
