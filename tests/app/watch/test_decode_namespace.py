"""v1 namespaces to the core's values."""

import json

from app.watch.decode_namespace import decode_namespace
from core.objects.namespace import Namespace
from tests.builders import make_namespace


def test_a_namespace_is_reduced_to_its_identity_and_labels() -> None:
    namespace = {**make_namespace("shop").label("team", "x").obj(), "spec": {"finalizers": ["kubernetes"]}}
    assert Namespace("shop", {"team": "x"}) == decode_namespace(json.dumps(namespace).encode())
