"""An explanation for people: the deciding facts first, then their causes."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from app.commands.amounts_text import cluster_amounts_text, node_amounts_text, remedies_text, wakes_text
from app.commands.output import Line, Side, Styled, counted, paragraphs, table, wrapped
from app.commands.pending import victim_text
from app.commands.units import packing_text
from app.explain.explainer import ClassUse, ExplainedNode, Explanation, MirrorState, NodeCells, SupposedState
from app.watch.release import ReleaseStatus
from core.diagnosis.counted_terms import Direction, Effect, Rule
from core.diagnosis.diagnosis import ScorePart
from core.diagnosis.explained_profile import Judge, SchedulerState
from core.diagnosis.node_detail import NodeDetail, NodeTerm
from core.diagnosis.summary import ReasonSummary, Summary, TermSummary, TopologySummary
from core.diagnosis.wakes import AwaitedVictim
from core.gangs.unit import UnitStatus
from core.objects.pod import Waiting


def scheduler_text(scheduler: SchedulerState) -> Iterator[str]:
    """Yield the pod's profile, and the rules that are off in it."""
    if not scheduler.has_profile:
        yield from wrapped(
            f"No profile of the configuration has schedulerName {scheduler.name}: this kube-scheduler does not "
            f"schedule this pod. Every rule is judged as if it were on.",
            2,
            "",
        )
        return
    if scheduler.filters_off:
        yield from wrapped(
            f"Not in the scheduler's profile {scheduler.name}, nor judged by Kindred: "
            f"{', '.join(scheduler.filters_off)}",
            2,
            "",
        )


def profile_text(scheduler: SchedulerState | None, labels: int) -> Iterator[str]:
    """Yield the profile of an explanation, and the extender that is Kindred. `labels` is the width of the label."""
    if scheduler is not None and scheduler.has_profile:
        kindred = (
            f"Kindred is its extender {scheduler.extender}" if scheduler.extender else "Kindred is not its extender"
        )
        yield from wrapped(f"profile {scheduler.name}; {kindred}", labels, "Scheduler".ljust(labels))


def unscored_text(scheduler: SchedulerState) -> Iterator[str]:
    """Yield the plugins whose scores are off or unknown."""
    if scheduler.scores_off:
        yield from wrapped(f"not in the scheduler's profile: {', '.join(scheduler.scores_off)}", 4, "  ")
    for each in scheduler.not_scored:
        yield from wrapped(f"not in these scores: {each.plugin}: {each.why}", 4, "  ")


def sample_text(scheduler: SchedulerState, fit: int) -> Iterator[str]:
    """Yield a note if kube-scheduler stops before it has found all nodes that fit."""
    if scheduler.nodes_to_score < fit:
        share = scheduler.percentage_of_nodes_to_score or "by the size of the cluster"
        yield from wrapped(
            f"kube-scheduler looks for {counted(scheduler.nodes_to_score, 'node')} that fit and scores no others "
            f"(percentageOfNodesToScore: {share}), so its best node may be another.",
            4,
            "  ",
        )


_MAX: Final = 20
"""Limit of reasons and terms: some clusters have hundreds."""
_RULES: Final[Mapping[Rule, str]] = {
    Rule.REQUIRED_AFFINITY: "required affinity",
    Rule.REQUIRED_ANTI_AFFINITY: "required anti-affinity",
    Rule.PREFERRED_AFFINITY: "preferred affinity",
    Rule.PREFERRED_ANTI_AFFINITY: "preferred anti-affinity",
}
_DIRECTIONS: Final[Mapping[Direction, str]] = {
    Direction.INCOMING: "its own rule",
    Direction.EXISTING: "rule of placed pods",
}
_DOMAINS: Final[Sequence[tuple[str, Side]]] = (
    ("DOMAIN", "left"),
    ("NODES", "right"),
    ("FIT", "right"),
    ("BEST SCORE", "right"),
)
_SCORES: Final[Sequence[tuple[str, Side]]] = (
    ("PLUGIN", "left"),
    ("WEIGHT", "right"),
    ("RAW", "right"),
    ("NORMALIZED", "right"),
)
_LABELS: Final = 10
"""Columns of the names in the last lines."""
_EFFECTS: Final[Mapping[Effect, tuple[str, str]]] = {
    Effect.BLOCKS: ("keeps it off", "red"),
    Effect.SATISFIED: ("satisfied", "green"),
    Effect.FIRST_POD: ("satisfied, as it would be the first pod of its kind", "green"),
    Effect.SCORES: ("scores", "cyan"),
}


