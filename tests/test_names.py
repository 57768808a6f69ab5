"""Names have the field's words: what a request, a response or a rejection is called everywhere, it is called here."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]

WORDS: Final = {
    "answer": "response",
    "answered": "responded",
    "answering": "responding",
    "answers": "responses",
    "asked": "request, requested, incoming",
    "beside": "in addition, with, optional",
    "doubt": "stale rejection",
    "held": "stored",
    "keeper": "the thing itself",
    "kept": "stored, cached (in the equivalence cache), remaining",
    "lull": "wait until idle",
    "refusal": "rejection",
    "refusals": "rejections",
    "refused": "rejected",
    "said": "message, reported",
    "shown": "rendered, visible, listed",
    "stranger": "unknown, unmirrored",
    "strangers": "unknown, unmirrored",
    "suppose": "fork",
    "supposed": "fork, what if",
    "supposition": "fork",
    "told": "message, reported",
    "wanted": "required, needed",
}
"""Words that no name has -> the field's words for it. Texts for people may have them."""

PUBLISHED: Final = {
    "DecisionDetail": {"answer"},
    "LastDecisions": {"kept"},
    "ClassUse": {"kept"},
    "Explanation": {"supposed"},
    "ReleaseStatus": {"told"},
    "NodeDetail": {"answered", "refused_beside_nominated"},
    "Summary": {"answered_fit", "refused_beside_nominated"},
    "TopologySummary": {"shown"},
    "TermSummary": {"shown"},
    "SpreadInCluster": {"shown", "nodes_refused"},
    "DropRequirement": {"asked"},
    "CorrectRequirement": {"asked"},
    "UnmetRequirement": {"asked"},
    "RequirementInCluster": {"asked"},
    "WaitingResize": {"asked"},
    "UnitStatus": {"asked"},
    "SupposedState": {"SupposedState"},
    "AskedOfNode": {"AskedOfNode"},
    "RefusedBeside": {"RefusedBeside"},
}
"""Class -> its names that clients read in JSON, or in its schema."""


def words_of(name: str) -> set[str]:
    """Return the words of a name in snake or camel case, in lower case."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


@cache
def trees(package: str) -> list[tuple[Path, ast.Module]]:
    """Return the modules of a package, parsed."""
    return [(path, ast.parse(path.read_text("utf-8"))) for path in sorted((ROOT / package).rglob("*.py"))]


def names(tree: ast.AST, owner: str = "") -> Iterator[tuple[str, str, int]]:
    """Yield what a module defines: the class around it, or itself for a class, its name and line."""
    for node in ast.iter_child_nodes(tree):
        inner = owner
        match node:
            case ast.ClassDef(name=name):
                inner = name
                yield name, name, node.lineno
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield owner, name, node.lineno
            case ast.arg(arg=name):
                yield "", name, node.lineno
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield owner, name, node.lineno
            case _:
                pass
        yield from names(node, inner)


@pytest.mark.parametrize("package", ["app", "core", "tests"])
def test_names_have_the_words_of_the_field(package: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}: {', '.join(WORDS[word] for word in sorted(dialect))}"
        for path, tree in trees(package)
        for owner, name, line in names(tree)
        if (dialect := words_of(name) & WORDS.keys())
        and name not in PUBLISHED.get(owner, ())
        and not name.startswith("test_")  # a sentence
    ]
    assert found == []


def test_every_published_name_is_there() -> None:
    defined = {
        (owner, name) for package in ("app", "core") for _, tree in trees(package) for owner, name, _ in names(tree)
    }
    assert {(owner, name) for owner, fields in PUBLISHED.items() for name in fields} <= defined


@pytest.mark.parametrize(
    "source", ["def asked(): ...", "def f(told): ...", "x.kept = 1", "class HeldNode: ...", "a, said = 1, 2"]
)
def test_a_name_of_another_dialect_is_found(source: str) -> None:
    assert any(words_of(name) & WORDS.keys() for _, name, _ in names(ast.parse(source)))
