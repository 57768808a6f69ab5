"""An explanation for people: the deciding facts first, then their causes."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Final

import msgspec

from app.commands.amounts_text import cluster_amounts_text, node_amounts_text, remedies_text, wakes_text
from app.commands.output import Line, Part, Styled, labelled, paragraphs, shortened, styled, table, wrapped
from app.commands.pending import victim_text
from app.commands.units import packing_text
from app.explain.explainer import ClassUse, ExplainedNode, Explanation, MirrorState, NodeCells, SupposedState
from app.explain.stored_pod import Completion
from core.diagnosis.diagnosis import ScorePart
from core.diagnosis.explained_profile import Judge, SchedulerState
from core.diagnosis.node_detail import NodeDetail, NodeTerm
from core.diagnosis.summary import ReasonSummary, Summary, TermSummary, TopologySummary
from core.explaining.counted_terms import Direction, Effect, Rule
from core.explaining.explained import Explained
from core.explaining.words import counted, such_as
from core.gangs.unit import UnitStatus
from core.plugins import EXPLAINED


def scheduler_text(scheduler: SchedulerState) -> Iterator[str]:
    """Yield the pod's profile, and the rules that are off in it."""
    if not scheduler.has_profile:
        text = f"No profile of the configuration has schedulerName {scheduler.name}: this kube-scheduler does not"
        yield from wrapped(f"{text} schedule this pod. Every rule is judged as if it were on.", 2, "")
        return
    if scheduler.filters_off:
        off = ", ".join(scheduler.filters_off)
        yield from wrapped(f"Not in the scheduler's profile {scheduler.name}, nor judged by Kindred: {off}", 2, "")


def profile_text(scheduler: SchedulerState | None) -> Iterator[str]:
    """Yield the profile of an explanation, and the extender that is Kindred."""
    if scheduler is not None and scheduler.has_profile:
        extends = f"is its extender {scheduler.extender}" if scheduler.extender else "is not its extender"
        yield from labelled("Scheduler", f"profile {scheduler.name}; Kindred {extends}")


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
_WITH_TERMS: Final = {
    name for name, each in EXPLAINED.items() if issubclass(each, Explained) and each.terms is not Explained.terms
}
_DOMAINS: Final = ("DOMAIN", ">NODES", ">FIT", ">BEST SCORE")
_SCORES: Final = ("PLUGIN", ">WEIGHT", ">RAW", ">NORMALIZED")
_EFFECTS: Final[Mapping[Effect, tuple[str, str]]] = {
    Effect.BLOCKS: ("keeps it off", "red"),
    Effect.SATISFIED: ("satisfied", "green"),
    Effect.FIRST_POD: ("satisfied, as it would be the first pod of its kind", "green"),
    Effect.SCORES: ("scores", "cyan"),
}


def explanation_text(explanation: Explanation, *, wide: bool = False) -> Iterator[Line]:
    """Return the explanation as lines: MOST_LINES, beside the nodes that were asked for, or all if `wide`."""
    parts = [*_parts(explanation, wide=wide)]
    return paragraphs(parts) if wide else shortened(parts)


def _parts(explanation: Explanation, *, wide: bool) -> Iterator[Part]:
    result, manifest, hidden = explanation.summary, explanation.manifest, explanation.names_hidden
    refusing = () if result.fit or result.never_tried else [each.plugin for each in result.reasons]
    yield _whole(_head(result, manifest))
    yield _whole(wrapped(f"{hidden[0].upper()}{hidden[1:]}.", 2, "") if hidden else ())
    if manifest is not None and manifest.completed:
        added = wrapped(f"Added to the manifest: {'; '.join(manifest.completed)}", 2, "")
        yield Part([added], name="what was added to the manifest")
    yield _scheduler_message(result)
    yield _unit(explanation.unit)
    victims = [wrapped(victim_text(each), 4, "  ") for each in explanation.waits_for]
    yield Part(victims, _heading("Waits for victims of preemption"), item="victim", least=1, most=_MAX)
    yield _reasons(result)
    yield _measured(result, wide=wide)
    yield remedies_text(result.helps, fits=bool(result.fit or result.never_tried or not result.nodes))
    yield wakes_text(result.wakes, refusing)
    yield _with_nominated(result)
    yield _of_wide("domains", chain.from_iterable(_topology(each, result, wide=wide) for each in result.topologies))
    terms = [[*_term(each)] for each in result.terms]
    yield Part(terms, _heading("Inter-pod affinity terms"), item="term", name="terms", most=_MAX, in_short=False)
    yield _of_wide("scores", _scores(result))
    yield _best(result)
    for node in explanation.nodes:
        yield Part([[*_node(node, all_judged=not result.not_judged)]], is_extra=True)
    stale = explanation.mirror.standing != "fresh"
    yield _whole(_mirror(explanation.mirror) if stale and not wide else ())
    yield _of_wide("mirror", _background(explanation))