def explanation_text(explanation: Explanation, *, wide: bool = False) -> Iterator[Line]:
    """Return the explanation as lines, which have colours on a terminal."""
    told = explanation.summary
    blocks = (
        _head(told),
        _hidden(explanation.names_hidden),
        _unit(explanation.unit),
        _victims(explanation.waits_for),
        _reasons(told.reasons),
        cluster_amounts_text(told.amounts, told.nodes),
        remedies_text(told.helps),
        wakes_text(told.wakes),
        _beside_nominated(told),
        chain.from_iterable(_topology(each, told, wide=wide) for each in told.topologies),
        _terms(told.terms),
        _scores(told),
        _best(told, wide=wide),
        *(_node(each, all_judged=not told.not_judged) for each in explanation.nodes),
        _background(explanation),
    )
    return paragraphs(blocks)


def _heading(text: str) -> Line:
    return Styled(text, bold=True)


def _verdict(lines: Sequence[str], *, fits: bool) -> list[Line]:
    return [Styled(line, fg="green" if fits else "red", bold=True) for line in lines]


def _head(told: Summary) -> Iterator[Line]:
    of = counted(told.nodes, "node")
    if not told.fit:
        text = f"Pod {told.pod} fits on none of {of}."
    elif told.not_judged:
        text = f"Pod {told.pod} may fit on {told.fit:,} of {of}: not every rule was judged."
    else:
        text = f"Pod {told.pod} fits on {told.fit:,} of {of}."
    yield from _verdict(wrapped(text), fits=bool(told.fit) and not told.not_judged)
    for each in told.not_judged:
        yield from wrapped(f"Not judged: {each.plugin}: {each.why}", 2, "")
    if told.scheduler is not None:
        yield from scheduler_text(told.scheduler)
    if told.answered_fit != told.fit:
        yield from wrapped(
            f"Kindred's own profile passes {told.answered_fit:,}; kube-scheduler judges the rest of the rules.", 2, ""
        )
    yield from _waiting(told.waiting)


def _hidden(why: str) -> Iterator[Line]:
    if why:
        yield from wrapped(f"{why[0].upper()}{why[1:]}.", 2, "")


def _waiting(waiting: Waiting | None) -> Iterator[Line]:
    if waiting is None:
        return
    if waiting.gates:
        gates = ", ".join(waiting.gates)
        text = f"kube-scheduler does not try the pod before its scheduling gates are removed: {gates}"
        yield from wrapped(text, 2, "")
    if waiting.message:
        at = f" at {waiting.changed}" if waiting.changed else ""
        yield from wrapped(f"Its scheduler said{at} ({waiting.reason}): {waiting.message}", 2, "")


def _unit(unit: UnitStatus | None) -> Iterator[Line]:
    if unit is None:
        return
    packing = unit.packing
    yield _heading(f"Placed together with its group{'' if packing is not None else ', by kube-scheduler'}")
    why = f": {unit.reason}" if unit.reason else ""
    yield from wrapped(f"{unit.unit} is {unit.status.value}{why}", 4, "  ")
    counts = (
        f"{unit.bound} bound, {unit.assumed} decided, {unit.reserved} with a reserved place, {unit.pending} pending"
    )
    counts += f", {unit.terminating} terminating" if unit.terminating else ""
    needed = f"{unit.minimum} are needed" if unit.minimum else "an unknown number is needed"
    yield from wrapped(f"{counted(unit.members, 'member')}, {needed}: {counts}", 4, "  ")
    for each in unit.conditions:
        since = f", since {each.since}" if each.since else ""
        yield from wrapped(f"condition {each}{since}", 4, "  ")
    if packing is None:
        return
    yield from wrapped(f"packing: {packing_text(packing)}; on {counted(packing.nodes, 'node')} so far", 4, "  ")
    if packing.problem:
        yield from wrapped(f"placed as spread: {packing.problem}", 4, "  ")


