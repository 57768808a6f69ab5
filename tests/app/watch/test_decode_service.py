"""Services to the core's values."""

import json

import pytest

from app.watch.decode import DecodeError
from app.watch.decode_service import decode_service
from core.objects.labels import NOTHING, Operator, Requirement, Selector
from core.objects.service import Service


def service(spec: object) -> Service:
    return decode_service(json.dumps({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec}).encode())


def test_a_service_is_reduced_to_what_it_selects() -> None:
    told = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u-1", "resourceVersion": "7"},
        "spec": {"clusterIP": "None", "ports": [{"port": 80}], "selector": {"tier": "a", "app": "web"}},
    }
    selector = Selector((Requirement("app", Operator.IN, ("web",)), Requirement("tier", Operator.IN, ("a",))))
    assert Service("shop", "web", selector, "u-1", "7") == decode_service(json.dumps(told).encode())


@pytest.mark.parametrize("spec", [None, {}, {"selector": None}, {"selector": {}}], ids=str)
def test_a_service_without_a_selector_selects_no_pod(spec: object) -> None:
    assert service(spec).selector == NOTHING


def test_a_selector_selects_pods_with_all_its_labels() -> None:
    selector = service({"selector": {"app": "web", "tier": "a"}}).selector
    assert selector.matches({"app": "web", "tier": "a", "more": "b"})
    assert not selector.matches({"app": "web"})


def test_the_selector_of_a_service_is_not_validated() -> None:
    assert service({"selector": {"no label": "-"}}).selector.matches({"no label": "-"})


def test_a_broken_selector_is_refused_with_the_field() -> None:
    with pytest.raises(DecodeError, match=r"^spec\.selector\[\.\.\.\]: expected str, got int$"):
        service({"selector": {"app": 1}})