def _whole(lines: Iterable[Line]) -> Part:
    """Return lines that are always shown."""
    return Part([[line] for line in lines], least=sys.maxsize)


def _of_wide(name: str, lines: Iterable[Line]) -> Part:
    return Part([[line] for line in lines], name=name, in_short=False)


def _heading(text: str) -> Line:
    return Styled(text, bold=True)


def _verdict(lines: Sequence[str], *, fits: bool) -> Iterator[Line]:
    return styled(lines, "green" if fits else "red", bold=True)


def _head(result: Summary, manifest: Completion | None) -> Iterator[Line]:
    of = counted(result.nodes, "node")
    if result.never_tried:
        yield from _verdict(wrapped(f"Pod {result.pod}: {result.never_tried}."), fits=False)
    unknown = manifest.unknown if manifest is not None else ()
    is_sure = not (result.not_judged or unknown)
    if not result.fit:
        text = f"Pod {result.pod} fits on none of {of}."
    elif not is_sure:
        text = f"Pod {result.pod} may fit on {result.fit:,} of {of}: not every rule was judged."
    else:
        text = f"Pod {result.pod} fits on {result.fit:,} of {of}."
    yield from _verdict(wrapped(text), fits=bool(result.fit) and is_sure)
    for each in unknown:
        yield from wrapped(f"Not judged: {each}", 2, "")
    for why, rules in groupby(result.not_judged, lambda rule: rule.why):
        yield from wrapped(f"Not judged: {', '.join(rule.plugin for rule in rules)}: {why}", 2, "")
    for command in dict.fromkeys(rule.command for rule in result.not_judged if rule.command):
        yield f"  {command}"  # in one line, to be pasted
    if result.scheduler is not None:
        yield from scheduler_text(result.scheduler)
    if result.waiting is not None and result.waiting.gates:
        gates = ", ".join(result.waiting.gates)
        text = f"kube-scheduler does not try the pod before its scheduling gates are removed: {gates}"
        yield from wrapped(text, 2, "")


def _scheduler_message(result: Summary) -> Part:
    """Return what the scheduler said. It is not new, unless the pod fits by now."""
    waiting = result.waiting
    if waiting is None or not waiting.message:
        return Part([])
    at = f" at {waiting.changed}" if waiting.changed else ""
    text = f"Its scheduler said{at} ({waiting.reason}): {waiting.message}"
    return Part([wrapped(text, 2, "")], name="its scheduler's message", in_short=result.fit > 0)


def _unit(unit: UnitStatus | None) -> Part:
    if unit is None:
        return Part([])
    packing = unit.packing
    why = f": {unit.reason}" if unit.reason else ""
    items = [wrapped(f"{unit.unit} is {unit.status.value}{why}", 4, "  ")]
    if packing is not None and packing.problem:
        items.append(wrapped(f"placed as spread: {packing.problem}", 4, "  "))
    counts = (
        f"{unit.bound} bound, {unit.assumed} decided, {unit.reserved} with a reserved place, {unit.pending} pending"
    )
    counts += f", {unit.terminating} terminating" if unit.terminating else ""
    needed = f"{unit.minimum} are needed" if unit.minimum else "an unknown number is needed"
    items.append(wrapped(f"{counted(unit.members, 'member')}, {needed}: {counts}", 4, "  "))
    for each in unit.conditions:
        since = f", since {each.since}" if each.since else ""
        items.append(wrapped(f"condition {each}{since}", 4, "  "))
    if packing is not None:
        items.append(wrapped(f"packing: {packing_text(packing)}; on {counted(packing.nodes, 'node')} so far", 4, "  "))
    title = f"Placed together with its group{'' if packing is not None else ', by kube-scheduler'}"
    return Part(items, _heading(title), item="fact", least=1)


