"""Compiles and evaluates device selectors by cel-expr-python (cel-cpp), as cel-go does. The package is optional.

Source of the environment: cel/compile.go of k8s.io/dynamic-resource-allocation, pkg/cel/environment/base.go of
k8s.io/apiserver, where stored expressions have the libraries of all versions and of all feature gates.
"""

import ast
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from core.objects import quantity
from core.plugins.dynamicresources import cel_declarations, cel_functions
from core.plugins.dynamicresources.cel_declarations import Declared
from core.plugins.dynamicresources.cel_functions import (
    FUNCTIONS,
    EvaluationError,
    InvalidExpressionError,
    Limits,
    Made,
    UnknownResultError,
    Value,
)

try:
    from cel_expr_python import cel
    from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory
    from google.protobuf.message import DecodeError

    from core.plugins.dynamicresources import cel_cost, cel_equality, cel_rewriting, cel_types, checked_expression
except ModuleNotFoundError as missing:
    if missing.name not in {"cel_expr_python", "google"}:  # the optional packages, which are not installed
        raise
    cel = None

Native = Any
"""An object of a class of the package, which has no types."""

_RAISED: Final = (ValueError, LookupError, RuntimeError, TypeError, SystemError, ArithmeticError)
"""What the package raises: the first three by purpose, the others for values that it does not expect."""

_LIBRARIES: Final = """extensions:
  - name: bindings
  - name: optional
  - name: strings
    version: 2
  - name: sets
  - name: lists
  - name: two-var-comprehensions
"""
_VARIABLES: Final = ("driver", "allowMultipleAllocations", "attributes", "capacity")
_MAX_RESULTS: Final = 256
"""Results of functions that a program keeps. More are forgotten at once."""
_TURNS: Final = 64
"""Calls of functions in one evaluation."""
_NAMES: Final = """
existsOne first last unwrap unwrapOpt optional.unwrap device path group serviceAccount resource subresource namespace
name check allowed reason errored error fieldSelector labelSelector
"""
_UNDECLARED: Final = frozenset(_NAMES.split())
"""Names that cel-go knows, and this environment does not declare."""
_certain: Final = re.compile(
    r"Syntax error: (?!.*(?:recursion|limit))|found no matching overload for |undeclared reference to '(?P<name>[^']*)'"
    r"|expression of type '(?!\*error)[^']*' cannot be |undefined field |reserved identifier"
    r"|invalid (?:int|uint) literal|has\(\) argument must be|variable name must be a simple ident"
)
_invalid_everywhere: Final = re.compile(
    "missing|unexpected|no argument|bad repetition|invalid repetition size|trailing|invalid character class"
)
"""What makes a regular expression invalid in RE2 and in Go."""
_has: Final = re.compile(r"\bhas\(device\.(?:driver|attributes|capacity|allowMultipleAllocations)\)")
_of_two_variables: Final = re.compile("existsOne|exists_one")
"""Words of a macro that only cel-go has for a position and a value."""
_own_words: Final = re.compile(r"kindred_|@")
_missing: Final = re.compile(r"NOT_FOUND: Key not found in map : (.*)", re.DOTALL)
_MOST_DOUBLINGS: Final = 4
"""Uses of optMap and optFlatMap, each of which cel-cpp expands to twice its operand."""


class Plan(NamedTuple):
    """A rewritten expression, ready to be evaluated."""

    expression: Native
    needs: "cel_rewriting.Needs"
    panics: tuple[Native, ...]
    """Expressions that are true if cel-go may panic."""
    keys: tuple[Native, ...]
    """Expressions of the keys of its calls, inner ones first."""
    scoped: bool
    """It has calls with other keys."""


