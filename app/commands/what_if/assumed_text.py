"""The last lines of a response: what it assumes."""

from collections.abc import Iterator, Mapping

from app.commands.output import Line, styled, wrapped
from app.simulation.assumptions import Assumptions
from app.simulation.comes_again import Uncertainty
from core.explaining.words import counted, listed

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
    if assumed.names_hidden:
        yield from styled(wrapped(f"Left out: {counted(assumed.left_out, 'pod')}: {assumed.names_hidden}."), "yellow")
    for why, uncertainties in _by_reason(assumed).items():
        yield from styled(wrapped(_uncertainty_text(why, uncertainties, wide=wide)), "yellow")


def _by_reason(assumed: Assumptions) -> Mapping[str, list[Uncertainty]]:
    found: dict[str, list[Uncertainty]] = {}
    for uncertainty in assumed.uncertainties:
        found.setdefault(uncertainty.why, []).append(uncertainty)
    return found


def _uncertainty_text(why: str, uncertainties: list[Uncertainty], *, wide: bool) -> str:
    owners = listed([each.owner for each in uncertainties], None if wide else _MAX_OWNERS)
    return f"{counted(sum(each.pods for each in uncertainties), 'pod')} of {owners}: {why}."
