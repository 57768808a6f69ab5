"""The labels of a PromQL query's result, and whether the query uses a missing metric or label."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import promql_parser as promql

Labels: TypeAlias = frozenset[str]
SCALAR: Final = None
"""A number has this instead of labels."""


class QueryError(ValueError):
    """A query uses a missing metric or label, or has an unsupported form."""


class QueryLabels:
    """Checks queries by the names of samples and their labels."""

    def __init__(self, labels_of: Mapping[str, Labels]) -> None:
        self._labels_of = labels_of
        self._judges: Mapping[type, Callable[[Any], Labels | None]] = {
            promql.VectorSelector: self._selected,
            promql.MatrixSelector: lambda each: self._selected(each.vector_selector),
            promql.AggregateExpr: self._aggregated,
            promql.Call: self._called,
            promql.BinaryExpr: self._together,
            promql.ParenExpr: lambda each: self._of(each.expr),
            promql.UnaryExpr: lambda each: self._of(each.expr),
            promql.NumberLiteral: lambda _: SCALAR,
        }

    def of(self, query: str) -> Labels:
        """Return the labels of the result. Raises QueryError."""
        return self._of(promql.parse(query)) or frozenset()

    def _of(self, expression: promql.Expr) -> Labels | None:
        judge = self._judges.get(type(expression))
        if judge is None:
            raise QueryError(f"{type(expression).__name__}: not foreseen here")
        return judge(expression)

    def _selected(self, selector: promql.VectorSelector) -> Labels:
        name = selector.name or ""
        if name not in self._labels_of:
            raise QueryError(f"{name} is not exported")
        for matcher in selector.matchers.matchers:
            if matcher.name not in self._labels_of[name]:
                raise QueryError(f"{name} has no label {matcher.name}")
        return self._labels_of[name]

    def _aggregated(self, expression: promql.AggregateExpr) -> Labels:
        of_all = self._of(expression.expr) or frozenset()
        modifier = expression.modifier
        if modifier is None:
            return frozenset()
        if modifier.type != promql.AggModifierType.By:
            raise QueryError("only `by` is foreseen here")
        named = frozenset(modifier.labels)
        if not named <= of_all:
            raise QueryError(f"no label {', '.join(sorted(named - of_all))}")
        return named

    def _called(self, call: promql.Call) -> Labels | None:
        arguments = [self._of(argument) for argument in call.args]
        match call.func.name:
            case "time":
                return SCALAR
            case "absent":
                return frozenset()
            case "rate" | "increase" | "changes":
                return arguments[0]
            case "histogram_quantile":
                of_buckets = arguments[1] or frozenset()
                if "le" not in of_buckets:
                    raise QueryError("histogram_quantile without le")
                return of_buckets - {"le"}
        raise QueryError(f"{call.func.name}: not foreseen here")

    def _together(self, expression: promql.BinaryExpr) -> Labels | None:
        left, right = self._of(expression.lhs), self._of(expression.rhs)
        if left is None or right is None:
            return right if left is None else left
        if left != right:
            raise QueryError(f"{sorted(left)} is put together with {sorted(right)}: nothing matches")
        return left
