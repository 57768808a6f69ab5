"""The dashboard and the alerts ask for what is exported, by labels that it has; docs/operate.md tells of all of it."""

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml

from app.settings import Settings
from tests.exported_metrics import Exported, exported_metrics, shown_table, table
from tests.query_labels import QueryError, QueryLabels

FOLDER: Final = Path("manifests/observability")
DASHBOARD: Final = json.loads((FOLDER / "grafana-dashboard.json").read_text("utf-8"))
ALERTS: Final = yaml.safe_load((FOLDER / "alerts.yaml").read_text("utf-8"))
RULES: Final[list[dict[str, Any]]] = [rule for group in ALERTS["groups"] for rule in group["rules"]]
OPERATE: Final = Path("docs/operate.md").read_text("utf-8")
OF_THE_SCRAPE: Final = frozenset({"job", "instance", "pod", "namespace"})
"""Labels that Prometheus adds to whatever it scrapes."""
OF_PROMETHEUS: Final = {"up": OF_THE_SCRAPE}
MACROS: Final = {"$__rate_interval": "5m"}


class Query(NamedTuple):
    """A query, and where it stands."""

    place: str
    text: str
    shown: frozenset[str]
    """Labels that its legend or its annotations name."""


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def queries() -> Iterator[Query]:
    for panel in panels():
        for target in panel["targets"]:
            text: str = target["expr"]
            for macro, value in MACROS.items():
                text = text.replace(macro, value)
            shown = frozenset(re.findall(r"{{\s*(\w+)\s*}}", target["legendFormat"]))
            yield Query(f"panel {panel['title']}", text, shown)
    for rule in RULES:
        shown = frozenset(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
        yield Query(f"alert {rule['alert']}", rule["expr"], shown)


QUERIES: Final = tuple(queries())


@pytest.fixture(scope="module")
def exported() -> list[Exported]:
    return exported_metrics()


@pytest.fixture(scope="module")
def labels(exported: list[Exported]) -> QueryLabels:
    """Give what knows the labels that each sample has once it was scraped."""
    found = {
        sample: OF_THE_SCRAPE | set(metric.labels) | ({"le"} if sample.endswith("_bucket") else set())
        for metric in exported
        for sample in metric.samples
    }
    return QueryLabels(found | OF_PROMETHEUS)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.place)
def test_every_query_asks_for_what_is_exported_by_labels_that_it_has(query: Query, labels: QueryLabels) -> None:
    assert query.shown <= labels.of(query.text), "the legend, or an annotation, names what the query does not give"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sum(rate(kindred_requests[5m]))", "kindred_requests is not exported"),
        ("kindred_request_duration_seconds", "kindred_request_duration_seconds is not exported"),
        ('rate(kindred_requests_total{result="fit"}[5m])', "kindred_requests_total has no label result"),
        ("sum by (reason) (kindred_requests_total)", "no label reason"),
        ("sum by (reason) (sum by (outcome) (kindred_requests_total))", "no label reason"),
        ("sum by (verb) (kindred_requests_total) / sum(kindred_requests_total) > 0", r"\['verb'\]"),
        ("histogram_quantile(0.9, sum by (verb) (kindred_request_queue_seconds_bucket))", "without le"),
    ],
)
def test_a_query_that_asks_for_something_else_is_found(text: str, message: str, labels: QueryLabels) -> None:
    with pytest.raises(QueryError, match=message):
        labels.of(text)


# The dashboard.


def test_panels_have_ids_of_their_own_titles_descriptions_and_units() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    titles = [panel["title"] for panel in DASHBOARD["panels"]]
    assert len(titles) == len(set(titles))
    for panel in panels():
        assert panel["description"], panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]


def test_panels_do_not_overlap_and_stay_within_the_grid() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x, y in itertools.product(
            range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
        ):
            assert (x, y) not in taken, f"{panel['title']} lies on {taken.get((x, y))}"
            taken[x, y] = panel["title"]


def test_every_panel_asks_the_prometheus_job_and_replica_that_are_chosen() -> None:
    variables = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}
    assert variables.keys() == {"datasource", "job", "instance"}
    assert variables["datasource"]["type"] == "datasource"
    for panel in panels():
        for asked in (panel, *panel["targets"]):
            assert asked["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        for target in panel["targets"]:
            selectors = re.findall(r"(?:kindred|process)_\w+({[^}]*})?", target["expr"])
            assert selectors
            for selector in selectors:
                assert 'job=~"$job", instance=~"$instance"' in selector, panel["title"]


def test_each_question_of_an_operator_has_a_row() -> None:
    assert [panel["title"] for panel in DASHBOARD["panels"] if panel["type"] == "row"] == [
        "At a glance",
        "Traffic",
        "Queue and shedding",
        "Mirror and watch",
        "Equivalence cache",
        "Binding and preemption",
        "Decisions",
        "Process",
    ]


# The alerts.


def test_the_rule_of_the_prometheus_operator_has_the_same_alerts() -> None:
    rule = yaml.safe_load((FOLDER / "prometheusrule.yaml").read_text("utf-8"))
    assert (rule["apiVersion"], rule["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
    assert rule["spec"] == ALERTS


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_every_alert_says_how_severe_it_is_what_is_wrong_and_what_to_do(rule: dict[str, Any]) -> None:
    assert re.fullmatch(r"Kindred[A-Z]\w+", rule["alert"])
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
    page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert (page, anchor) == ("docs/operate.md", rule["alert"].lower())
    section = re.search(rf"^### {rule['alert']}\n(.*?)(?=^##|\Z)", OPERATE, re.MULTILINE | re.DOTALL)
    assert section, "the page has no such section"
    assert len(section[1].split()) > 20
    assert "`" in section[1], "what to type, or to look at"


def test_alerts_have_names_of_their_own_and_the_page_has_no_other() -> None:
    names = [rule["alert"] for rule in RULES]
    assert len(names) == len(set(names))
    assert names == re.findall(r"^### (Kindred\w+)$", OPERATE, re.MULTILINE)


def test_a_wrong_cell_of_the_cache_is_critical_at_once() -> None:
    (rule,) = (rule for rule in RULES if rule["alert"] == "KindredCacheMismatch")
    assert (rule["labels"]["severity"], rule.get("for")) == ("critical", None)


def test_the_alert_on_memory_comes_before_the_watermark() -> None:
    (rule,) = (rule for rule in RULES if rule["alert"] == "KindredMemoryHigh")
    share = re.search(r"> ([0-9.]+) \* \(kindred_memory_limit_bytes", rule["expr"])
    assert share is not None
    assert float(share[1]) < Settings().memory_watermark


# The page.


def test_the_page_has_the_table_of_what_is_exported() -> None:
    assert table() == shown_table()


def test_metrics_of_a_time_say_so_in_name_and_meaning(exported: list[Exported]) -> None:
    for metric in exported:
        if metric.name.startswith("kindred_"):
            assert metric.name.endswith("_timestamp_seconds") == ("since 1970" in metric.documentation), metric.name