def _reasons(result: Summary) -> Part:
    reasons, scheduler = result.reasons, result.scheduler
    registered = scheduler is None or not scheduler.has_profile or scheduler.extender
    width = len(f"{reasons[0].nodes:,}") if reasons else 0

    def lines_of(each: ReasonSummary) -> Iterator[Line]:
        yield from wrapped(each.reason, width + 4, f"  {each.nodes:>{width},}  ")
        by = f"{each.plugin}, {each.code}" if each.plugin else each.code
        by += f", judged by {each.judged_by.value}" if registered and each.judged_by is not Judge.KINDRED else ""
        yield from wrapped(f"({by}) {such_as(each.examples, each.nodes)}", width + 4)

    items = [[*lines_of(each)] for each in reasons]
    return Part(items, _heading("Why not, by nodes"), item="reason", least=1, most=_MAX)


def _measured(result: Summary, *, wide: bool) -> Part:
    """Return the amounts; in a short text also the required terms that refuse nodes, which `wide` shows in detail."""
    found = cluster_amounts_text(result.amounts, result.nodes)
    if wide or not any(each.plugin in _WITH_TERMS for each in result.reasons):
        return found
    distinct: dict[tuple[object, ...], TermSummary] = {}  # pods of one owner have the same term
    for each in result.terms:
        if each.rule in (Rule.REQUIRED_AFFINITY, Rule.REQUIRED_ANTI_AFFINITY):
            distinct.setdefault((each.rule, each.topology_key, each.selects), each)
    texts = (f"{_term_name(each)} selects {each.selects}: {_counts(each)}" for each in distinct.values())
    return msgspec.structs.replace(found, items=[*found.items, *(wrapped(text, 4, "  ") for text in texts)])


def _with_nominated(result: Summary) -> Part:
    rejected = result.refused_beside_nominated
    if not rejected:
        return Part([])
    heading = _heading(f"Refused together with nominated pods: {counted(rejected, 'node')}")
    items = [wrapped(f"{each.node}: {', '.join(each.pods)}", 4, "  ") for each in result.nominated]
    left = rejected - len(result.nominated)
    tail = [f"  ... and {counted(left, 'more node')}, see --limit"] if left else []
    return Part([[heading], *items], tail=tail, item="node", least=1)


def _topology(topology: TopologySummary, result: Summary, *, wide: bool) -> Iterator[Line]:
    if not topology.domains:
        yield from map(_heading, wrapped(f"By {topology.topology_key}: no node has this label"))
        return
    fit = f"{topology.domains_with_fit:,} with a node that fits"
    own = ", one for each node" if topology.domains == result.nodes > 1 else ""
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


def _term(term: TermSummary) -> Iterator[Line]:
    yield from wrapped(_term_name(term), 4, "  ")
    yield from wrapped(f"selects {term.selects}", 6, "    ")
    yield from wrapped(_counts(term), 6, "    ")
    if term.weight:
        yield f"    each adds {term.weight:+,} to the raw score of the nodes of its domain"


def _term_name(term: TermSummary | NodeTerm) -> str:
    return f"{_DIRECTIONS[term.direction]}: {_RULES[term.rule]} by {term.topology_key}"


def _counts(term: TermSummary) -> str:
    if term.first_pod:
        return "selects no placed pod except this pod: the first one of its kind may be in any domain"
    if not term.pods:
        return "no placed pod"
    has = "" if term.direction is Direction.INCOMING else f" {'has' if term.pods == 1 else 'have'} it"
    rendered = [f"{each.value} ({each.pods:,})" for each in term.shown]
    listed = _listed(rendered, term.domains, "more domain")
    return f"{counted(term.pods, 'placed pod')}{has}, in {counted(term.domains, 'domain')}{listed}"


def _listed(rendered: Sequence[str], number: int, more: str) -> str:
    """Return the text after a number: some names, and the number of the others."""
    if not rendered:
        return ""
    left = number - len(rendered)
    return f": {', '.join(rendered)}" + (f" and {counted(left, more)}" if left else "")


def _best(result: Summary) -> Part:
    width = max((len(f"{each.score}") for each in result.best), default=0)
    rows = [wrapped(each.node, width + 4, f"  {each.score:>{width}}  ") for each in result.best]
    sample = [*sample_text(result.scheduler, result.fit)] if result.scheduler is not None else []
    return Part(rows, _heading("Best scores"), sample, item="node", least=1)