def _victims(victims: Sequence[AwaitedVictim]) -> Iterator[Line]:
    if not victims:
        return
    yield _heading("Waits for victims of preemption")
    for each in victims[:_MAX]:
        yield from wrapped(victim_text(each), 4, "  ")
    yield from _more(len(victims), "victim")


def _reasons(reasons: Sequence[ReasonSummary]) -> Iterator[Line]:
    if not reasons:
        return
    yield _heading("Why not, by nodes")
    width = len(f"{reasons[0].nodes:,}")
    for each in reasons[:_MAX]:
        yield from wrapped(each.reason, width + 4, f"  {each.nodes:>{width},}  ")
        by = f"{each.plugin}, {each.code}" if each.plugin else each.code
        by += "" if each.judged_by is Judge.KINDRED else f", judged by {each.judged_by.value}"
        yield from wrapped(f"({by}) {_such_as(each.examples, each.nodes)}", width + 4)
    yield from _more(len(reasons), "reason")


def _beside_nominated(told: Summary) -> Iterator[Line]:
    if told.refused_beside_nominated:
        yield _heading(f"Refused together with nominated pods: {counted(told.refused_beside_nominated, 'node')}")
        for each in told.nominated:
            yield from wrapped(f"{each.node}: {', '.join(each.pods)}", 4, "  ")
        left = told.refused_beside_nominated - len(told.nominated)
        if left:
            yield f"  ... and {counted(left, 'more node')}, see --limit"


def _such_as(examples: Sequence[str], number: int) -> str:
    return f"{'such as ' if len(examples) < number else ''}{', '.join(examples)}"


def _more(number: int, name: str) -> Iterator[Line]:
    if number > _MAX:
        yield f"  ... and {counted(number - _MAX, f'more {name}')}, see -o json"


def _topology(topology: TopologySummary, told: Summary, *, wide: bool) -> Iterator[Line]:
    if not topology.domains:
        yield from map(_heading, wrapped(f"By {topology.topology_key}: no node has this label"))
        return
    fit = f"{topology.domains_with_fit:,} with a node that fits"
    own = ", one for each node" if topology.domains == told.nodes > 1 else ""
    head = f"By {topology.topology_key}: {counted(topology.domains, 'domain')}{own}, {fit}"
    yield from map(_heading, wrapped(head))
    if own or not topology.shown:
        return  # the best nodes and the reasons show more
    rows = [
        (each.value or "(without the label)", each.nodes, each.fit, "-" if each.best_score is None else each.best_score)
        for each in topology.shown
    ]
    yield from table(_DOMAINS, rows, wide=wide)
    left = topology.domains - sum(1 for each in topology.shown if each.value)
    if left > 0:
        yield f"  ... and {counted(left, 'more domain')}, see --limit"


def _terms(terms: Sequence[TermSummary]) -> Iterator[Line]:
    if not terms:
        return
    yield _heading("Inter-pod affinity terms")
    for term in terms[:_MAX]:
        yield from wrapped(_term_name(term), 4, "  ")
        yield from wrapped(f"selects {term.selects}", 6, "    ")
        yield from wrapped(_counts(term), 6, "    ")
        if term.weight:
            yield f"    each adds {term.weight:+,} to the raw score of the nodes of its domain"
    yield from _more(len(terms), "term")


def _term_name(term: TermSummary | NodeTerm) -> str:
    return f"{_DIRECTIONS[term.direction]}: {_RULES[term.rule]} by {term.topology_key}"


