"""The dashboard and the alerts use exported metrics and their labels, and docs/metrics.md describes all of them."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import promql_parser as promql
import pytest
import yaml

from app.settings.limits import DEFAULTS
from tests.exported_metrics import Exported, exported_metrics

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


FOLDER: Final = Path("manifests/observability")
DASHBOARD: Final = json.loads((FOLDER / "grafana-dashboard.json").read_text("utf-8"))
RULE: Final = yaml.safe_load((FOLDER / "prometheusrule.yaml").read_text("utf-8"))
SCHEDULERS: Final = Path("manifests/scheduler")
OVERLAYS: Final = Path("manifests/overlays")
RULES: Final[list[dict[str, Any]]] = [rule for group in RULE["spec"]["groups"] for rule in group["rules"]]
OPERATE: Final = Path("docs/operate.md").read_text("utf-8")
OF_THE_SCRAPE: Final = frozenset({"job", "instance", "pod", "namespace"})
"""Labels that Prometheus adds to each scraped sample."""
OF_PROMETHEUS: Final = {"up": OF_THE_SCRAPE}
MACROS: Final = {"$__rate_interval": "5m"}


class Query(NamedTuple):
    """A query, and its place."""

    place: str
    text: str
    rendered: frozenset[str]
    """Labels that its legend or its annotations name."""


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def queries() -> Iterator[Query]:
    for panel in panels():
        for target in panel["targets"]:
            text: str = target["expr"]
            for macro, value in MACROS.items():
                text = text.replace(macro, value)
            rendered = frozenset(re.findall(r"{{\s*(\w+)\s*}}", target["legendFormat"]))
            yield Query(f"panel {panel['title']}", text, rendered)
    for rule in RULES:
        rendered = frozenset(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
        yield Query(f"alert {rule['alert']}", rule["expr"], rendered)


QUERIES: Final = tuple(queries())


@pytest.fixture(scope="module")
def exported() -> list[Exported]:
    return exported_metrics()


@pytest.fixture(scope="module")
def labels(exported: list[Exported]) -> QueryLabels:
    """Return what knows the labels that each sample has once it was scraped."""
    found = {
        sample: OF_THE_SCRAPE | set(metric.labels) | ({"le"} if sample.endswith("_bucket") else set())
        for metric in exported
        for sample in metric.samples
    }
    return QueryLabels(found | OF_PROMETHEUS)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.place)
def test_every_query_asks_for_what_is_exported_by_labels_that_it_has(query: Query, labels: QueryLabels) -> None:
    assert query.rendered <= labels.of(query.text), "the legend, or an annotation, names what the query does not give"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sum(rate(kindred_requests[5m]))", "kindred_requests is not exported"),
        ('rate(kindred_requests_total{result="fit"}[5m])', "kindred_requests_total has no label result"),
        ("sum by (reason) (kindred_requests_total)", "no label reason"),
        ("sum by (verb) (kindred_requests_total) / sum(kindred_requests_total) > 0", r"\['verb'\]"),
        ("histogram_quantile(0.9, sum by (verb) (kindred_request_queue_seconds_bucket))", "without le"),
    ],
)
def test_a_query_that_asks_for_something_else_is_found(text: str, message: str, labels: QueryLabels) -> None:
    with pytest.raises(QueryError, match=message):
        labels.of(text)


# The dashboard.


def test_panels_differ_say_what_they_are_and_ask_the_prometheus_job_and_replica_that_are_chosen() -> None:
    for key in ("id", "title"):
        assert len({panel[key] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    variables = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}
    assert variables.keys() == {"datasource", "job", "instance"}
    assert variables["datasource"]["type"] == "datasource"
    for panel in panels():
        assert panel["description"], panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        for target in panel["targets"]:
            selectors = re.findall(r"(?:kindred|process)_\w+({[^}]*})?", target["expr"])
            assert selectors
            for selector in selectors:
                assert 'job=~"$job", instance=~"$instance"' in selector, panel["title"]
    first = [panel for panel in panels() if panel["gridPos"]["y"] == 1]
    assert len(first) > 5, "what matters, whatever the registration"
    for panel in first:
        assert 'verb="' not in panel["targets"][0]["expr"], "score-offload has no filter, decide no prioritize"


# The alerts.


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_every_alert_says_how_severe_it_is_what_is_wrong_and_what_to_do(rule: dict[str, Any]) -> None:
    assert re.fullmatch(r"Kindred[A-Z]\w+", rule["alert"])
    assert rule["labels"]["severity"] in {"critical", "warning"}
    annotations = rule["annotations"]
    assert annotations.keys() == {"registrations", "summary", "description", "runbook"}
    assert all(annotations.values())
    assert annotations["runbook"] == f"docs/operate.md#{rule['alert'].lower()}"
    section = re.search(rf"^### {rule['alert']}\n(.*?)(?=^##|\Z)", OPERATE, re.MULTILINE | re.DOTALL)
    assert section, "the page has no such section"
    assert len(section[1].split()) > 20
    assert "`" in section[1], "what to type, or to look at"


def test_alerts_have_names_of_their_own_and_the_page_has_no_other() -> None:
    names = [rule["alert"] for rule in RULES]
    assert len(names) == len(set(names))
    assert names == re.findall(r"^### (Kindred\w+)$", OPERATE, re.MULTILINE)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_lists_the_registrations_that_it_can_fire_for(rule: dict[str, Any]) -> None:
    chosen = rule["annotations"]["registrations"].split(", ")
    files = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in SCHEDULERS.glob("*.yaml")}
    settings = {name: yaml.safe_load((OVERLAYS / name / "kindred.yaml").read_text("utf-8")) for name in files}
    if "kindred_binds_total" in rule["expr"]:
        expected = {name for name, file in files.items() if "bindVerb" in file["extenders"][0]}
    elif "kindred_decisions_total" in rule["expr"]:
        expected = {name for name, each in settings.items() if "decide" in each}
    elif "kindred_leader" in rule["expr"]:
        expected = {name for name, each in settings.items() if each.get("leaderElection")}
    else:
        expected = set(files)
    assert expected == set(chosen)
    assert len(chosen) == len(set(chosen))


@pytest.mark.parametrize("alert", ["KindredDown", "KindredNotReady", "KindredNoLeader"])
def test_an_alert_without_responses_says_what_each_registration_does_then(alert: str) -> None:
    (rule,) = (rule for rule in RULES if rule["alert"] == alert)
    for registration in rule["annotations"]["registrations"].split(", "):
        assert re.search(rf"\b{registration}\b(?!-)", rule["annotations"]["description"]), registration


def test_the_page_says_of_each_registration_what_is_in_its_file() -> None:
    section = OPERATE.partition("### If Kindred does not respond\n")[2].partition("\n### ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][1:]
    reported = {name: (verbs, then, severity) for names, verbs, then, severity in rows for name in names.split(", ")}
    files = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in SCHEDULERS.glob("*.yaml")}
    assert reported.keys() == files.keys()
    for name, file in files.items():
        (extender,) = file["extenders"]
        verbs, then, severity = reported[name]
        served = {
            extender[key] for key in ("filterVerb", "prioritizeVerb", "bindVerb", "preemptVerb") if key in extender
        }
        assert served == set(re.findall(r"`(\w+)`", verbs)), name
        skipped = "filterVerb" not in extender or extender["ignorable"]
        if "filterVerb" in extender:
            assert f"`ignorable: {str(extender['ignorable']).lower()}`" in verbs
        assert then.startswith("pods are placed without" if skipped else "no pod "), name
        assert severity == ("`warning`" if skipped else "`critical`"), name


def test_panels_that_the_page_names_are_in_the_dashboard() -> None:
    titles = {panel["title"] for panel in panels()}
    named = {
        title
        for sentence in re.findall(r"[Pp]anels? (\"[^.:?`]*)", " ".join(OPERATE.split()))
        for title in re.findall(r'"([^"]+)"', sentence)
    }
    assert len(named) >= 5
    assert named <= titles


def test_a_wrong_cell_of_the_cache_is_critical_at_once_and_memory_is_told_before_the_watermark() -> None:
    rules = {rule["alert"]: rule for rule in RULES}
    mismatch = rules["KindredCacheMismatch"]
    assert (mismatch["labels"]["severity"], mismatch.get("for")) == ("critical", None)
    share = re.search(r"> ([0-9.]+) \* \(kindred_memory_limit_bytes", rules["KindredMemoryHigh"]["expr"])
    assert share is not None
    assert float(share[1]) < DEFAULTS.memory_watermark


# The exported metrics.


def test_every_metric_is_read_by_an_alert_a_panel_or_a_page(exported: list[Exported]) -> None:
    pages = [path.read_text("utf-8") for path in Path("docs").glob("*.md") if path.stem != "metrics"]
    read = " ".join([*(query.text for query in QUERIES), *pages])
    ours = [metric for metric in exported if metric.name.startswith("kindred_")]
    assert [metric.name for metric in ours if metric.name not in read] == []


def test_there_are_at_most_40_with_names_and_units_as_prometheus_wants_them(exported: list[Exported]) -> None:
    assert len(exported) <= 40, "with those of the client library about the process"
    for metric in exported:
        name = metric.name
        assert re.fullmatch(r"(kindred|process)_[a-z_]+", name)
        assert not re.search(r"milli|micro|nano|minutes|kilo|mega|percent", name), name
        assert not re.search(r"_(age|since|until)(_seconds)?$", name), "a time is exported as a Unix timestamp"
        assert name.endswith("_total") == (metric.type == "counter")
        if name.startswith("kindred_"):
            assert name.endswith("_timestamp_seconds") == ("since 1970" in metric.documentation), name
