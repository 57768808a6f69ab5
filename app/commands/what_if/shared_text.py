"""The parts that several responses have: pods that leave their nodes, where they go or why not, and what is assumed."""

from collections.abc import Iterator, Mapping, Sequence

from app.commands.output import Line, styled, wrapped
from app.simulation.assumptions import Assumptions
from core.explaining.words import counted, listed
from core.simulation.moves import Move, Rejected
from core.simulation.orders import Chance
from core.simulation.placing import Fate

_MAX_NAMES = 2
_MAX_OWNERS = 3
_MAX_REASONS = 3
_MAX_GROUPS = 5
_FATES = {
    Fate.UNKNOWN: "not known",
    Fate.DENIED: "not made again",
    Fate.BY_PREEMPTION: "a place only by preemption",
}


def without_place_text(moves: Sequence[Move], *, wide: bool) -> Iterator[Line]:
    """Yield the pods that find no place in some order, those of one owner with one reason together, most first."""
    groups: dict[tuple[str, str, str], list[Move]] = {}
    for move in moves:
        chance = "back to a node that is out" if move.returns else chance_text(move.rejected, move.placed)
        groups.setdefault((move.owner, chance, why_text(move)), []).append(move)
    ordered = sorted(groups.items(), key=lambda each: -len(each[1]))
    visible = ordered if wide else ordered[:_MAX_GROUPS]
    for (owner, chance, why), alike in visible:
        names = [each.pod for each in alike]
        named = names if wide or len(names) <= _MAX_NAMES else [*names[:_MAX_NAMES], f"{len(names) - _MAX_NAMES} more"]
        of = f"{owner}: {counted(len(alike), 'pod')}" if len(alike) > 1 else names[0]
        those = f" ({', '.join(each.rpartition('/')[2] for each in named)})" if len(alike) > 1 else ""
        yield from wrapped(f"{of}{those}: {chance}: {why}", 4, "  ")
    if len(groups) > len(visible):
        yield f"  ... and {counted(len(groups) - len(visible), 'more group')}, see -o wide"


def chance_text(rejected: Rejected | None, placed: Chance) -> str:
    """Return in how many orders there is a place, in a few words."""
    if placed is not Chance.NEVER:
        return "a place in some orders"
    return "no place" if rejected is None else _FATES.get(rejected.fate, "no place")


def why_text(move: Move) -> str:
    """Return why a pod finds no place."""
    if move.rejected is None:
        return "it tolerates the taints there"
    return rejected_text(move.rejected)


def rejected_text(rejected: Rejected) -> str:
    """Return why a pod finds no place, in kube-scheduler's words."""
    if rejected.fate is Fate.GATED:
        return "it has scheduling gates"
    if rejected.why:
        return rejected.why
    if not rejected.nodes:
        return "no nodes available to schedule pods"  # ErrNoNodesAvailable
    reasons = listed([f"{number} {reason}" for reason, number in rejected.reasons.items()], _MAX_REASONS)
    victims = f"; it may preempt {', '.join(rejected.victims)} on {rejected.node}" if rejected.victims else ""
    return f"0/{rejected.nodes} nodes are available: {reasons}{victims}"


def places_text(nodes: Mapping[str, int]) -> str:
    """Return the nodes where a pod is placed, the most frequent first."""
    names = [*nodes]
    more = f" or {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"{' or '.join(names[:_MAX_NAMES])}{more}"


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
    for why in dict.fromkeys(each.why for each in assumed.uncertainties):
        alike = [each for each in assumed.uncertainties if each.why == why]
        owners = listed([each.owner for each in alike], None if wide else _MAX_OWNERS)
        text = f"{counted(sum(each.pods for each in alike), 'pod')} of {owners}: {why}."
        yield from styled(wrapped(text), "yellow")
