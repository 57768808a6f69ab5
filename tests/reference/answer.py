"""An InterPodAffinity answer for one pod in the shape of the golden data, so that any two sources can be compared."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self, TypeAlias

Verdict: TypeAlias = tuple[str, tuple[str, ...]]  # Go's spelling of the code, reasons
Scores: TypeAlias = Mapping[str, int]  # node -> score

NOT_RUN = "NotRun"  # PreFilter failed, so there was nothing to score
NO_NODES = "NoNodes"  # no node passed the filter


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """Every member that golden `expected` has at its top level; `filter` is node -> verdict."""

    prefilter: str
    prefilter_reasons: tuple[str, ...]
    filter: Mapping[str, Verdict]
    prescore_all: str
    raw_scores_all: Scores
    normalized_all: Scores
    prescore_feasible: str
    raw_scores_feasible: Scores
    normalized_feasible: Scores

    @classmethod
    def from_golden(cls, expected: Mapping[str, Any]) -> Self:
        """Read the `expected` of a golden case; raises KeyError for a member that is missing."""
        return cls(
            prefilter=expected["prefilter"],
            prefilter_reasons=tuple(expected.get("prefilter_reasons") or ()),
            filter={
                node: (verdict["code"], tuple(verdict.get("reasons") or ()))
                for node, verdict in expected["filter"].items()
            },
            prescore_all=expected["prescore_all"],
            raw_scores_all=expected["raw_scores_all"],
            normalized_all=expected["normalized_all"],
            prescore_feasible=expected["prescore_feasible"],
            raw_scores_feasible=expected["raw_scores_feasible"],
            normalized_feasible=expected["normalized_feasible"],
        )

    def members(self) -> dict[str, object]:
        """Return the answer as name -> value, for reports that name the member that differs."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
