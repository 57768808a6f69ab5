"""A replay for people: whether the response is the same, then the differences."""

from collections.abc import Iterator
from typing import Final

from app.commands.printer import Line, Styled, paragraphs
from app.commands.text_columns import counted, wrapped, wrapped_table
from app.explain.replay import Replay, ReplayedResult, Said

_PASSED: Final = {"prioritize": "Nodes scored"}
"""The word for nodes that passed, if the verb has another one."""


def replay_text(replay: Replay, *, of_a_dump: bool, wide: bool = False) -> Iterator[Line]:
    """Return the replay as lines, which have colours on a terminal."""
    blocks = (_head(replay), _ends(replay, of_a_dump=of_a_dump, wide=wide), _differences(replay, wide=wide))
    return paragraphs(blocks)


def _head(replay: Replay) -> Iterator[Line]:
    of_pod = f" of pod {replay.pod}" if replay.pod else ""
    text = f"Decision {replay.id}, {replay.verb}{of_pod}: {_verdict(replay)}."
    yield from (Styled(line, fg="green" if replay.same else "red", bold=True) for line in wrapped(text))
    if replay.differing_nodes is None:
        yield from wrapped(
            "No nodes are compared: the old response was too large to keep, or named none. Only the outcome, the "
            "number of nodes that passed and the error are compared.",
            0,
        )
    if replay.nodes_asked == "all known":
        yield from wrapped("All known nodes are compared: the nodes of the old request are unknown.")


def _verdict(replay: Replay) -> str:
    match replay.differing_nodes:
        case None:
            return "the same outcome" if replay.same else "another outcome"
        case 0:
            return "the same result"
        case number:
            return f"another result for {counted(number, 'node')}"


def _ends(replay: Replay, *, of_a_dump: bool, wide: bool) -> Iterator[Line]:
    then, now = replay.then, replay.now
    rows: list[tuple[str, object, object]] = [
        ("Answered", replay.at, "now"),
        ("Generation", then.generation, "of the dump" if of_a_dump else now.generation),
        ("Kubernetes", then.kubernetes or "-", now.kubernetes),
        ("Outcome", then.outcome.value, now.outcome.value),
        ("Nodes in request", f"{then.nodes:,}", f"{now.nodes:,}"),
        (_PASSED.get(replay.verb, "Nodes passed"), f"{then.passed:,}", f"{now.passed:,}"),
    ]
    if then.error or now.error:
        rows.append(("Error", _error(then), _error(now)))
    yield from wrapped_table(("", "THEN", "NOW"), rows, wide=wide)


def _error(result: ReplayedResult) -> str:
    return result.error or "-"


def _differences(replay: Replay, *, wide: bool) -> Iterator[Line]:
    if not replay.differing_nodes:
        return
    yield Styled("Nodes that differ", bold=True)
    if replay.differences:
        rows = [(each.node, _said(each.then), _said(each.now)) for each in replay.differences]
        yield from wrapped_table(("NODE", "THEN", "NOW"), rows, wide=wide)
    left = replay.differing_nodes - len(replay.differences)
    if left:
        yield f"  ... and {counted(left, 'more node')}, see --limit"


def _said(said: Said) -> str:
    match said:
        case None:
            return "(no reason)"
        case "":
            return "fits"
        case _:
            return str(said)