class Program:
    """A compiled expression."""

    def __init__(self, runtime: "_Runtime", checked: bytes) -> None:
        self._runtime = runtime
        self._checked = checked
        self._plain = runtime.planned(checked, guarded=False)
        self.needs = self._plain.needs
        self._guarded: Plan | None = None
        self._results: dict[str, object] = {}

    @staticmethod
    def native(value: Value) -> object:
        """Return a value as it has to be among the variables."""
        return _native(value)

    def evaluate(self, variables: Mapping[str, object], *, versions: bool) -> object:
        """Return the result. Raises EvaluationError or UnknownResultError.

        `versions` says that the device has versions among its attributes.
        """
        plan = self._plain
        if versions and self.needs.versions:
            self._guarded = plan = self._guarded or self._runtime.planned(self._checked, guarded=True)
        for each in plan.panics:
            self._check_panic(each, variables)
        for _ in range(_TURNS):
            result = self._once(plan.expression, variables)
            if result.type() != cel.Type.ERROR:
                return result.plain_value()
            error = str(result.plain_value())
            if not self._called(error) and not self._called_elsewhere(plan, variables):
                raise EvaluationError(_upstream_text(error))
        raise UnknownResultError(f"more than {_TURNS} calls of functions")

    def _check_panic(self, expression: Native, variables: Mapping[str, object]) -> None:
        """Raise UnknownResultError if the value is, or may be, a version. One that is an error is none."""
        result = self._once(expression, variables)
        found = result.plain_value()
        called = result.type() == cel.Type.ERROR and cel_rewriting.SEPARATOR in _missing_key(str(found))
        if found is True or called:
            raise UnknownResultError("a version as a key, or looked for among constants")

    def _once(self, expression: Native, variables: Mapping[str, object]) -> Native:
        try:
            result = expression.eval(data={**variables, cel_rewriting.CALLS: self._results})
            result.plain_value()  # kept in the result; an optional has none, and raises
        except _RAISED as error:  # instead of an error that || could absorb
            raise UnknownResultError(_first_line(str(error))) from error
        return result

    def _called_elsewhere(self, plan: Plan, variables: Mapping[str, object]) -> bool:
        """Make the calls that an error hides, and return whether there was one."""
        if plan.scoped:
            raise UnknownResultError("an error beside a function that depends on a variable")
        calls = 0
        for each in plan.keys:
            key = self._once(each, variables)
            if key.type() != cel.Type.ERROR and key.plain_value() not in self._results:
                calls += self._call(key.plain_value())
        return calls > 0

    def _called(self, error: str) -> bool:
        """Call the function whose result was missing, and return whether that was the error."""
        key = _missing_key(error)
        return key.partition(cel_rewriting.SEPARATOR)[0] in FUNCTIONS and self._call(key)

    def _call(self, key: str) -> bool:
        """Add a result, and return whether there is one. Raises UnknownResultError."""
        overload, _, rest = key.partition(cel_rewriting.SEPARATOR)
        expected = len(cel_declarations.parameters(overload))
        arguments = [rest] if expected == 1 else rest.split(cel_rewriting.SEPARATOR)
        if len(arguments) != expected:
            raise UnknownResultError("a text with a line break")
        try:
            value = FUNCTIONS[overload](*arguments)
        except cel_functions.FunctionError:
            return False
        if len(self._results) >= _MAX_RESULTS:
            self._results.clear()
        self._results[key] = _native(value)
        return True


