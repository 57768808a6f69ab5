"""The CEL environment of device selectors, on the package cel-expr-python (cel-cpp). The package is optional."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from core.objects import quantity

try:
    from cel_expr_python import cel
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError:  # the optional packages of devices are not installed
    cel = None


class Program:
    """A compiled expression."""

    def __init__(self, expression: Any) -> None:  # noqa: ANN401  # a class of the package
        self._expression = expression

    def evaluate(self, variables: Mapping[str, Any]) -> object:
        """Return a bool, or the text of an error."""
        return self._expression.eval(data=variables).plain_value()


class Environment:
    """Compiles expressions."""

    def __init__(self) -> None:
        file = descriptor_pb2.FileDescriptorProto(name="kindred.proto", package="kubernetes", syntax="proto3")
        for name in ("Quantity", "Semver"):
            file.message_type.add(name=name).field.add(name="value", number=1, type=9, label=1)
        pool = descriptor_pool.DescriptorPool()
        pool.AddSerializedFile(file.SerializeToString())
        self.quantity_class: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("kubernetes.Quantity"))
        self.version_class: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("kubernetes.Semver"))
        self._environment = _environment(pool)

    def compiled(self, expression: str) -> Program:
        """Raise ValueError, LookupError or RuntimeError."""
        return Program(self._environment.compile(expression))


def _environment(pool: object) -> Any:  # noqa: ANN401  # a class of the package
    kind = cel.Type
    text, boolean, amount = kind.STRING, kind.BOOL, kind("kubernetes.Quantity")
    overloads = [
        cel.FunctionDecl(
            "quantity",
            [cel.Overload("quantity", amount, [text], impl=lambda each: quantity_value(quantity.nanos(each)))],
        )
    ]
    for name, compare in (
        ("isGreaterThan", lambda one, other: int(one.value) > int(other.value)),
        ("isLessThan", lambda one, other: int(one.value) < int(other.value)),
    ):
        overloads.append(
            cel.FunctionDecl(name, [cel.Overload(name, boolean, [amount, amount], is_member=True, impl=compare)])
        )
    names = ("bindings", "optional", "strings", "sets", "lists", "two-var-comprehensions")
    config = cel.NewEnvConfigFromYaml("extensions:\n" + "".join(f"  - name: {each}\n" for each in names))
    variables = {
        "device.driver": text,
        "device.allowMultipleAllocations": boolean,
        "device.attributes": kind.Map(text, kind.Map(text, kind.DYN)),
        "device.capacity": kind.Map(text, kind.Map(text, amount)),
    }
    return cel.NewEnv(pool, config=config, variables=variables, functions=overloads)


@lru_cache(maxsize=1)
def environment() -> Environment | None:
    """Return the environment, or None if the package is not installed."""
    return None if cel is None else Environment()


def quantity_value(amount: int) -> object:
    """Return a quantity, of `nanos`, as expressions see it."""
    made = environment()
    return None if made is None else made.quantity_class(value=str(amount))


def version_value(text: str) -> object:
    """Return a semantic version as expressions see it."""
    made = environment()
    return None if made is None else made.version_class(value=text)
