"""What the API server refuses, or drops, of manifests that people have published."""

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from app.explain.valid_pod import FIELDS
from app.objects.decode import DecodeError
from tests.app.explain.test_stored_pod import manifest, pod
from tests.upstream.judges import UPSTREAM

CASES: Final = yaml.safe_load((Path(__file__).parent / "data/refused-manifests.yaml").read_text("utf-8"))


def test_the_fields_are_those_of_all_releases() -> None:
    for name, fields in FIELDS.items():
        found = {field for release in UPSTREAM.values() for field in release.fields.get(name, {})}
        assert set(fields) == found, name


@pytest.mark.parametrize("case", CASES, ids=[each["source"] for each in CASES])
def test_what_the_api_server_makes_of_a_mistake_is_told(case: dict[str, Any]) -> None:
    of = case.get("manifest") or pod(**{"containers": [], **case["spec"]})
    limits = [{"metadata": {"name": "l"}, "spec": {"limits": [case["limit"]]}}] if "limit" in case else []
    if "unknown" in case:
        reported = ": there is no such field, so the API server refuses or drops it"
        assert manifest(of, {"LimitRange": limits}).notes.unknown == (
            [case["unknown"] + reported] if case["unknown"] else []
        )
        return
    with pytest.raises(DecodeError) as error:
        manifest(of, {"LimitRange": limits})
    assert case["refused"] in str(error.value)
    assert "the API server refuses this" in str(error.value)


def test_a_kind_that_is_no_text_is_any_kind_with_a_template() -> None:
    """It ended with an internal error."""
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"app": "y"}}, "template": template}
    assert manifest({"kind": ["Deployment"], "metadata": {"name": "w"}, "spec": spec}).pod.labels == {"app": "x"}
