"""The text of what an answer assumes, at its end."""

from collections.abc import Iterator, Mapping

from app.commands.output import Line, styled, wrapped
from app.simulation.assumptions import Assumptions
from app.simulation.comes_again import Doubt
from core.explaining.words import counted

_MAX_OWNERS = 3


def assumed_text(assumed: Assumptions, *, wide: bool) -> Iterator[Line]:
    """Yield what is assumed, and what is not known."""
    orders = counted(assumed.orders, "order")
    nodes = f"{assumed.percentage_of_nodes_to_score}% of the nodes scored"
    text = f"Assumed: {assumed.kubernetes}; rules of {', '.join(assumed.profiles)}; {nodes}; {orders}"
    yield from wrapped(f"{text}.")
    for lack in assumed.lacks:
        yield from styled(wrapped(f"Not judged: {lack.why}{'. This adds them:' if lack.command else ''}"), "yellow")
        if lack.command:
            yield f"  {lack.command}"
    for why, doubts in _by_reason(assumed).items():
        yield from styled(wrapped(_doubt_text(why, doubts, wide=wide)), "yellow")


def _by_reason(assumed: Assumptions) -> Mapping[str, list[Doubt]]:
    found: dict[str, list[Doubt]] = {}
    for doubt in assumed.doubts:
        found.setdefault(doubt.why, []).append(doubt)
    return found


def _doubt_text(why: str, doubts: list[Doubt], *, wide: bool) -> str:
    owners = [each.owner for each in doubts]
    shown = owners if wide else owners[:_MAX_OWNERS]
    more = f" and {len(owners) - len(shown)} more" if len(owners) > len(shown) else ""
    return f"{counted(sum(each.pods for each in doubts), 'pod')} of {', '.join(shown)}{more}: {why}."