class _Runtime:
    """Plans checked expressions, and knows their messages."""

    def __init__(self) -> None:
        file = descriptor_pb2.FileDescriptorProto(
            name="kindred_values.proto", package=cel_types.PACKAGE, syntax="proto3"
        )
        for name, field in cel_equality.FIELDS.items():
            file.message_type.add(name=name).field.add(name=field, number=1, type=9, label=1)
        self.pool = descriptor_pool.DescriptorPool()
        self.pool.AddSerializedFile(any_pb2.DESCRIPTOR.serialized_pb)
        self.pool.AddSerializedFile(file.SerializeToString())
        self.messages: dict[str, Native] = {
            name: message_factory.GetMessageClass(self.pool.FindMessageTypeByName(f"{cel_types.PACKAGE}.{name}"))
            for name in cel_equality.FIELDS
        }
        kind = cel.Type
        variables = _variables(kind.DYN)
        variables |= {of: variables[name] for name, of in cel_equality.MAPS.items()}
        variables[cel_rewriting.CALLS] = kind.Map(kind.STRING, kind.DYN)
        variables[cel_equality.A_VERSION] = _type("Semver")
        libraries = cel.NewEnvConfigFromYaml(f"{_LIBRARIES}  - name: regex\n")
        self.environment = cel.NewEnv(self.pool, config=libraries, variables=variables)
        self._templates = cel.NewEnv(self.pool, config=libraries, variables=dict.fromkeys("ab", kind.DYN))

    @lru_cache(maxsize=32)  # noqa: B019  # there is one runtime
    def template(self, text: str) -> Native:
        """Return the expression of a template."""
        return checked_expression.decoded(self._templates.compile(text).serialize()).expr

    def planned(self, checked: bytes, *, guarded: bool) -> Plan:
        """Return the expression to evaluate. Raises InvalidExpressionError or UnknownResultError."""
        try:
            return self._planned(checked_expression.decoded(checked), guarded=guarded)
        except (*_RAISED, DecodeError) as error:  # RecursionError is a RuntimeError
            raise UnknownResultError(_first_line(str(error))) from error

    def _planned(self, decoded: Native, *, guarded: bool) -> Plan:
        rewriting = cel_rewriting.Rewriting(decoded, self.template, guarded=guarded)
        needs = rewriting.rewrite()
        costs = cel_cost.Costs(decoded)
        for each in (decoded.expr, *rewriting.panics, *rewriting.keys):
            costs.check(each)
        for each in rewriting.patterns:
            if self._matches_nothing(each) and each in rewriting.searched:
                raise UnknownResultError(f"findAll of the regular expression {each}")
        part = checked_expression.parts_of(decoded)
        panics, keys = (
            tuple([self._deserialized(part(each)) for each in parts]) for parts in (rewriting.panics, rewriting.keys)
        )
        return Plan(self._deserialized(decoded), needs, panics, keys, rewriting.scoped)

    def _deserialized(self, checked: Native) -> Native:
        program = self.environment.deserialize(checked_expression.encoded(checked))
        program.eval(data={})  # plans it
        return program

    def _matches_nothing(self, pattern: str) -> bool:
        """Return whether a regular expression matches an empty text. Raises the error of an invalid one."""
        matched = self.environment.compile("''.matches(device.driver)").eval(data={"device.driver": pattern})
        if matched.type() == cel.Type.ERROR:
            text = str(matched.plain_value())
            if not _invalid_everywhere.search(text):
                raise UnknownResultError(text)
            raise InvalidExpressionError(text)
        return bool(matched.plain_value())


class Environment:
    """Compiles expressions of one kind of environment."""

    def __init__(self, limits: Limits) -> None:
        self._lists = limits.lists
        declared = [*cel_declarations.ELSEWHERE.values(), *cel_declarations.CROSS_TYPE]
        declared += [cel_declarations.INCLUDES] if limits.includes else []
        functions: dict[str, list[Declared]] = {}
        for each in declared:
            functions.setdefault(each.function, []).append(each)
        extension = cel.CelExtension(
            "kubernetes",
            [cel.FunctionDecl(name, [_overload(each) for each in overloads]) for name, overloads in functions.items()],
        )
        self._environment = cel.NewEnv(
            runtime().pool,
            config=cel.NewEnvConfigFromYaml(_LIBRARIES),
            variables=_variables(cel.Type.DYN if limits.lists else cel.Type("google.protobuf.Any")),
            extensions=[extension],
        )

    def compiled(self, expression: str) -> Program:
        """Raise InvalidExpressionError or UnknownResultError."""
        if _own_words.search(expression) or "\0" in expression:
            raise UnknownResultError("a word of Kindred, or a character 0")
        if expression.count("optMap") + expression.count("optFlatMap") > _MOST_DOUBLINGS:
            raise UnknownResultError("many uses of optMap")
        if "has" in expression:
            expression = self._without_has(expression)
        try:
            checked = self._environment.compile(expression)
        except _RAISED as error:
            raise _rejected(expression, str(error)) from error
        kind = checked.return_type().name()
        unknown = "DYN" if self._lists else "ERROR"  # the package has no name for any
        if kind not in ("BOOL", unknown):
            raise InvalidExpressionError(f"must evaluate to bool or the unknown type, not {kind.lower()}")
        return Program(runtime(), checked.serialize())

    def _without_has(self, expression: str) -> str:
        """Replace has(device.driver), which is true: the package compiles it to device.driver.

        It is replaced in the text, unless a string in it has the same words.
        """
        try:
            parsed = self._environment.compile(expression, disable_check=True).serialize()
        except _RAISED:  # of which the checker has an error, too
            return expression
        tests = checked_expression.tests_of_fields(any_pb2.Any.FromString(parsed).value, "device")
        replaced, found = _has.subn("true", expression)
        if tests not in (0, found):
            raise UnknownResultError("has() of a field of device")
        return replaced if tests else expression