def _counts(term: TermSummary) -> str:
    if term.first_pod:
        return "selects no placed pod except this pod: the first one of its kind may be in any domain"
    if not term.pods:
        return "no placed pod"
    has = "" if term.direction is Direction.INCOMING else f" {'has' if term.pods == 1 else 'have'} it"
    shown = [f"{each.value} ({each.pods:,})" for each in term.shown]
    listed = _listed(shown, term.domains, "more domain")
    return f"{counted(term.pods, 'placed pod')}{has}, in {counted(term.domains, 'domain')}{listed}"


def _listed(shown: Sequence[str], number: int, more: str) -> str:
    """Return the text after a number: some names, and the number of the others."""
    if not shown:
        return ""
    left = number - len(shown)
    return f": {', '.join(shown)}" + (f" and {counted(left, more)}" if left else "")


def _best(told: Summary, *, wide: bool) -> Iterator[Line]:
    if told.best:
        yield _heading("Best scores")
        rows = [(each.node, each.score) for each in told.best]
        yield from table((("NODE", "left"), ("SCORE", "right")), rows, wide=wide)
        if told.scheduler is not None:
            yield from sample_text(told.scheduler, told.fit)


def _scores(told: Summary) -> Iterator[Line]:
    said = [each for each in told.scores if each.raw is not None]
    silent = [each.plugin for each in told.scores if each.raw is None]
    if not said and not told.best:
        return  # no node was scored
    yield _heading("Scores by plugin, of all nodes that are scored")
    if said:
        yield from table(
            _SCORES, [(each.plugin, each.weight, _span(each.raw), _span(each.normalized)) for each in said]
        )
    if silent:
        yield from wrapped(f"no score for this pod: {', '.join(silent)}", 4, "  ")
    if told.scheduler is not None:
        yield from unscored_text(told.scheduler)


def _span(numbers: tuple[int, int] | None) -> str:
    if numbers is None:
        return "-"
    lowest, highest = numbers
    return f"{lowest:,}" if lowest == highest else f"{lowest:,} to {highest:,}"


def _node(explained: ExplainedNode, *, all_judged: bool) -> Iterator[Line]:
    detail = explained.decision
    by = f" ({detail.plugin}, {detail.code})" if detail.plugin else ""
    why_not = "" if detail.fits else f": {', '.join(detail.reasons) or detail.code}{by}"
    passes = "fits" if all_judged else "passes the judged rules"
    text = f"Node {detail.node}: it {passes if detail.fits else 'does not fit'}{why_not}"
    yield from _verdict(wrapped(text, 2, ""), fits=detail.fits and all_judged)
    yield from _nominated(detail)
    yield from _predicates(detail)
    yield from node_amounts_text(detail.amounts)
    yield from _node_terms(detail.terms)
    yield from _score_parts(detail.score, detail.score_parts)
    if explained.cells is not None:
        yield from _cells(explained.cells)


def _nominated(detail: NodeDetail) -> Iterator[Line]:
    if detail.nominated:
        named = ", ".join(f"{each.pod} (priority {each.priority:,})" for each in detail.nominated)
        effect = "with them it does not fit" if detail.refused_beside_nominated else "they are not in the way"
        yield from wrapped(f"Nominated for it, and counted: {named}; {effect}", 4, "  ")


def _predicates(detail: NodeDetail) -> Iterator[Line]:
    if not detail.predicates:
        return
    yield f"  Predicates, each by itself{', without nominated pods' if detail.nominated else ''}"
    for each in detail.predicates:
        if each.reasons or each.code not in {"Success", "Skip"}:
            yield from wrapped(f"{each.plugin}: {', '.join(each.reasons) or each.code} ({each.code})", 6, "    ")
    passed = [each.plugin for each in detail.predicates if not each.reasons and each.code in {"Success", "Skip"}]
    if passed:
        yield from wrapped(f"passed: {', '.join(passed)}", 6, "    ")


