"""Whatever is in a document: there is a report, or one line that says why not."""

import copy
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from app.commands.doctor.examination import REGISTRATION_CHECKS
from app.commands.doctor.registration import KnownSettings, Registration
from app.scheduler_configuration.scheduler_config import UnreadableError, choose_extender, parse_scheduler_config
from app.scheduler_configuration.schema import POINTS
from app.settings import Settings
from app.wiring.engine import create_profile
from tests.app.commands.doctor.registrations import BESIDE, FULL_OFFLOAD, SCORE_OFFLOAD

KNOWN = [
    KnownSettings(chosen, create_profile(chosen), "the test", assumed)
    for chosen in (Settings(), Settings(profile="full", preempt="evict"), Settings(profile="filter:NodePorts"))
    for assumed in (True, False)
]
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 200),
    st.floats(),
    st.sampled_from(
        ["", "5s", "-1s", "filter", "/bind", "https://a", "http://[", "http://a:x", "InterPodAffinity", "*", "é"]
    ),
    st.lists(st.one_of(st.none(), st.just({}), st.just({"name": "NodePorts"})), max_size=2),
    st.dictionaries(
        st.sampled_from([*POINTS, "name", "insecure", "caFile", "caData", "certFile", "disabled", "enabled"]),
        st.one_of(st.none(), st.just("AAAA"), st.just([{"name": "InterPodAffinity", "weight": 3}]), st.just({})),
        max_size=3,
    ),
)
KEYS = st.sampled_from(
    ["urlPrefix", "filterVerb", "bindVerb", "weight", "tlsConfig", "enableHTTPS", "httpTimeout", "managedResources",
     "plugins", "pluginConfig", "schedulerName", "percentageOfNodesToScore", "extenders", "profiles", "kind", "odd"]
)  # fmt: skip


def places(node: Any) -> list[dict[str, Any]]:  # noqa: ANN401  # whatever YAML holds
    """Return all objects in a document."""
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else []
    return ([node] if isinstance(node, dict) else []) + [place for child in children for place in places(child)]


@settings(deadline=None)
@given(st.data())
def test_no_document_is_too_much(data: st.DataObject) -> None:
    document = copy.deepcopy(data.draw(st.sampled_from([SCORE_OFFLOAD, FULL_OFFLOAD, BESIDE])))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.sampled_from(places(document)))
        key = data.draw(st.one_of(KEYS, st.sampled_from(sorted(place)) if place else KEYS))
        place[key] = copy.deepcopy(data.draw(JUNK))
    reading = parse_scheduler_config(yaml.safe_dump(document))
    assert reading.config is not None or reading.findings
    if reading.config is None:
        return
    extender, problem = choose_extender(reading.config, "", "")
    assert (extender is None) == bool(problem)
    if extender is not None:
        registration = Registration(reading.config, extender, data.draw(st.sampled_from(KNOWN)))
        for check in REGISTRATION_CHECKS:
            check.findings(registration)


def refusal(text: str) -> str:
    """Read a text that is no configuration, and give why it was refused, or the first finding."""
    try:
        reading = parse_scheduler_config(text)
    except UnreadableError as error:
        return str(error)
    assert reading.config is None
    return reading.findings[0].message


@settings(deadline=None)
@given(st.text(alphabet="-:[]{}&*!#|>%@`'\" \n\tab1", max_size=40))
def test_no_text_is_too_much(text: str) -> None:
    assert "\n" not in refusal(text)


@pytest.mark.parametrize(
    "text", ["? [a]\n: b", "{[a]: b}", "? {a: b}\n: c", "&a {a: *a}", "a: !!python/object:os.x {}"]
)
def test_odd_yaml_is_read_or_refused_in_a_line(text: str) -> None:
    assert "\n" not in refusal(text)
