"""CEL selectors of devices: an expression is compiled once by `compile_selector`, and `Selector.matches` evaluates it.

Source: k8s.io/dynamic-resource-allocation cel/compile.go. A selector that this module cannot evaluate exactly as
cel-go has an error of the kind NOT_EVALUATED. It is never guessed.
"""

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Final

import msgspec

from core.plugins.dynamicresources import cel_functions
from core.plugins.dynamicresources.cel_functions import (
    CostError,
    EvaluationError,
    InvalidExpressionError,
    Limits,
    UnknownResultError,
)
from core.releases.release import Release

if TYPE_CHECKING:
    from core.plugins.dynamicresources.cel_environment import Program

MAX_LENGTH: Final = 10 * 1024
"""Upstream's limit of an expression, in bytes (CELSelectorExpressionMaxLength)."""
STORED: Final = 256 * 1024
"""Characters of the expressions that are kept compiled. One of 10 KB takes up to 2 MB, a usual one 15 KB."""
LISTS_SINCE: Final = Release(1, 37)
"""Before, a list needs the alpha gate DRAListTypeAttributes, and is otherwise an "unsupported attribute value"."""

INCLUDES_SINCE: Final = Release(1, 36)
_ANY_VERSION: Final = cel_functions.version_of("0.0.0")


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
    """It may cost more than Kindred's limit (`cel_cost`). Whether it is above upstream's is not known."""
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
        self._program: Program | None = None
        try:
            self._program = _compiled(expression, Limits(self._lists, release >= INCLUDES_SINCE))
        except SelectorError as error:
            self.error = SelectorError(error.kind, error.message)  # without a traceback, which would keep its frames

    def matches(self, device: SelectedDevice) -> bool:
        """Return whether the device matches. Raises SelectorError."""
        if self._program is None or self.error is not None:
            error = self.error or SelectorError(SelectorErrorKind.COMPILE, "not compiled")
            raise SelectorError(error.kind, error.message)  # raised twice, it would keep the frames of both
        try:
            variables, versions = _variables(device, self._program, lists=self._lists)
            result = self._program.evaluate(variables, versions=versions)
        except EvaluationError as error:
            raise SelectorError(SelectorErrorKind.RUNTIME, str(error)) from error
        except UnknownResultError as error:
            raise _not_evaluated(error) from error
        if isinstance(result, bool):
            return result
        raise SelectorError(SelectorErrorKind.RUNTIME, "CEL result could not be converted to bool")


class _Stored:
    """Compiled selectors, up to STORED characters of expressions. Those used least recently go first."""

    def __init__(self) -> None:
        self._selectors: dict[tuple[str, Release], Selector] = {}
        self._length = 0

    def of(self, expression: str, release: Release) -> Selector:
        key = (expression, release)
        found = self._selectors.pop(key, None)
        if found is None:
            found = Selector(expression, release)
            self._length += len(expression)
        self._selectors[key] = found
        while self._length > STORED and len(self._selectors) > 1:
            oldest = next(iter(self._selectors))
            del self._selectors[oldest]
            self._length -= len(oldest[0])
        return found


_stored: Final = _Stored()


def compile_selector(expression: str, release: Release) -> Selector:
    """Return the selector of an expression. Raises nothing: see `Selector.error`."""
    return _stored.of(expression, release)


def _compiled(expression: str, limits: Limits) -> "Program":
    # Where there are no selectors, the package does not cost 8 MB and 50 ms.
    from core.plugins.dynamicresources import cel_environment  # noqa: PLC0415  # as above

    try:
        if len(expression.encode(errors="replace")) <= MAX_LENGTH:
            return cel_environment.environment(limits).compiled(expression)
    except InvalidExpressionError as error:
        raise SelectorError(SelectorErrorKind.COMPILE, str(error)) from error
    except UnknownResultError as error:
        raise _not_evaluated(error) from error
    raise _not_evaluated(UnknownResultError(f"longer than {MAX_LENGTH} bytes"))


def _not_evaluated(error: UnknownResultError) -> SelectorError:
    kind = SelectorErrorKind.COST if isinstance(error, CostError) else SelectorErrorKind.NOT_EVALUATED
    return SelectorError(kind, f"selector not evaluated: {error}")


def _variables(device: SelectedDevice, program: "Program", *, lists: bool) -> tuple[dict[str, object], bool]:
    """Return the variables of an expression, and whether there are versions among them."""
    attributes: dict[str, dict[str, object]] = {}
    versions = False
    for name, value in device.attributes.items():
        domain, identifier = _split(name, device.driver)
        if isinstance(value, tuple) and program.needs.lists and any(isinstance(each, Version) for each in value):
            raise UnknownResultError("an equality, with a device that has lists of versions")
        versions = versions or isinstance(value, Version)
        attributes.setdefault(domain, {})[identifier] = _attribute(name, value, program, lists=lists)
    capacity: dict[str, dict[str, object]] = {}
    for name, amount in device.capacity.items():
        domain, identifier = _split(name, device.driver)
        capacity.setdefault(domain, {})[identifier] = program.native(cel_functions.quantity_of(amount))
    domains: dict[str, dict[str, object]] = {each: {} for each in program.needs.domains}
    if program.needs.drivers:
        domains[device.driver] = {}
    variables: dict[str, object] = {
        "device.driver": _text(device.driver),
        "device.allowMultipleAllocations": bool(device.allow_multiple_allocations),
        "device.attributes": domains | attributes,
        "device.capacity": domains | capacity,
        "@attributes": attributes,
        "@capacity": capacity,
        "@version": program.native(_ANY_VERSION),
    }
    return variables, versions


def _text(value: str) -> str:
    """Refuse what the package cuts off or cannot take: a character 0, and half of a surrogate pair."""
    if "\0" in value or not (value.isascii() or value.encode(errors="ignore").decode() == value):
        raise UnknownResultError("a text with a character 0, or half a character")
    return value


def _split(name: str, driver: str) -> tuple[str, str]:
    """Return domain and identifier of a qualified name."""
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


def _attribute(name: str, value: AttributeValue, program: "Program", *, lists: bool) -> object:
    match value:
        case Version(text):
            try:
                return program.native(cel_functions.version_of(text))
            except cel_functions.FunctionError as error:
                raise EvaluationError(f"attribute {name}: parse semantic version: {error}") from error
        case tuple() if lists:
            return [_attribute(name, each, program, lists=False) for each in value]
        case bool() | int():
            return value
        case str():
            return _text(value)
    raise EvaluationError(f"attribute {name}: unsupported attribute value")