def _node_terms(terms: Sequence[NodeTerm]) -> Iterator[Line]:
    telling = [term for term in terms if term.effect is not Effect.NONE]
    if telling:
        yield "  Inter-pod affinity terms"
    for term in telling[:_MAX]:
        effect, colour = _EFFECTS[term.effect]
        adds = f" {term.adds:+,}" if term.effect is Effect.SCORES else ""
        domain = f"{'=' + term.domain if term.domain is not None else ', a label that the node does not have'}"
        lines = wrapped(f"{effect}{adds}: {_term_name(term)}{domain}", 6, "    ")
        yield from (Styled(line, fg=colour) for line in lines)
        yield from wrapped(f"selects {term.selects}", 8, "      ")
        yield from wrapped(_named(term), 8, "      ")
    yield from _more(len(telling), "term")
    if len(telling) < len(terms):
        yield f"    {counted(len(terms) - len(telling), 'term')} without effect here"


def _named(term: NodeTerm) -> str:
    if not term.pods:
        return "no placed pod"
    named = [f"{each.pod} on {each.node}" for each in term.named]
    return counted(term.pods, "placed pod") + _listed(named, term.pods, "more pod")


def _score_parts(score: int | None, parts: Sequence[ScorePart]) -> Iterator[Line]:
    if score is None:
        yield "  Not scored"
        return
    yield f"  Score {score}"
    said = [each for each in parts if each.raw is not None]
    if said:
        yield from table(_SCORES, [(each.plugin, each.weight, f"{each.raw:,}", each.normalized) for each in said], 4)


def _cells(cells: NodeCells) -> Iterator[Line]:
    yield "  In the equivalence cache"
    for cell in cells.predicates:
        verdict = "fits" if cell.fit else f"does not fit: {', '.join(cell.reasons)}"
        kept = f"invalid ({cell.miss or 'never kept'})" if cell.invalid else verdict
        yield from wrapped(f"{cell.plugin}: {kept}", 6, "    ")
    for score in cells.scores:
        said = "no score" if score.raw is None else f"{score.raw:,}"
        kept = f"invalid ({score.miss or 'never kept'})" if score.invalid else f"raw score {said}"
        yield from wrapped(f"{score.plugin}: {kept}", 6, "    ")


def _background(explanation: Explanation) -> Iterator[Line]:
    yield from _class(explanation.equivalence)
    yield from _mirror(explanation.mirror)
    yield from _kubernetes(explanation.kubernetes)
    yield from profile_text(explanation.summary.scheduler, _LABELS)
    yield from _supposed(explanation.supposed)


def _class(use: ClassUse | None) -> list[str]:
    if use is None:
        return wrapped("none: the pod has no class, or the cache is off", _LABELS, "Class".ljust(_LABELS))
    if not use.kept:
        return wrapped(f"{use.hash}, not cached", _LABELS, "Class".ljust(_LABELS))
    asked = f"{counted(use.questions, 'request')}, {counted(use.hits, 'hit')}, {counted(use.misses, 'miss', 'misses')}"
    return wrapped(f"{use.hash}, first pod {use.first_pod}: {asked}", _LABELS, "Class".ljust(_LABELS))


def _mirror(state: MirrorState) -> Iterator[Line]:
    holds = f"{counted(state.nodes, 'node')}, {counted(state.pods, 'pod')}"
    lines = wrapped(f"{state.standing}, at generation {state.generation}: {holds}", _LABELS, "Mirror".ljust(_LABELS))
    yield from lines if state.standing == "fresh" else (Styled(line, fg="yellow") for line in lines)
    for problem in state.problems:
        yield from wrapped(problem, _LABELS)


def _kubernetes(status: ReleaseStatus) -> Iterator[Line]:
    lines = wrapped(str(status), _LABELS, "Release".ljust(_LABELS))
    yield from lines if status.exact else (Styled(line, fg="yellow") for line in lines)


def _supposed(supposed: SupposedState) -> Iterator[Line]:
    first = "Supposed"
    for what, names in (
        ("more nodes", supposed.added_nodes),
        ("gone", supposed.removed),
        ("placed", supposed.assumed),
    ):
        if names:
            yield from wrapped(f"{what}: {', '.join(names)}", _LABELS, first.ljust(_LABELS))
            first = ""