def _rejected(expression: str, text: str) -> InvalidExpressionError | UnknownResultError:
    """Return the error for an expression that does not compile. Some reasons of the package are none of cel-go."""
    first = _first_line(text)
    for line in text.splitlines():
        found = _certain.search(line)
        name = found["name"] if found else None
        if found and name not in _UNDECLARED and not _of_two_variables.search(expression):
            return InvalidExpressionError(line.partition("ERROR: ")[2] or line)
    return UnknownResultError(first)


def _missing_key(error: str) -> str:
    """Return the text that a map does not have as a key, or an empty one for another error."""
    found = _missing.fullmatch(error)
    key = ast.literal_eval(found[1]) if found else None
    return key if isinstance(key, str) else ""


def _upstream_text(error: str) -> str:
    """Return an error in the words of cel-go, as far as they are known."""
    overload, separator, argument = _missing_key(error).partition(cel_rewriting.SEPARATOR)
    if separator:
        return f"{overload} of {quantity.quoted(argument)} is an error"
    return f"no such key: {overload}" if overload else error


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _variables(attribute: object) -> dict[str, Native]:
    kind = cel.Type
    types = (
        kind.STRING,
        kind.BOOL,
        kind.Map(kind.STRING, kind.Map(kind.STRING, attribute)),
        kind.Map(kind.STRING, kind.Map(kind.STRING, _type("Quantity"))),
    )
    return {f"device.{name}": of for name, of in zip(_VARIABLES, types, strict=True)}


def _overload(declared: Declared) -> Native:
    parameters = [_type(each) for each in declared.parameters]
    return cel.Overload(declared.overload, _type(declared.result), parameters, declared.member)


def _type(text: str) -> Native:
    if text in cel_equality.FIELDS:
        return cel.Type(f"{cel_types.PACKAGE}.{text}")
    outer, _, inner = text.removesuffix(">").partition("<")
    match outer:
        case "list":
            return cel.Type.List(_type(inner))
        case "map":
            key, _, value = inner.partition(",")
            return cel.Type.Map(_type(key), _type(value))
        case "optional_type":
            return cel.Type.AbstractType(outer, [_type(inner)])
        case "~A":
            return cel.Type(text)
    return getattr(cel.Type, text.upper())


@lru_cache(maxsize=1)
def runtime() -> _Runtime:
    """Return what evaluates expressions of all environments."""
    return _Runtime()


@lru_cache(maxsize=4)
def environment(limits: Limits) -> Environment:
    """Return an environment. Raises UnknownResultError if the package is not installed."""
    if cel is None:
        raise UnknownResultError("the package cel-expr-python is not installed")
    return Environment(limits)


def _native(value: Value) -> object:
    return _message(value) if isinstance(value, Made) else value


@lru_cache(maxsize=4096)
def _message(value: Made) -> object:
    return runtime().messages[value.type](**{cel_equality.FIELDS[value.type]: value.text})
