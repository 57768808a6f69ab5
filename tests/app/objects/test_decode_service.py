"""Services to the core's values."""

import json

import pytest

from app.objects.decode_kinds import decode_service
from core.objects.labels import NOTHING
from core.objects.service import Service


def service(spec: object) -> Service:
    return decode_service(json.dumps({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec}).encode())


@pytest.mark.parametrize("spec", [None, {}, {"selector": None}, {"selector": {}}], ids=str)
def test_a_service_without_a_selector_selects_no_pod(spec: object) -> None:
    assert service(spec).selector == NOTHING


def test_a_selector_selects_pods_with_all_its_labels() -> None:
    selector = service({"selector": {"app": "web", "tier": "a"}}).selector
    assert selector.matches({"app": "web", "tier": "a", "more": "b"})
    assert not selector.matches({"app": "web"})


def test_the_selector_of_a_service_is_not_validated() -> None:
    assert service({"selector": {"no label": "-"}}).selector.matches({"no label": "-"})