def _scores(result: Summary) -> Iterator[Line]:
    scored = [each for each in result.scores if each.raw is not None]
    silent = [each.plugin for each in result.scores if each.raw is None]
    if not scored and not result.best:
        return  # no node was scored
    yield _heading("Scores by plugin, of all nodes that are scored")
    if scored:
        yield from table(
            _SCORES, [(each.plugin, each.weight, _span(each.raw), _span(each.normalized)) for each in scored]
        )
    if silent:
        yield from wrapped(f"no score for this pod: {', '.join(silent)}", 4, "  ")
    if result.scheduler is not None and result.scheduler.scores_off:
        yield from wrapped(f"not in the scheduler's profile: {', '.join(result.scheduler.scores_off)}", 4, "  ")
    for each in (*result.not_scored, *(result.scheduler.not_scored if result.scheduler is not None else ())):
        yield from wrapped(f"not in these scores: {each.plugin}: {each.why}", 4, "  ")


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
    yield from Part([[*_node_term(each)] for each in telling], "  Inter-pod affinity terms", item="term", most=_MAX)
    if len(telling) < len(terms):
        yield f"    {counted(len(terms) - len(telling), 'term')} without effect here"


def _node_term(term: NodeTerm) -> Iterator[Line]:
    effect, colour = _EFFECTS[term.effect]
    adds = f" {term.adds:+,}" if term.effect is Effect.SCORES else ""
    domain = f"{'=' + term.domain if term.domain is not None else ', a label that the node does not have'}"
    yield from styled(wrapped(f"{effect}{adds}: {_term_name(term)}{domain}", 6, "    "), colour)
    yield from wrapped(f"selects {term.selects}", 8, "      ")
    named = _listed([f"{each.pod} on {each.node}" for each in term.named], term.pods, "more pod")
    yield from wrapped(f"{counted(term.pods, 'placed pod')}{named}" if term.pods else "no placed pod", 8, "      ")


def _score_parts(score: int | None, parts: Sequence[ScorePart]) -> Iterator[Line]:
    if score is None:
        yield "  Not scored"
        return
    yield f"  Score {score}"
    scored = [each for each in parts if each.raw is not None]
    if scored:
        yield from table(_SCORES, [(each.plugin, each.weight, f"{each.raw:,}", each.normalized) for each in scored], 4)


def _cells(cells: NodeCells) -> Iterator[Line]:
    yield "  In the equivalence cache"
    for cell in cells.predicates:
        verdict = "fits" if cell.fit else f"does not fit: {', '.join(cell.reasons)}"
        cached = f"invalid ({cell.miss or 'never kept'})" if cell.invalid else verdict
        yield from wrapped(f"{cell.plugin}: {cached}", 6, "    ")
    for score in cells.scores:
        scored = "no score" if score.raw is None else f"{score.raw:,}"
        cached = f"invalid ({score.miss or 'never kept'})" if score.invalid else f"raw score {scored}"
        yield from wrapped(f"{score.plugin}: {cached}", 6, "    ")


def _background(explanation: Explanation) -> Iterator[Line]:
    result = explanation.summary
    if result.answered_fit != result.fit:
        text = f"its own profile passes {counted(result.answered_fit, 'node')}; kube-scheduler judges the other rules"
        yield from labelled("Kindred", text)
    yield from _class(explanation.equivalence)
    yield from _mirror(explanation.mirror)
    release = explanation.kubernetes
    yield from styled(labelled("Release", str(release)), None if release.exact else "yellow")
    yield from profile_text(result.scheduler)
    yield from _changes(explanation.supposed)


def _class(use: ClassUse | None) -> list[str]:
    if use is None:
        return labelled("Class", "none: the pod has no class, or the cache is off")
    if not use.kept:
        return labelled("Class", f"{use.hash}, not cached")
    uses = f"{counted(use.questions, 'request')}, {counted(use.hits, 'hit')}, {counted(use.misses, 'miss', 'misses')}"
    return labelled("Class", f"{use.hash}, first pod {use.first_pod}: {uses}")


def _mirror(state: MirrorState) -> Iterator[Line]:
    holds = f"{counted(state.nodes, 'node')}, {counted(state.pods, 'pod')}"
    lines = labelled("Mirror", f"{state.standing}, at generation {state.generation}: {holds}")
    yield from styled(lines, None if state.standing == "fresh" else "yellow")
    for problem in state.problems:
        yield from labelled("", problem)


def _changes(what_if: SupposedState) -> Iterator[Line]:
    named = {
        "more nodes": what_if.added_nodes,
        "more devices": what_if.added_slices,
        "gone": what_if.removed,
        "placed": what_if.assumed,
    }
    given = [f"{what}: {', '.join(names)}" for what, names in named.items() if names]
    for index, text in enumerate(given):
        yield from labelled("" if index else "Supposed", text)
